//! Queued waiters: such a waiter sleeps until it is the head; the head takes the mutex, reserves it
//! when the bound has passed, or gives up. Labels and invariants are those of `raw`.

use super::bound::Bound;
use super::raw::{ASLEEP, MARKED, RESERVED, RawThroughputMutex};
use super::word::{HEAD, Queue, ThroughputState as State, Ticket};
use core::time::Duration;
use ulocks_core::futex::{Bits, Futex, Local, Waited};
use ulocks_core::membarrier::SLOTS;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::policy::InOneProcess;
use ulocks_core::spin::{self, Look, Spin};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::time::Deadline;
use ulocks_core::{cpu, sync_static};

/// How many places there are: with the bits of a futex, more than a queue has tickets. One in the
/// model worlds.
const PLACES: usize = SLOTS * SLOTS;

sync_static! {
    /// Futexes that are sequences: each counts how often a waiter in it became the head.
    static SEQUENCES: [Futex<Local>; PLACES] = ulocks_core::each!(Futex::new(0); PLACES);
}

/// Where a queued waiter sleeps until it is the head.
///
/// A futex wakes by one bit of 32. If all waiters of a queue slept on one futex, each hand-over
/// would wake one in 32 of them. So they sleep in a table in static memory, and the waiters of one
/// queue have a futex or a bit each. A mutex elsewhere may have the same places. Its waiters are
/// woken in vain then, look, and sleep again.
///
/// A waiter reads the sequence, then its position in the queue (Release), and sleeps while the
/// sequence is what it read. A head that leaves shortens the queue (Acquire), then advances the
/// sequence of the next, then wakes it. If the waiter found another head, it had read the sequence
/// before that was advanced. So it sleeps and is woken, or it does not fall asleep. Without that
/// order it might have read the advanced one (`xtask/litmus/calock-sequence.litmus`).
#[derive(Clone, Copy)]
struct Place {
    sequence: usize,
    bits: Bits,
}

impl Place {
    fn of(mutex: usize, ticket: Ticket) -> Self {
        let ticket = usize::from(ticket.number());
        let home = mutex >> 3 ^ mutex >> 12;
        Self { sequence: home.wrapping_add(ticket) % PLACES, bits: Bits::one((ticket / PLACES) as u32) }
    }
}

/// What the head waiter has done at a look.
enum Settled {
    /// It holds the mutex.
    Acquired,
    /// It has paid what it owed, and is about to leave the queue.
    GaveUp,
    /// It may sleep while the word has this value.
    Asleep(State),
}

impl<P: InOneProcess, B: Bound> RawThroughputMutex<P, B> {
    /// The wait of a waiter with a ticket. False if `deadline` passed first.
    pub(super) fn lock_queued(&self, ticket: Ticket, deadline: Option<Deadline>) -> bool {
        self.wait_to_be_head(ticket);
        let acquired = self.lock_as_head(deadline);
        self.leave_queue();
        acquired
    }

    /// The wait of the head waiter, until it may leave the queue. False if `deadline` passed first.
    fn lock_as_head(&self, deadline: Option<Deadline>) -> bool {
        // The clock is read once, and by heads only.
        let bound = (B::NS > 0).then(|| Deadline::after(Duration::from_nanos(B::NS)));
        let mut due = bound.is_none();
        let mut gives_up = false;
        if due && self.insist() {
            return true;
        }
        loop {
            let asleep = match self.settle(due, gives_up) {
                Settled::Acquired => return true,
                Settled::GaveUp => return false,
                Settled::Asleep(asleep) => asleep,
            };
            let ends_as_due = !due && !Deadline::earlier(bound, deadline).1;
            self.meter.count(Event::Slept);
            let waited = self.futex.wait_bits(asleep.0, HEAD, if ends_as_due { bound } else { deadline });
            let acquired = if waited != Waited::TimedOut {
                spin::closely::<P>(|| self.look_as_head())
            } else if ends_as_due {
                due = true;
                self.insist()
            } else {
                gives_up = true;
                false
            };
            if acquired {
                return true;
            }
        }
    }

    fn place(&self, ticket: Ticket) -> Place {
        Place::of(core::ptr::from_ref(&self.queue).addr(), ticket)
    }

    /// Sleeps until `ticket` is the head of the queue.
    fn wait_to_be_head(&self, ticket: Ticket) {
        let place = self.place(ticket);
        loop {
            let sequence = &SEQUENCES[place.sequence];
            let seen = sequence.load(Relaxed);
            // A read-modify-write, so that (leave) learns of it, or it of (leave).
            // Mutant: Release -> Relaxed: load buffering, by litmus/calock-sequence.litmus.
            if Queue(self.queue.fetch_add(0, Release)).is_head(ticket) {
                return;
            }
            self.meter.count(Event::Slept);
            sequence.wait_bits(seen, place.bits, None);
        }
    }

    /// (leave): takes the head out of the queue, and wakes the next waiter.
    fn leave_queue(&self) {
        let mut queue = self.queue();
        let shorter = loop {
            let shorter = queue.without_head();
            // Mutant: Acquire -> Relaxed: load buffering, by litmus/calock-sequence.litmus.
            match self.queue.compare_exchange(queue.0, shorter.0, Acquire, Relaxed) {
                Ok(_) => break shorter,
                Err(now) => queue = Queue(now),
            }
        };
        if shorter.length() > 0 {
            self.meter.count(Event::Woke);
            let place = self.place(shorter.head());
            SEQUENCES[place.sequence].fetch_add(1, Relaxed);
            SEQUENCES[place.sequence].key().wake_bits(u32::MAX, place.bits);
        }
    }

    /// (take as head): the head waiter acquires a free mutex.
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

    /// (take as head), (give up), or (sleep as head) and perhaps (reserve).
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

    /// (reserve) by the head waiter, which polls closely for a while before it sleeps. True if it
    /// acquired.
    fn insist(&self) -> bool {
        let mut was = self.state();
        while was.is_locked() {
            match self.change(was, was.reserved_on(cpu::current()), false) {
                Ok(()) => break,
                Err(now) => was = now,
            }
        }
        let budget = if P::Spin::WOKEN_NS == 0 { 0 } else { spin::WAITED_FOR_NS };
        spin::closely_for::<P>(budget, || self.look_as_head())
    }
}
