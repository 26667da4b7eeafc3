//! Where owners sleep until readers have left, and waiters until an owner has left.
//!
//! (depart) is the last touch of a reader: the lock may be gone when it is over. So the event that
//! tells a sleeping owner of it is not in the lock. It is in a table of the process, by the lock's
//! address, and a departing reader can count it after (depart). Locks that share a place wake one
//! another's owners now and then, which look and sleep again. A [row](super::rows) has an exit of
//! its own.
//!
//! *No owner is forgotten.* It reads the event, and then looks for readers; it sleeps only while
//! the event is what it has read.
//! - A reader in the state: the look is a read-modify-write that sets `DRAINING`. If it finds the
//!   reader, that reader's (depart) comes later, finds `DRAINING`, and the last one counts an event
//!   after that, Release. The owner has read the event before its look, Acquire. So it has not read
//!   the count that follows from that look (`xtask/litmus/psrwlock-exit.litmus`). The same holds
//!   for a waiter whose (flag) an owner that leaves has found.
//! - A reader in a slot: the owner says that it waits, and then looks at the slots. The reader
//!   leaves its slot, and then looks whether an owner waits. Both have a fence in between, as in
//!   [`readers`](super::readers), so one of the two sees the other.
//!
//! Between processes there is no such table: the owner polls with a timer, and a wake-up may be
//! lost.

use crate::configuration::Configuration;
use crate::raw::RawPsRwLock;
use crate::word::State;
use core::pin::Pin;
use core::ptr;
use core::task::Waker;
use crossbeam_utils::CachePadded;
use ulocks_core::Policy;
use ulocks_core::futex::{Bits, Futex, Local, Scope, Waited};
use ulocks_core::queue::Wakers;
use ulocks_core::sleep::{self, TaskSleep};
use ulocks_core::sync::Ordering::{Acquire, Release};
use ulocks_core::sync::{place_of, places};
use ulocks_core::time::Deadline;

/// How many there are. An owner that waits uses one.
const EXITS: usize = places(64);

/// The place of some locks.
pub(crate) struct Exit {
    /// How often sleepers were told.
    left: Futex<Local>,
}

ulocks_core::sync_table! {
    // SAFETY: no reference to it is in a value: each is of one call of a lock.
    unsafe static TABLE: [CachePadded<Exit>; EXITS] = ulocks_core::each!(CachePadded::new(Exit::new()); EXITS);
}

impl Exit {
    ulocks_core::const_fn! {
        pub(crate) fn new() -> Self {
            Self { left: Futex::new(0) }
        }
    }

    /// The exit of the lock at `address`.
    #[inline]
    pub(crate) fn of(address: usize) -> &'static Self {
        let table: &'static [CachePadded<Self>; EXITS] = &TABLE;
        &table[place_of(address, EXITS)]
    }

    /// Tells all sleepers that a reader or an owner has left.
    #[cold]
    pub(crate) fn tell(&self, wakers: &mut Wakers) {
        self.left.fetch_add(1, Release);
        sleep::wake(self.left.key(), u32::MAX, Bits::ANY, wakers);
    }

    /// The same, by a thread that has nothing left to do for others.
    #[cold]
    pub(crate) fn tell_last(&self) {
        let mut wakers = Wakers::new();
        self.tell(&mut wakers);
        wakers.wake();
    }

    /// The event, to be read before the look.
    #[inline(always)]
    pub(crate) fn seen(&self) -> u32 {
        self.left.load(Acquire)
    }

    /// As [`sleep`](Self::sleep), of a task. False if the event was another already.
    pub(crate) fn sleep_as_task(&self, seen: u32, sleep: Pin<&mut TaskSleep>, waker: Waker) -> bool {
        sleep.fall_asleep(&self.left, seen, Bits::ANY, waker)
    }

    /// Sleeps while the event is what was `seen`. False if `deadline` passed first.
    pub(crate) fn sleep(&self, seen: u32, deadline: Option<Deadline>) -> bool {
        self.left.wait(seen, deadline) != Waited::TimedOut
    }

    /// Sleeps until the readers `have_left`. False if `deadline` passed first.
    pub(crate) fn wait(&self, deadline: Option<Deadline>, mut have_left: impl FnMut() -> bool) -> bool {
        let mut in_time = true;
        loop {
            let seen = self.seen();
            if have_left() {
                return true;
            }
            if !in_time {
                return false;
            }
            in_time = self.sleep(seen, deadline);
        }
    }
}

impl<D: Configuration> RawPsRwLock<D> {
    /// Whether an exit is in reach of all that use the lock.
    pub(crate) const HAS_EXIT: bool = <<D::Policy as Policy>::Scope as Scope>::PRIVATE;

    /// After a step that clears `DRAINING`, or a flag of waiters, and before which the state was
    /// `was`: if the owner looked like one that leaves, waiters that have set a flag may sleep at
    /// the exit (invariant 9).
    #[inline]
    pub(crate) fn tell_after_leaving(address: usize, was: u64, wakers: &mut Wakers) {
        let was = State(was);
        if Self::HAS_EXIT && was.is_leaving() && was.has(State::QUEUED | State::WRITERS) {
            Exit::of(address).tell(wakers);
        }
    }

    /// What a waiter has to see before it sets its flag.
    #[inline(always)]
    pub(crate) fn seen(&self) -> u32 {
        if Self::HAS_EXIT { self.exit().seen() } else { 0 }
    }

    /// The exit of this lock.
    #[inline(always)]
    pub(crate) fn exit(&self) -> &'static Exit {
        Exit::of(ptr::from_ref(self).addr())
    }
}
