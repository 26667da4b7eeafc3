//! How a writer becomes the owner, and an upgradable reader a writer. The steps and numbers are
//! those of [`raw`](super::raw).

use crate::configuration::Configuration;
use crate::raw::{PolicyOf, RawPsRwLock, Wait};
use crate::word::{Layout, OWNER, Queues, State, WRITERS};
use core::time::Duration;
use ulocks_core::futex::{Bits, SHORT_SLEEP, Waited};
use ulocks_core::meter::{Event, Meter};
use ulocks_core::signal::Mask;
use ulocks_core::spin::{self, Look, Spin};
use ulocks_core::sync::Ordering::{Acquire, Relaxed};
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, sync};

/// The longest sleep of an owner between two polls of the readers that it waits for. It is what a
/// lost wake-up costs at most. Behind one slow reader it makes 160 to 185 wake-ups a second, on two
/// virtual CPUs of a Xeon.
pub(crate) const LONGEST_SLEEP: Duration = Duration::from_millis(1);

impl<D: Configuration> RawPsRwLock<D> {
    /// Whether signal handlers may read, so that a writer has to mask those of its own thread.
    const MASKS: bool = {
        let handlers = Self::LAYOUT.is_handler(Self::CLASSES - 1);
        assert!(
            !handlers || D::Mask::MASKS,
            "a lock that signal handlers read needs a mask that keeps them off: `Soft` or `Hard`"
        );
        handlers
    };

    /// Acquires for writing. False if `deadline` passed first.
    #[inline(always)]
    pub(crate) fn write_at(&self, deadline: Option<Deadline>) -> bool {
        let written = self.write_at_once() || self.write_contended(deadline);
        self.meter.ended(written);
        written
    }

    /// The same for as long as it takes.
    #[inline(always)]
    pub(crate) fn write_for_ever(&self) {
        if !self.write_at_once() {
            self.wait_to_write();
        }
        self.meter.ended(true);
    }

    /// Apart from its caller, as `wait_to_read`.
    #[cold]
    #[inline(never)]
    fn wait_to_write(&self) {
        self.write_contended(None);
    }

    /// (close all) of a lock that no thread uses or waits for.
    #[inline(always)]
    pub(crate) fn write_at_once(&self) -> bool {
        // Looks before it masks handlers: an attempt may be one of very many.
        if self.hint_has_row() || (Self::MASKS && self.look() != State::UNLOCKED) {
            return false;
        }
        Self::raise();
        let written = self.state.compare_exchange(0, Self::LAYOUT.written().0, Acquire, Relaxed).is_ok();
        if !written {
            Self::lower();
        } else if self.row() != 0 {
            // A reader has got the lock a row since the look.
            self.give_up();
            return false;
        }
        written
    }

    #[cold]
    #[inline(never)]
    fn write_contended(&self, deadline: Option<Deadline>) -> bool {
        self.meter.count(Event::Contended);
        if !self.own(deadline) {
            return false;
        }
        let written = self.sift(Self::CLASSES, deadline);
        if !written {
            self.give_up();
        }
        written
    }

    /// Acquires for writing if that needs no waiting.
    pub(crate) fn try_write_at(&self) -> bool {
        let written = self.write_at_once() || self.try_write_owned();
        if written {
            self.meter.count(Event::Acquired);
        }
        written
    }

    fn try_write_owned(&self) -> bool {
        // Without an owner the level is 0, and the readers in the state are inside.
        let was = self.look();
        let would_fail = !Self::LAYOUT.has_no_readers(was) || !self.row_is_empty();
        if would_fail || !self.try_own() {
            return false;
        }
        let written = self.try_sift();
        if !written {
            self.give_up();
        }
        written
    }

    /// (own), if there is no owner.
    pub(crate) fn try_own(&self) -> bool {
        !self.look().is_owned() && self.take(0)
    }

    /// (own), which also sets `mark`.
    pub(crate) fn take(&self, mark: u64) -> bool {
        !State(self.state.fetch_or(State::OWNED | mark, Acquire)).is_owned()
    }

    /// (own), after a wait. False if `deadline` passed first.
    pub(crate) fn own(&self, deadline: Option<Deadline>) -> bool {
        if self.own_spinning() {
            return true;
        }
        if deadline.is_some_and(|deadline| deadline.has_passed()) {
            // It may not have looked: without patience nobody spins.
            return self.try_own();
        }
        // Invariant 10, here and in `sift`, `close`.
        sync::without_unwinding(|| {
            let counted = self.enter_sleepers();
            let owns = self.own_asleep(deadline);
            if counted {
                self.leave_sleepers();
            }
            owns
        })
    }

