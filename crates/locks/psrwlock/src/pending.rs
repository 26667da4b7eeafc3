//! Writes in steps: how such a write asks for the write side, how it learns when to poll again, and
//! how it sifts.
//!
//! # Properties
//! - A poll does not wait for another thread.
//! - *A poll that fails asks for the write side.* If polls were attempts only, a writer that writes
//!   again and again would win each time. The next release that sees the request keeps the write
//!   side for the write in steps.
//! - *No thread relies on a write in steps.* It may be forgotten, or its process may die. So a
//!   waiting writer gives way to writes in steps for [`GRACE`] at most in each of its waits.
//! - *No news is lost*: see below.
//!
//! # The write side
//!
//! | label | from | to | by |
//! |---|---|---|---|
//! | (Q) | any | `REQUESTED` in `queues`; then `WRITERS` in the state | a poll that finds an owner |
//! | (K) | `OWNED`, `REQUESTED` | `OWNED`, `REQUESTED`, `GRANTED`, and then `L = 0` | a release that has cleared `WRITERS` and sees `REQUESTED`: its last steps are (L) and (Z) |
//! | (T) | `REQUESTED`, `GRANTED` | neither; the thread is the owner | a poll; an attempt; a waiting writer whose grace is over. Also after a fair release, without `REQUESTED`: a writer that has slept |
//! | (V) | `REQUESTED` | not `REQUESTED` | a write in steps that has asked, and has become the owner otherwise or is dropped |
//!
//! After (K) the write side is *reserved*: `OWNED` is set, and no thread is the owner. (T) makes an
//! owner; only one thread can clear `GRANTED`. Readers come and go. If a reserved write side is
//! given back unused, that is (T) and then (G).
//!
//! 1. *One reservation costs the others one grace.* (K) wakes a writer, if one sleeps. It and every
//!    writer that comes later sleep with a timer while the write side is reserved, and then do (T).
//! 2. `REQUESTED` is one bit for all writes in steps. The thread that clears it wakes all that wait
//!    for news. Those that still wait poll and ask again.
//! 3. A fair release sets `GRANTED` for a sleeping writer. If a poll asks then, the write side is
//!    reserved as well, and the woken writer gives way as above.
//!
//! # News
//! A poll reads the event, and then looks. If it fails, a thread may sleep until the event has
//! another value than the one read, or a wake-up comes with the bit given, or a time has passed:
//!
//! 1. *There is an owner.* The bit is [`PENDING`], without a time. The poll has set `REQUESTED` and
//!    then `WRITERS` (Release), after it read the event. A thread that clears `WRITERS` (Acquire)
//!    as the write side becomes free, or clears `REQUESTED`, counts an event after that. If it sees
//!    `REQUESTED`, it wakes `PENDING` after that.
//! 2. *The owner is about to leave*, (L), or has set `GRANTED` already. It may have counted its
//!    event before the poll read it. So the next poll is due after [`SHORT_SLEEP`].
//! 3. *Readers are inside.* The poll sets `DRAINING`, as an owner does that sleeps. The last reader
//!    wakes [`SIFTING`] by address, and counts no event. So the wake-up may be missed, and the next
//!    poll is due after [`LONGEST_SLEEP`].
//! 4. *Readers are queued*, or signal handlers inside. They wake no thread, and are soon gone. The
//!    next poll is due after [`SHORT_SLEEP`].

use crate::class::{Class, Handler};
use crate::configuration::Configuration;
use crate::raw::RawPsRwLock;
use crate::word::{PENDING, Queues, SIFTING, State};
use crate::writer::{LONGEST_SLEEP, SHORT_SLEEP};
use core::cell::Cell;
use core::time::Duration;
use ulocks_core::futex::Bits;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::time::Deadline;

/// How long a waiting writer gives way to writes in steps. A poll that follows its news at once
/// comes in time, if its thread gets a CPU.
pub(crate) const GRACE: Duration = Duration::from_millis(1);

/// What a [`PendingWrite`](crate::PendingWrite) waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Another writer, or an upgradable reader.
    Writer,
    /// Queued readers, which enter first.
    Queue,
    /// Readers of the class of that name, which are inside; it and those below it are shut.
    Readers(&'static str),
    /// Nothing: it may be [finished](crate::PendingWrite::finish).
    Ready,
}

/// What to wait for after a poll: see "News".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// The event before the poll.
    pub(crate) seen: u32,
    pub(crate) bits: Bits,
    pub(crate) at_most: Option<Duration>,
}

/// The result of a poll that does not get the write side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The thread will be woken.
    Owned,
    /// The owner may have counted its event before the poll.
    Leaving,
}

impl Due {
    pub(crate) const fn now(seen: u32) -> Self {
        Self { seen, bits: PENDING, at_most: Some(Duration::ZERO) }
    }

    pub(crate) const fn of_asked(asked: Asked, seen: u32) -> Self {
        let at_most = match asked {
            Asked::Owned => None,
            Asked::Leaving => Some(SHORT_SLEEP),
        };
        Self { seen, bits: PENDING, at_most }
    }

