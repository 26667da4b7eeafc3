//! Queued waiters: such a waiter sleeps until it is the head; the head takes the mutex, reserves it
//! when the bound has passed, or gives up. Labels and invariants are those of `raw`.

use super::bound::Bound;
use super::deaths::Watch;
use super::raw::{ASLEEP, MARKED, Outcome, RESERVED, RawThroughputMutex};
use super::word::{HEAD, Queue, ThroughputState as State, Ticket};
use core::time::Duration;
use ulocks_core::futex::{Scope, Waited};
use ulocks_core::meter::{Event, Meter};
use ulocks_core::spin::{self, Look, Spin};
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, cpu};

/// How long a head waiter that has reserved polls before it sleeps, in nanoseconds, unless its
/// policy never spins. About as long as a sleep and a wake-up take.
pub(super) const RESERVER_NS: u32 = 40_000;

/// What the head waiter has done at a look.
enum Settled {
    /// It holds the mutex.
    Acquired,
    /// It has paid what it owed, and is about to leave the queue.
    GaveUp,
    /// It may sleep while the word has this value.
    Asleep(State),
}

impl<P: Policy, B: Bound> RawThroughputMutex<P, B> {
    /// The wait of a waiter with a ticket.
    pub(super) fn lock_queued(
        &self,
        ticket: Ticket,
        watch: &mut Watch,
        deadline: Option<Deadline>,
    ) -> Outcome {
        if !self.wait_to_be_head(ticket, watch) {
            return Outcome::PassedOver;
        }
        // The clock is read once, and by heads only.
        let bound = (B::NS > 0).then(|| Deadline::after(Duration::from_nanos(B::NS)));
        let mut due = bound.is_none();
        let mut gives_up = false;
        if due && self.insist() {
            return self.leave_queue(ticket, Outcome::Acquired);
        }
        loop {
            let asleep = match self.settle(due, gives_up) {
                Settled::Acquired => return self.leave_queue(ticket, Outcome::Acquired),
                Settled::GaveUp => return self.leave_queue(ticket, Outcome::GaveUp),
                Settled::Asleep(asleep) => asleep,
            };
            let ends_as_due = !due && !Deadline::earlier(bound, deadline).1;
            // The head waiter watches, too. It finds nothing to repair but its own marks, which
            // others may have cleared.
            let (until, watches) =
                if ends_as_due { (bound, false) } else { self.watch(watch, asleep, self.queue(), deadline) };
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
                return self.leave_queue(ticket, Outcome::Acquired);
            }
            if !P::Scope::PRIVATE && !self.queue().is_head(ticket) {
                return Outcome::PassedOver;
            }
        }
    }

    /// Sleeps until `ticket` is the head of the queue. False if it was passed over.
    fn wait_to_be_head(&self, ticket: Ticket, watch: &mut Watch) -> bool {
        loop {
            // A read-modify-write: a sleeper must have seen the value that the kernel compares.
            let queue = Queue(self.queue.fetch_add(0, Relaxed));
            if queue.is_head(ticket) || !queue.contains(ticket) {
                return queue.is_head(ticket);
            }
            self.meter.count(Event::Slept);
            let (until, _) = self.watch(watch, self.state(), queue, None);
            if self.queue.wait_bits(queue.0, ticket.bits(), until) == Waited::TimedOut {
                self.end_watch(watch);
            }
        }
    }

    /// (Q2): takes `ticket`, the head, out of the queue, and wakes the next. If it is not the head,
    /// its owner was taken for dead, and may have acquired or given up in place of the present
    /// head: wakes that one.
    fn leave_queue(&self, ticket: Ticket, outcome: Outcome) -> Outcome {
        let mut queue = self.queue();
        while P::Scope::PRIVATE || queue.is_head(ticket) {
            let shorter = queue.without_head();
            match self.queue.compare_exchange(queue.0, shorter.0, Relaxed, Relaxed) {
                Ok(_) => {
                    self.wake_next(shorter);
                    return outcome;
                }
                Err(now) => queue = Queue(now),
            }
        }
        self.wake_heads();
        outcome
    }

    /// Wakes the new head of the queue. A waiter that shares its bit looks and sleeps again.
    pub(super) fn wake_next(&self, queue: Queue) {
        if queue.length() > 0 {
            self.meter.count(Event::Woke);
            self.queue.key().wake_bits(u32::MAX, queue.head().bits());
        }
    }

    /// (L4): the head waiter acquires a free mutex.
    fn take_as_head(&self, was: State) -> Result<(), State> {
        // The queue does not get shorter behind a head.
        let pays = self.queue().length() <= 1;
        let now = State::held_on(cpu::current()).with(if pays { MARKED } else { 0 });
        self.change(was, now, true)?;
        self.meter.count(if was.is_reserved() { Event::Reserved } else { Event::Woken });
        Ok(())
    }

    /// A poll by the head waiter; it takes a free mutex.
    #[inline]
    fn look_as_head(&self) -> Look {
        let was = self.state();
        if !was.is_locked() {
            if self.take_as_head(was).is_ok() { Look::Acquired } else { Look::Taken }
        } else if !was.is_reserved() && Self::is_here(was) {
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
                self.take_as_head(was).map(|()| Settled::Acquired)
            } else if gives_up {
                let left = was.without(ASLEEP | RESERVED).with(MARKED);
                self.change(was, left, false).map(|()| Settled::GaveUp)
            } else {
                let asleep = if due { was.reserved_on(cpu::current()) } else { was }.with(ASLEEP);
                self.change(was, asleep, false).map(|()| Settled::Asleep(asleep))
            };
            match done {
                Ok(settled) => return settled,
                Err(now) => was = now,
            }
        }
    }

    /// (R) by the head waiter, which polls closely for a while before it sleeps. True if it
    /// acquired.
    fn insist(&self) -> bool {
        let mut was = self.state();
        while was.is_locked() {
            match self.change(was, was.reserved_on(cpu::current()), false) {
                Ok(()) => break,
                Err(now) => was = now,
            }
        }
        let budget = if P::Spin::WOKEN_NS == 0 { 0 } else { RESERVER_NS };
        spin::closely_for::<P>(budget, || self.look_as_head())
    }
}