    /// (own) by a spinning writer.
    fn own_spinning(&self) -> bool {
        let patience = <PolicyOf<D> as Policy>::Spin::FIRST_NS;
        let look = || self.look_to_own();
        spin::closely_for::<PolicyOf<D>>(patience, look) || spin::backing_off::<PolicyOf<D>>(look)
    }

    /// (own) by a writer that spins.
    pub(crate) fn look_to_own(&self) -> Look {
        match self.look() {
            was if !was.is_owned() && self.take(0) => Look::Acquired,
            // Other writers sleep, and one of them is next.
            was if Self::LAYOUT.has_sleeper(was) => Look::Saturated,
            _ => Look::Taken,
        }
    }

    /// (own) by a writer that sleeps until then: invariant 7. False if `deadline` passed first.
    fn own_asleep(&self, deadline: Option<Deadline>) -> bool {
        let (mut mark, mut was_woken) = (0, false);
        loop {
            let Some(Wait { event, exit, was }) = self.own_step(mark, was_woken) else { return true };
            if was.is_leaving() {
                // This sleep may use up a wake-up, so it counts as one.
                (mark, was_woken) = (State::WRITERS, true);
                if !self.wait_until_left(exit, WRITERS, 0, deadline) {
                    return self.leave_writers();
                }
                continue;
            }
            self.meter.count(Event::Slept);
            match self.event.wait_bits(event, WRITERS, deadline) {
                Waited::TimedOut => return self.leave_writers(),
                // Not cleared again: this writer may have looked too early.
                waited => was_woken |= waited == Waited::Woken,
            }
            // The release that woke this writer may have cleared `WRITERS` while others sleep:
            // invariant 7.
            mark = State::WRITERS;
        }
    }

    /// What a writer does before it sleeps: `None` if it is the owner. `mark` is `WRITERS` if it
    /// has slept before.
    #[inline(always)]
    pub(crate) fn own_step(&self, mark: u64, was_woken: bool) -> Option<Wait> {
        loop {
            let (event, exit) = (self.event.load(Acquire), self.seen());
            if (!self.look().is_owned() && self.take(mark)) || (was_woken && self.take_grant()) {
                return None;
            }
            let was = State(self.state.fetch_or(State::WRITERS, Relaxed));
            if was.is_owned() {
                return Some(Wait { event, exit, was });
            }
        }
    }

    /// For a waiter that has `seen` the exit, set its flag, and found an owner that is about to
    /// leave: sleeps until an owner has left, or between processes until this one has, or has
    /// opened the class of `level`. Invariant 9. False if `deadline` passed first.
    pub(crate) fn wait_until_left(
        &self,
        seen: u32,
        bits: Bits,
        level: u32,
        deadline: Option<Deadline>,
    ) -> bool {
        self.meter.count(Event::Slept);
        let has_left = || {
            let was = self.look();
            // The next owner, if it waits for a queue, looks like an owner that leaves.
            !was.is_leaving() || was.level() < level
        };
        if Self::HAS_EXIT {
            self.exit().sleep(seen, deadline)
        } else {
            self.event.poll_until(bits, deadline, LONGEST_SLEEP, has_left)
        }
    }

    /// (count sleeper), one more, if there is room for it; whether there was. It is one addition,
    /// because readers change the word all the time.
    pub(crate) fn enter_sleepers(&self) -> bool {
        let counts = Self::LAYOUT.counts_sleeper(self.look());
        if counts {
            self.state.fetch_add(Layout::ONE_SLEEPER, Relaxed);
        }
        counts
    }

    /// (count sleeper), one less, by a writer that was counted.
    pub(crate) fn leave_sleepers(&self) {
        self.state.fetch_sub(Layout::ONE_SLEEPER, Relaxed);
    }

    /// A writer gives up: it sets `WRITERS`, so that the owner's release wakes another in its
    /// place. If there is no owner, it has acquired. A wake-up may have come at the last moment,
    /// and with it the write side of a fair release.
    #[cold]
    pub(crate) fn leave_writers(&self) -> bool {
        if self.take(State::WRITERS) {
            return true;
        }
        let takes = self.claim_newest();
        if takes {
            self.wait_for_grant();
        }
        takes
    }

    /// (take grant) by a writer that has slept; it waits until the releasing thread has opened the
    /// classes and left, which is its last touch.
    fn take_grant(&self) -> bool {
        let takes = self.claim();
        if takes {
            self.wait_for_grant();
        }
        takes
    }

