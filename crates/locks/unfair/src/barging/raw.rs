//! The protocol of [`BargingMutex`](crate::BargingMutex): Molnar's mutex in user space, on three
//! values of one futex.
//!
//! # Properties
//! - Exclusion; what a holder did happens before the next acquisition returns.
//! - Barging: a thread that finds the mutex free takes it, sleepers or not. No bound on waiting.
//! - One read-modify-write to acquire and one to release when no thread contends; no system call
//!   unless a waiter sleeps.
//! - What releases is one read-modify-write, and the last touch: a wake-up that follows names the
//!   word by its address only. So the thread that releases last may free or unmap the mutex at
//!   once, whatever other threads have been inside (law 2).
//! - All-zero is an unlocked mutex. Nothing is allocated, nothing is registered, no address is
//!   stored: a mutex may live in a global allocator or in memory that processes map at different
//!   addresses, and may be moved while locked.
//!
//! # State
//! The values are those of [`BargingState`](super::BargingState). Each transition is one
//! read-modify-write:
//!
//! | from | to | by | label |
//! |---|---|---|---|
//! | `UNLOCKED` | `LOCKED` | an arriving thread, at once or while it spins | (take) |
//! | `UNLOCKED` | `CONTENDED` | a waiter that is about to sleep, or has slept | (mark) (take awake) |
//! | `LOCKED` | `CONTENDED` | a waiter that is about to sleep | (mark) |
//! | `LOCKED`, `CONTENDED` | `CONTENDED` | a notification that moves a sleeper here | (mark for others) |
//! | `LOCKED` | `UNLOCKED` | the holder | (release) |
//! | `CONTENDED` | `UNLOCKED` | the holder, which then wakes one sleeper | (release and wake) |
//!
//! # Invariants
//! 1. At most one thread holds the mutex: only transitions out of `UNLOCKED` acquire.
//! 2. No thread sleeps unless the word was `CONTENDED` at that moment: the kernel compares under
//!    its queue's lock.
//! 3. *No sleeper is forgotten.* While a waiter sleeps, the word is `CONTENDED`, or a wake-up is on
//!    its way, or a woken waiter is awake that has not yet come to (mark) or (take awake).
//!    `CONTENDED` ends in (release and wake) only, which wakes; and a waiter that was in the kernel
//!    stays a debtor until it has set `CONTENDED` again: it acquires by (mark) or (take awake),
//!    never by (take), and a timed one leaves only after (mark) has shown the mutex to be held and
//!    has marked it. So its own release, or the present holder's, wakes the next.
//! 4. `CONTENDED` may be stale, which costs one wake-up that finds no thread, never the other way
//!    round.
//!
//! # The waiting rule
//! Molnar's: wake one, and no other until that one had its round. Here it needs no bit: (release
//! and wake) clears the mark together with the lock, so that threads that come and go meanwhile
//! release without a system call, until the woken one has run and marks the word again. What makes
//! it fast is which thread spins, and how (the measurements and what else was tried are in
//! `benches/results/NOTES-2026-11-24.md`):
//! - An arriving thread spins before it queues, also while others sleep, for longer than a critical
//!   section of a few microseconds lasts, and leaves a holder alone that writes
//!   ([`spin`](ulocks_core::spin)): otherwise a CPU idles while the one waiter in flight is on its
//!   way.
//! - It has half that patience when it sees `CONTENDED`: then the holder itself was asleep or has
//!   sleepers to wake, which happens now and then on a busy lock and all the time on a saturated
//!   one.
//! - A woken waiter that finds the mutex taken again looks closely for a while before it marks the
//!   word: as long as it has not, releases cost nothing, and the gap between two critical sections
//!   of one thread suffices it.
//!
//! A loser sleeps at the tail of the kernel's queue: unlike Molnar's, it does not keep its place.
//!
//! # Ordering
//! Each acquisition, (take), (mark) or (take awake), is Acquire and pairs with (release) and
//! (release and wake), which are Release. All of them are read-modify-writes of one word, so one
//! that acquires reads from the very release that freed the mutex. The loads in the spins are
//! Relaxed hints. A futex call carries no ordering.
//!
//! # Sources
//! I. Molnar, "Generic Mutex Subsystem" (LKML, 19 December 2005): wake one at a time. U. Drepper,
//! "Futexes Are Tricky" (2003): the three values. Here: the spinning, the timed wait, and the
//! waiting rule.

use super::word::BargingState as State;
use ulocks_core::futex::{Futex, FutexKey, Waited};
use ulocks_core::meter::{Event, Meter};
use ulocks_core::spin::{self, Look};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, Private, raw};

const UNLOCKED: u32 = State::UNLOCKED.0;
const LOCKED: u32 = State::LOCKED.0;
const CONTENDED: u32 = State::CONTENDED.0;

/// The raw mutex, without data: one futex, and the counters if the policy has any.
#[derive(Debug)]
#[repr(C)]
pub struct RawBargingMutex<P: Policy = Private> {
    futex: Futex<P::Scope>,
    meter: P::Meter,
}

