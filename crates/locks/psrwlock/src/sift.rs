//! Sifting: the owner closes class after class, and waits each time until its readers have left.
//! The steps and numbers are those of [`raw`](super::raw).

use crate::configuration::Configuration;
use crate::raw::{ATTEMPTS, PolicyOf, RawPsRwLock};
use crate::rows::Seen;
use crate::word::{OWNER, State};
use crate::writer::LONGEST_SLEEP;
use ulocks_core::futex::SHORT_SLEEP;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::sync::Ordering::{Acquire, Relaxed};
use ulocks_core::time::Deadline;
use ulocks_core::{spin, sync};

impl<D: Configuration> RawPsRwLock<D> {
    /// Raises the level to `to`, class by class. For the owner. False if `deadline` passed first.
    pub(crate) fn sift(&self, to: u32, deadline: Option<Deadline>) -> bool {
        if to == Self::CLASSES && self.sift_at_once() {
            return true;
        }
        let level = self.level();
        sync::without_unwinding(|| (level..to).all(|index| self.shut(index, deadline)))
    }

    /// (close all) by the owner, if that is possible.
    pub(crate) fn sift_at_once(&self) -> bool {
        if self.row() != 0 || self.level() == Self::CLASSES || !self.shut_all(State::QUEUED) {
            return false;
        }
        if self.row() != 0 {
            // A reader has got the lock a row since the look.
            self.reopen(0);
            return false;
        }
        true
    }

    /// (close all) by the owner, of a lock without readers, unless one of the flags of `stops` is
    /// set.
    fn shut_all(&self, stops: u64) -> bool {
        let mut was = self.look();
        if !Self::LAYOUT.has_no_readers(was) || was.has(stops) {
            return false;
        }
        Self::raise();
        for _ in 0..ATTEMPTS {
            if !Self::LAYOUT.has_no_readers(was) || was.has(stops) {
                break;
            }
            match self.state.compare_exchange(was.0, was.with_level(Self::CLASSES).0, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(other) => was = State(other),
            }
        }
        Self::lower();
        false
    }

    /// One stage: admits the queue, (close), and waits until the readers of the class have left.
    fn shut(&self, index: u32, deadline: Option<Deadline>) -> bool {
        if !self.admit_queue(index, deadline) {
            return false;
        }
        self.close(index);
        self.drain(index, deadline)
    }

    /// (close); (ask) if readers come first. Signal handlers are masked before their class is
    /// closed: a handler that interrupted this thread afterwards would find it closed for ever.
    pub(crate) fn close(&self, index: u32) {
        if Self::READERS_FIRST {
            self.state.fetch_or(State::ASK, Relaxed);
            return sync::interruption_point();
        }
        if Self::LAYOUT.is_handler(index) {
            Self::raise();
        }
        self.state.fetch_add(State::ONE_CLASS, Relaxed);
        sync::interruption_point();
    }

    /// Whether the readers of a closed class have left, as far as the state counts them.
    pub(crate) fn is_drained(&self, index: u32, was: State) -> bool {
        let left = Self::LAYOUT.count(was, index) == 0;
        left && (!Self::READERS_FIRST || self.close_asked())
    }

    /// The same for the readers in a row, too.
    fn is_drained_with_row(&self, index: u32, was: State) -> bool {
        self.is_drained(index, was) && (index > 0 || self.row_is_empty())
    }

    /// Waits until the readers of a closed class have left. False if `deadline` passed first.
    fn drain(&self, index: u32, deadline: Option<Deadline>) -> bool {
        self.drain_state(index, deadline) && (index > 0 || self.drain_row(deadline))
    }

    /// The same for the readers that are not in a row.
    fn drain_state(&self, index: u32, deadline: Option<Deadline>) -> bool {
        let is_drained = |was| self.is_drained(index, was);
        let drained = || is_drained(State(self.state.load(Acquire)));
        // The owner is next.
        if drained() || spin::head_waiter::<PolicyOf<D>>(false, drained) {
            return true;
        }
        self.meter.count(Event::Slept);
        if Self::LAYOUT.is_handler(index) {
            // Signals are masked: short sleeps only.
            return self.event.poll_until(OWNER, deadline, SHORT_SLEEP, drained);
        }
        let drained = || is_drained(State(self.state.fetch_or(State::DRAINING, Acquire)));
        let done = if Self::HAS_EXIT {
            self.exit().wait(deadline, drained)
        } else {
            self.event.poll_until(OWNER, deadline, LONGEST_SLEEP, drained)
        };
        self.state.fetch_and(!State::DRAINING, Relaxed);
        done
    }

    /// Closes all classes, if that needs no waiting. Otherwise the owner must lower the level
    /// again.
    pub(crate) fn try_sift(&self) -> bool {
        let level = self.level();
        if level == Self::CLASSES {
            return true; // It is alone: a reader that is counted has come in vain.
        }
        // A queue whose classes are closed has been passed already, and its flag is needed.
        let queues_are_empty = (level > 0 || self.queue_is_empty(State::LOW))
            && (level > Self::LAYOUT.top() || self.queue_is_empty(State::TOP));
        if !queues_are_empty {
            return false;
        }
        let (at_row, seen) = (self.row() != 0, Seen::default());
        let closes = at_row && level == 0;
        if closes {
            self.close(0);
        }
        // (close all) of open classes is for a lock without a row.
        let done = self.row_was_empty(&seen) && self.shut_all(0) && (at_row || level > 0 || self.row() == 0);
        if done && closes {
            self.attempted_at_row(&seen);
        }
        done
    }

    /// Raises the level to `to`, over classes of threads, if that needs no waiting. Otherwise the
    /// level is what it was.
    pub(crate) fn try_sift_to(&self, to: u32) -> bool {
        let level = self.level();
        // Looks first: to close a class and open it again keeps readers out for a moment. This look
        // is advice, so it is Relaxed; the second one acquires.
        let is_empty = |index| self.is_drained_with_row(index, self.look());
        let may =
            |index| Self::queue_before(index).is_none_or(|flag| self.queue_is_empty(flag)) && is_empty(index);
        if !(level..to).all(may) {
            return false;
        }
        let seen = Seen::default();
        let done = (level..to).all(|index| {
            self.close(index);
            let left = self.is_drained(index, State(self.state.load(Acquire)));
            left && (index > 0 || self.row_was_empty(&seen))
        });
        if !done {
            self.reopen(level);
        } else if level == 0 && self.row() != 0 {
            self.attempted_at_row(&seen);
        }
        done
    }
}