    /// Waits until the thread that has granted the write side to this one has left.
    fn wait_for_grant(&self) {
        // Other writers may sleep: invariant 7.
        self.state.fetch_or(State::WRITERS, Relaxed);
        self.event.poll_until(OWNER, None, SHORT_SLEEP, || {
            let was = self.look();
            was.level() == 0 && !was.has(State::DRAINING)
        });
    }

    /// Clears `GRANTED`: (take grant), or the releasing thread takes the write side back.
    pub(crate) fn claim(&self) -> bool {
        Queues(self.queues.load(Relaxed)).is_granted() && self.claim_newest()
    }

    /// The same, always by a read-modify-write: a load might return a value from before a wake-up.
    fn claim_newest(&self) -> bool {
        Queues(self.queues.fetch_and(!Queues::GRANTED, Acquire)).is_granted()
    }

    /// An upgradable reader acquires. False if `deadline` passed first.
    #[inline]
    pub(crate) fn own_to_read(&self, deadline: Option<Deadline>) -> bool {
        let owns = self.take(0) || {
            self.meter.count(Event::Contended);
            self.own(deadline)
        };
        self.meter.ended(owns);
        owns
    }

    /// An upgradable reader acquires, if that needs no waiting.
    #[inline]
    pub(crate) fn try_own_to_read(&self) -> bool {
        let owns = self.try_own();
        if owns {
            self.meter.count(Event::Acquired);
        }
        owns
    }

    /// An upgradable reader becomes a writer. False if `deadline` passed first; then it is an
    /// upgradable reader still.
    pub(crate) fn upgrade_until_done(&self, deadline: Option<Deadline>) -> bool {
        let level = self.level();
        let done = self.sift(Self::CLASSES, deadline);
        if !done {
            self.reopen(level);
        }
        done
    }

    /// As [`upgrade_until_done`](Self::upgrade_until_done), if that needs no waiting.
    pub(crate) fn try_upgrade_at(&self) -> bool {
        let level = self.level();
        let done = self.try_sift();
        if !done {
            self.reopen(level);
        }
        done
    }

    #[inline(always)]
    pub(crate) fn raise() {
        if Self::MASKS {
            sync::without_unwinding(D::Mask::raise);
        }
    }

    #[inline(always)]
    pub(crate) fn lower() {
        if Self::MASKS {
            sync::without_unwinding(D::Mask::lower);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::{BULK, HANDLER, NESTED, URGENT};
    use crate::configuration::Sifted;
    use core::time::Duration;
    use std::thread;
    use ulocks_core::Private;
    use ulocks_core::spin::NoSpin;

    /// Writers that sleep, some of which give up.
    fn sleepers_are_forgotten<const CLASSES: u8>() {
        let lock = RawPsRwLock::<Sifted<CLASSES, Private<NoSpin>>>::new();
        let in_time = || Some(Deadline::after(Duration::from_micros(150)));
        thread::scope(|scope| {
            for writer in 0..6 {
                let lock = &lock;
                scope.spawn(move || {
                    for round in 0..40 {
                        let deadline = if (writer + round) % 3 == 0 { in_time() } else { None };
                        if lock.write_at(deadline) {
                            thread::sleep(Duration::from_micros(20));
                            lock.unlock_write_at();
                        }
                    }
                });
            }
        });
        // `WRITERS` may be stale.
        assert_eq!(lock.look().0 & !State::WRITERS, 0, "{:#x}", lock.look().0);
    }

    #[test]
    fn the_number_of_sleepers_comes_down_to_zero() {
        sleepers_are_forgotten::<BULK>();
        sleepers_are_forgotten::<{ BULK | URGENT }>();
        sleepers_are_forgotten::<{ BULK | URGENT | NESTED }>();
        sleepers_are_forgotten::<{ BULK | URGENT | NESTED | HANDLER }>();
    }

    /// Each reader that finds its class closed is counted for a moment.
    #[test]
    fn an_attempt_to_upgrade_succeeds_after_all_were_shut_out() {
        let lock = RawPsRwLock::<Sifted<{ BULK | URGENT }>>::new();
        assert!(lock.try_own_to_read() && lock.try_sift_to(2));
        lock.state.fetch_add(RawPsRwLock::<Sifted<{ BULK | URGENT }>>::LAYOUT.one(0), Relaxed); // (arrive)
        assert!(lock.try_upgrade_at(), "a reader that has come in vain is taken for one inside");
        lock.depart(0);
        lock.unlock_write_at();
        assert_eq!(lock.look(), State::UNLOCKED);
    }
}