    pub(crate) fn of_stage(stage: Stage, seen: u32) -> Self {
        let at_most = match stage {
            Stage::Ready => Duration::ZERO,
            Stage::Readers(name) if name != Handler::NAME => LONGEST_SLEEP,
            _ => SHORT_SLEEP,
        };
        Self { seen, bits: SIFTING, at_most: Some(at_most) }
    }
}

impl<D: Configuration> RawPsRwLock<D> {
    /// (O), (T), or (Q). `asked` says whether this write has asked before.
    pub(crate) fn poll_own(&self, asked: bool) -> Result<(), Asked> {
        if self.try_own() {
            if asked {
                self.void();
            }
            return Ok(());
        }
        // In this order: a release that sees the second sees the first.
        let queues = Queues(self.queues.fetch_or(Queues::REQUESTED, Relaxed));
        let was = State(self.state.fetch_or(State::WRITERS, Release));
        if !was.is_owned() && self.try_own() {
            self.void();
            return Ok(());
        }
        if was.is_leaving() || queues.is_granted() { Err(Asked::Leaving) } else { Err(Asked::Owned) }
    }

    /// (V) by the owner.
    fn void(&self) {
        if Queues(self.queues.fetch_and(!Queues::REQUESTED, Relaxed)).is_requested() {
            self.wake_pending();
        }
    }

    /// (V) by a write in steps that has asked and is dropped. If the write side is reserved, it
    /// gives that back.
    pub(crate) fn withdraw(&self) {
        if self.claim_newest() {
            self.wait_for_grant();
            self.give_up();
        }
    }

    /// Wakes all writes in steps: `REQUESTED` has been cleared.
    pub(crate) fn wake_pending(&self) {
        // Mutant: Release -> Relaxed: load buffering, by litmus/psrwlock-request.litmus.
        self.event.fetch_add(1, Release);
        self.event.key().wake_bits(u32::MAX, PENDING);
    }

    /// Whether a write in steps asks for the write side.
    pub(crate) fn is_requested(&self) -> bool {
        Queues(self.queues.load(Relaxed)).is_requested()
    }

    /// Whether the write side is kept for a write in steps.
    pub(crate) fn is_reserved(&self) -> bool {
        let queues = Queues(self.queues.load(Relaxed));
        queues.is_granted() && queues.is_requested()
    }

    /// (T), if the releasing thread has left. If another thread makes (T) just before, and then
    /// (K), this thread polls with a timer until that one has left.
    pub(crate) fn take_reserved(&self) -> bool {
        let was = self.look();
        self.is_reserved() && was.level() == 0 && !was.has(State::DRAINING) && self.take_grant()
    }

    /// Goes on as far as that needs no waiting, and says what it waits for. For the owner.
    pub(crate) fn poll_sift(&self) -> Stage {
        loop {
            let was = State(self.state.load(Relaxed));
            let level = Self::LAYOUT.level(was);
            let is_drained = |was| level == 0 || self.is_drained_with_slots(level - 1, was, &Cell::new(0));
            if !is_drained(was) {
                let stage = Stage::Readers(Self::LAYOUT.name(level - 1));
                if Self::LAYOUT.is_handler(level - 1) {
                    self.reopen_handlers();
                    return stage;
                }
                if is_drained(State(self.state.fetch_or(State::DRAINING, Relaxed))) {
                    continue;
                }
                return stage;
            }
            self.clear_draining();
            if level == Self::CLASSES {
                return Stage::Ready;
            }
            if Self::queue_before(level).is_some_and(|flag| !self.queue_is_empty(flag)) {
                return Stage::Queue;
            }
            self.close(level);
        }
    }

    /// Clears `DRAINING`, if a poll has left it set. For the owner, before it does anything else
    /// than polls.
    pub(crate) fn clear_draining(&self) {
        if self.look().has(State::DRAINING) {
            self.state.fetch_and(!State::DRAINING, Relaxed);
        }
    }

    /// Opens the last class again, that of signal handlers, in which no thread sleeps.
    fn reopen_handlers(&self) {
        self.reopen_to(Self::CLASSES, Self::CLASSES - 1);
        Self::lower();
    }

    /// The event at this moment.
    pub(crate) fn event(&self) -> u32 {
        // Mutant: Acquire -> Relaxed: load buffering, by litmus/psrwlock-request.litmus.
        self.event.load(Acquire)
    }

    /// The address of the event.
    pub(crate) fn event_address(&self) -> usize {
        self.event.key().address()
    }

    /// Sleeps until there is news, or until `deadline`. False if that has passed.
    pub(crate) fn wait_for_news(&self, due: Due, deadline: Option<Deadline>) -> bool {
        let (until, _) = Deadline::earlier(due.at_most.map(Deadline::after), deadline);
        self.event.wait_bits(due.seen, due.bits, until);
        !deadline.is_some_and(|deadline| deadline.has_passed())
    }
}