impl<P: Policy> RawBargingMutex<P> {
    ulocks_core::const_fn! {
        /// An unlocked mutex; its bytes are all zero.
        pub fn new() -> Self {
            Self { futex: Futex::new(UNLOCKED), meter: P::Meter::INIT }
        }
    }

    /// The counters.
    pub fn meter(&self) -> &P::Meter {
        &self.meter
    }

    /// (take) and (take awake): takes the mutex if it is free, leaving `held` in the word.
    #[inline(always)]
    fn take(&self, held: u32) -> bool {
        self.futex.compare_exchange(UNLOCKED, held, Acquire, Relaxed).is_ok()
    }

    /// A spinning waiter's look at the mutex; it takes it if it is free, leaving `held` in the
    /// word.
    #[inline]
    fn look(&self, held: u32) -> Look {
        match self.futex.load(Relaxed) {
            UNLOCKED if self.take(held) => Look::Acquired,
            CONTENDED => Look::Saturated,
            _ => Look::Taken,
        }
    }

    /// An arriving thread that found the mutex taken: spins, then sleeps. False if `deadline`
    /// passed first.
    #[cold]
    #[inline(never)]
    fn lock_contended(&self, deadline: Option<Deadline>) -> bool {
        self.meter.count(Event::Contended);
        if spin::backing_off::<P>(|| self.look(LOCKED)) {
            self.meter.count(Event::Spun);
            return true;
        }
        self.lock_asleep(deadline)
    }

    /// A waiter that sleeps, or has slept elsewhere on this futex: it leaves the word marked,
    /// whether it acquires or its `deadline` passes (invariant 3).
    fn lock_asleep(&self, deadline: Option<Deadline>) -> bool {
        let mut expired = false;
        loop {
            let was = self.futex.swap(CONTENDED, Acquire); // (mark)
            if was != CONTENDED {
                self.owe_wake();
            }
            if was == UNLOCKED {
                return true;
            }
            if expired {
                return false;
            }
            self.meter.count(Event::Slept);
            expired = self.futex.wait(CONTENDED, deadline) == Waited::TimedOut;
            // (take awake)
            if spin::closely::<P>(|| self.look(CONTENDED)) {
                self.owe_wake();
                return true;
            }
        }
    }

    /// Counts the wake-up that comes of having marked the word: `CONTENDED` ends in one (release
    /// and wake). The release cannot count it, for it must not touch the mutex again.
    #[inline]
    fn owe_wake(&self) {
        self.meter.count(Event::Woke);
    }

    /// The wake-up a release owes. By key: the mutex may be gone.
    #[cold]
    #[inline(never)]
    fn wake_one(key: FutexKey<P::Scope>) {
        key.wake(1);
    }
}

impl<P: Policy> raw::Metered for RawBargingMutex<P> {
    type Meter = P::Meter;

    fn meter(&self) -> &P::Meter {
        &self.meter
    }
}

impl<P: Policy> Default for RawBargingMutex<P> {
    fn default() -> Self {
        Self::new()
    }
}

ulocks_core::initial!([P: Policy] RawBargingMutex<P> = Self::new());

// SAFETY:
// * One token at a time: invariant 1.
// * A release happens before the next acquisition returns: section "Ordering".
// * The token is nothing and no address is kept, so it may be forgotten and the mutex moved or
//   dropped.
unsafe impl<P: Policy> raw::RawMutex for RawBargingMutex<P> {
    type Scope = P::Scope;
    type Token = ();
    type Condvar = ulocks_core::condvar::Sequence<Self>;
    const CONDVAR_NS: u32 = <P::Spin as spin::Spin>::CONDVAR_NS;

    #[inline]
    fn lock(&self) {
        if !self.take(LOCKED) {
            self.lock_contended(None);
        }
        self.meter.count(Event::Acquired);
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        let taken = self.take(LOCKED);
        if taken {
            self.meter.count(Event::Acquired);
        }
        taken.then_some(())
    }

    #[inline]
    fn lock_until(&self, deadline: Deadline) -> Option<()> {
        let taken = self.take(LOCKED) || (!deadline.has_passed() && self.lock_contended(Some(deadline)));
        self.meter.ended(taken);
        taken.then_some(())
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        self.meter.released();
        let key = self.futex.key();
        // (release), (release and wake); from here on the mutex may be gone.
        if self.futex.swap(UNLOCKED, Release) == CONTENDED {
            Self::wake_one(key);
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.futex.load(Relaxed) != UNLOCKED
    }

    #[inline]
    fn requeue_key(&self) -> Option<FutexKey<P::Scope>> {
        Some(self.futex.key())
    }

    fn mark_for_requeued(&self) -> bool {
        let mut held = self.futex.load(Relaxed);
        while held != UNLOCKED {
            // (mark for others). An exchange also where the word does not change: a load could be
            // out of date.
            match self.futex.compare_exchange(held, CONTENDED, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => held = now,
            }
        }
        false
    }

    fn lock_requeued(&self) {
        self.lock_asleep(None);
        self.meter.count(Event::Acquired);
    }
}
