//! What a waiter with a ticket does: it sleeps until it is the head of the line; the head takes the
//! mutex, reserves it when its time is up, or gives up. Labels and invariants are those of `raw`.

use super::bound::Bound;
use super::deaths::Watch;
use super::raw::{ASLEEP, MARKED, RESERVED, RawThroughputMutex, Turn};
use super::word::{HEAD, Line, ThroughputState as State, Ticket};
use core::time::Duration;
use ulocks_core::futex::{Scope, Waited};
use ulocks_core::meter::{Event, Meter};
use ulocks_core::spin::{self, Look, Spin};
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, cpu};

/// How long a reserver looks before it sleeps, in nanoseconds, unless its policy never spins: about
/// as long as a sleep and a wake-up take.
const RESERVER_NS: u32 = 40_000;

/// What the head of the line comes to when it looks.
enum Settled {
    /// It holds the mutex.
    Acquired,
    /// It owes nobody anything, and is about to leave the line.
    GaveUp,
    /// It may sleep while the word has this value.
    Asleep(State),
}

impl<P: Policy, B: Bound> RawThroughputMutex<P, B> {
    /// A waiter with a ticket.
    pub(super) fn lock_in_line(&self, ticket: Ticket, watch: &mut Watch, deadline: Option<Deadline>) -> Turn {
        if !self.wait_for_turn(ticket, watch) {
            return Turn::PassedOver;
        }
        // The clock is read once, and by heads only.
        let bound = (B::NS > 0).then(|| Deadline::after(Duration::from_nanos(B::NS)));
        let mut due = bound.is_none();
        let mut gives_up = false;
        if due && self.insist() {
            return self.leave_line(ticket, Turn::Acquired);
        }
        loop {
            let asleep = match self.settle(due, gives_up) {
                Settled::Acquired => return self.leave_line(ticket, Turn::Acquired),
                Settled::GaveUp => return self.leave_line(ticket, Turn::GaveUp),
                Settled::Asleep(asleep) => asleep,
            };
            let ends_as_due = !due && !Deadline::earlier(bound, deadline).1;
            // Also the head watches. It finds nothing to repair but its own marks, which others may
            // have cleared.
            let (until, watches) =
                if ends_as_due { (bound, false) } else { self.watch(watch, asleep, self.line(), deadline) };
            self.meter.count(Event::Slept);
            let waited = self.futex.wait_bits(asleep.0, HEAD, until);
            *watch = Watch::NEW;
            let acquired = if waited != Waited::TimedOut {
                spin::closely::<P>(|| self.look_as_head())
            } else if ends_as_due {
                due = true;
                self.insist()
            } else {
                gives_up = !watches;
                false
            };
            if acquired {
                return self.leave_line(ticket, Turn::Acquired);
            }
            if !P::Scope::PRIVATE && !self.line().is_head(ticket) {
                return Turn::PassedOver;
            }
        }
    }

    /// Sleeps until `ticket` is the head of the line. False if it was passed over.
    fn wait_for_turn(&self, ticket: Ticket, watch: &mut Watch) -> bool {
        loop {
            // A read-modify-write: who sleeps must have seen what the kernel compares with.
            let line = Line(self.line.fetch_add(0, Relaxed));
            if line.is_head(ticket) || !line.contains(ticket) {
                return line.is_head(ticket);
            }
            self.meter.count(Event::Slept);
            let (until, _) = self.watch(watch, self.state(), line, None);
            if self.line.wait_bits(line.0, ticket.bits(), until) == Waited::TimedOut {
                self.end_watch(watch);
            }
        }
    }

    /// (Q2): takes `ticket` out of the line, of which it is the head, and wakes the next. If it is
    /// not, its owner was taken for dead, and may have acquired or given up in place of the head
    /// that is: wakes that one.
    fn leave_line(&self, ticket: Ticket, turn: Turn) -> Turn {
        let mut line = self.line();
        while P::Scope::PRIVATE || line.is_head(ticket) {
            let shorter = line.without_head();
            match self.line.compare_exchange(line.0, shorter.0, Relaxed, Relaxed) {
                Ok(_) => {
                    self.wake_next(shorter);
                    return turn;
                }
                Err(now) => line = Line(now),
            }
        }
        self.wake_heads();
        turn
    }

    /// Wakes the head of a line that was not head before. Who shares its bits looks and sleeps
    /// again.
    pub(super) fn wake_next(&self, line: Line) {
        if line.length() > 0 {
            self.meter.count(Event::Woke);
            self.line.key().wake_bits(u32::MAX, line.head().bits());
        }
    }

    /// (L4): the head acquires a free mutex.
    fn take_in_turn(&self, was: State) -> Result<(), State> {
        // The line does not get shorter behind a head.
        let pays = self.line().length() <= 1;
        let now = State::held_on(cpu::current()).with(if pays { MARKED } else { 0 });
        self.change(was, now, true)?;
        self.meter.count(if was.is_reserved() { Event::Reserved } else { Event::Woken });
        Ok(())
    }

    /// What the head sees; it takes a free mutex.
    #[inline]
    fn look_as_head(&self) -> Look {
        let was = self.state();
        if !was.is_locked() {
            if self.take_in_turn(was).is_ok() { Look::Acquired } else { Look::Taken }
        } else if Self::holder_was_here(was) {
            Look::Hopeless
        } else {
            Look::Taken
        }
    }

    /// (L4), (T), or (S2) and perhaps (R).
    fn settle(&self, due: bool, gives_up: bool) -> Settled {
        let mut was = self.state();
        loop {
            let done = if !was.is_locked() {
                self.take_in_turn(was).map(|()| Settled::Acquired)
            } else if gives_up {
                let left = was.without(ASLEEP | RESERVED).with(MARKED);
                self.change(was, left, false).map(|()| Settled::GaveUp)
            } else {
                let asleep = was.with(ASLEEP | if due { RESERVED } else { 0 });
                self.change(was, asleep, false).map(|()| Settled::Asleep(asleep))
            };
            match done {
                Ok(settled) => return settled,
                Err(now) => was = now,
            }
        }
    }

    /// (R) by the head, which looks closely for a while before it sleeps. True if it acquired.
    fn insist(&self) -> bool {
        let mut was = self.state();
        while was.is_locked() {
            match self.change(was, was.with(RESERVED), false) {
                Ok(()) => break,
                Err(now) => was = now,
            }
        }
        let budget = if P::Spin::WOKEN_NS == 0 { 0 } else { RESERVER_NS };
        spin::closely_for::<P>(budget, || self.look_as_head())
    }
}
