//! The protocol of [`AsymMutex`](crate::AsymMutex): the barging mutex, released by a plain store.
//! `PROTOCOL.md` beside this file tells it step by step.
//!
//! # The question of 2005
//! When Molnar posted his mutex, Ben LaHaise wished for a release like that of a spinlock, without
//! "a locked, serialising instruction". Linus Torvalds answered that it is hard: a spinlock may be
//! overwritten, but a mutex has to know whether somebody waits. "So I suspect you can't avoid
//! serializing the unlock path for a mutex. The issue of 'was there contention while I held it'
//! fundamentally *is* a serializing question" (LKML, 19 December 2005).
//!
//! He was right about what must be paid, and since Linux 4.14 it can be paid by somebody else. A
//! waiter that is going to sleep is about to spend microseconds. It serialises *the others*:
//! `membarrier` makes every CPU that runs this process pass a full fence, and the release itself
//! needs none (`ulocks_core::membarrier`).
//!
//! That alone is not enough, and here is the trap. The obvious release looks at the word, and
//! stores 0 if it reads `LOCKED`:
//!
//! | holder | waiter |
//! |---|---|
//! | loads the word: `LOCKED`, nobody waits | |
//! | *is preempted* | marks it `CONTENDED` |
//! | | makes its heavy fence, finds `CONTENDED` still there, sleeps |
//! | stores `UNLOCKED` and wakes nobody | sleeps for ever |
//!
//! A fence orders what was done; the holder's store was not done yet. A question that is asked
//! before the store is answered too early, however it is fenced. So the release stores first and
//! asks afterwards. And then it must not ask the mutex, which may be gone (law 2), but a word in
//! static memory: the [`gate`](super::gate).
//!
//! # Properties
//! - Exclusion; what a holder did happens before the next acquisition returns.
//! - Barging: whoever finds the mutex free takes it, sleepers or not. No bound on waiting.
//! - One read-modify-write to acquire and a plain store to release when nobody contends, or nobody
//!   has to sleep for it.
//! - The store, or the exchange, is the last touch of the mutex: the gate is static, a wake-up goes
//!   by address. So the thread that releases last may free or unmap the mutex at once (law 2).
//! - All-zero is an unlocked mutex. Nothing is allocated, no address is stored: it may be moved
//!   while locked.
//! - Between processes (`Shared`), where the kernel has no `membarrier`, and until it is known to
//!   have one: a release by an exchange, which makes it [`Mutex`](crate::Mutex).
//!
//! # State
//! The values are those of [`State`]:
//!
//! | from | to | by | label |
//! |---|---|---|---|
//! | `UNLOCKED` | `LOCKED` | an arrival, at once or while it spins | (L1) |
//! | `UNLOCKED` | `CONTENDED` | a waiter that is about to sleep, or has slept | (L2) (L3) |
//! | `LOCKED` | `CONTENDED` | a waiter that is about to sleep, inside the gate | (L2) |
//! | `LOCKED`, `CONTENDED` | `CONTENDED` | a notification that moves a sleeper here, inside the gate | (M) |
//! | `LOCKED`, or `CONTENDED` unawares | `UNLOCKED` | a holder with a pass, by a store. If the gate has changed, it wakes one sleeper | (U1) |
//! | `LOCKED` | `UNLOCKED` | the holder, by an exchange | (U2) |
//! | `CONTENDED` | `UNLOCKED` | the holder, by an exchange, and wakes one sleeper | (U2) |
//!
//! # Invariants
//! 1. At most one thread holds the mutex: only transitions out of `UNLOCKED` acquire, and only the
//!    holder stores.
//! 2. Nobody sleeps unless the word was `CONTENDED` at that moment: the kernel compares under its
//!    queue's lock.
//! 3. *No sleeper is forgotten.* While somebody sleeps, the word is `CONTENDED`, or a wake-up is on
//!    its way, or a woken waiter is awake that has not yet come to (L2) or (L3). As in
//!    [`Mutex`](crate::Mutex), but that `CONTENDED` may also end in (U1). A mark on a mutex that
//!    another holds was set inside the gate, so that the holder finds the gate changed (invariant 2
//!    of the gate), and wakes. So does a holder that notifies, (M). A holder that set its own mark,
//!    by (L2) or (L3) out of `UNLOCKED`, has no pass.
//! 4. `CONTENDED` may be stale, and a (U1) may wake for another mutex of its gate: a wake-up that
//!    finds nobody, never the other way round.
//!
//! # Ordering
//! Each (L) is Acquire and pairs with (U1) and (U2), which are Release. An (L) that acquires reads
//! from the very (U) that freed the mutex. A pass is taken *before* the (L) that it is for: a mark
//! set in between would be neither in the pass nor in what (L) replaces. Between (U1) and the look
//! (G7) stands `light`, between (G1) and (L2) `heavy`: this is the store-buffering case, on the
//! mutex and the gate. Without them the release could find an old gate, and its store reach the
//! word after the mark. A futex call carries no ordering.
//!
//! # If the barrier is taken away
//! A gate has opened because the kernel had the fence. If it refuses the fence later (a seccomp
//! filter came between), a mark may get lost, and a waiter sleeps for a millisecond at most at a
//! time.
//!
//! # Sources
//! B. LaHaise, L. Torvalds, I. Molnar in the thread of "Generic Mutex Subsystem" (LKML, December
//! 2005). D. Dice, H. Huang, M. Yang, "Asymmetric Dekker Synchronization" (2001), for the
//! handshake, which they use to revoke biased locks. M. Desnoyers, `membarrier(2)`. The waiting
//! rule is [`Mutex`](crate::Mutex)'s. Here: the gate.

use super::gate::{Gate, Pass};
use crate::State;
use core::time::Duration;
use ulocks_core::futex::{Futex, FutexKey, Scope, Waited};
use ulocks_core::membarrier;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::spin::{self, Look};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, Private, raw};

const UNLOCKED: u32 = State::UNLOCKED.0;
const LOCKED: u32 = State::LOCKED.0;
const CONTENDED: u32 = State::CONTENDED.0;

/// How long a waiter sleeps at a time whose mark may get lost.
const NAP: Duration = Duration::from_millis(1);

/// The raw mutex, without data: one futex, and the counters if the policy has any.
#[derive(Debug)]
#[repr(C)]
pub struct RawAsymMutex<P: Policy = Private> {
    futex: Futex<P::Scope>,
    meter: P::Meter,
}

impl<P: Policy> RawAsymMutex<P> {
    /// Whether releases may be plain at all: `membarrier` reaches one process.
    const PLAIN: bool = <P::Scope as Scope>::PRIVATE;

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

    /// (L1) and (L3): takes the mutex if it is free, leaving `held` in the word.
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

    /// The gate of this mutex.
    #[inline(always)]
    fn gate(&self) -> &'static Gate {
        Gate::of(self.futex.key().address())
    }

    /// The pass of who is about to acquire.
    #[inline(always)]
    fn pass(&self) -> Pass {
        if Self::PLAIN { self.gate().pass() } else { Pass::NONE }
    }

    /// An acquisition that does not wait: (L1).
    #[inline(always)]
    fn arrive(&self) -> Option<Pass> {
        let pass = self.pass();
        if !self.take(LOCKED) {
            return None;
        }
        self.meter.count(Event::Acquired);
        Some(pass)
    }

    /// An arrival that found the mutex taken: spins, then sleeps. `None` if `deadline` passed
    /// first.
    #[cold]
    #[inline(never)]
    fn lock_contended(&self, deadline: Option<Deadline>) -> Option<Pass> {
        self.meter.count(Event::Contended);
        let mut pass = Pass::NONE;
        let look = || {
            pass = self.pass();
            self.look(LOCKED)
        };
        if spin::backing_off::<P>(look) {
            self.meter.count(Event::Spun);
        } else if self.lock_asleep(deadline) {
            pass = Pass::NONE;
        } else {
            return None;
        }
        self.meter.count(Event::Acquired);
        Some(pass)
    }

    /// A waiter that sleeps: it leaves the word marked, whether it acquires or its `deadline`
    /// passes (invariant 3).
    fn lock_asleep(&self, deadline: Option<Deadline>) -> bool {
        let mut expired = false;
        loop {
            let (was, safe) = self.mark();
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
            expired = if safe {
                self.futex.wait(CONTENDED, deadline) == Waited::TimedOut
            } else {
                self.futex.wait(CONTENDED, Some(Deadline::after(NAP)));
                deadline.is_some_and(|deadline| deadline.has_passed())
            };
            // (L3)
            if spin::closely::<P>(|| self.look(CONTENDED)) {
                self.owe_wake();
                return true;
            }
        }
    }

    /// (L2): marks the word, inside the gate. What the word was, and whether the mark is safe from
    /// releases that do not see it.
    fn mark(&self) -> (u32, bool) {
        let mark = || self.futex.swap(CONTENDED, Acquire);
        if !Self::PLAIN {
            return (mark(), true);
        }
        let gate = self.gate();
        let safe = gate.enter();
        let was = mark();
        gate.leave();
        (was, safe)
    }

    /// (M): marks the word, if the mutex is held. Inside the gate. An exchange also where the word
    /// does not change: a load could be out of date.
    fn mark_held(&self) -> bool {
        let mut held = self.futex.load(Relaxed);
        while held != UNLOCKED {
            match self.futex.compare_exchange(held, CONTENDED, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => held = now,
            }
        }
        false
    }

    /// Counts the wake-up that comes of having marked the word. The release cannot count it, for it
    /// must not touch the mutex again.
    #[inline]
    fn owe_wake(&self) {
        self.meter.count(Event::Woke);
    }

    /// (U1): a release by a store.
    #[inline(always)]
    fn release_by_store(&self, key: FutexKey<P::Scope>, gate: &Gate, pass: Pass) {
        membarrier::store(&self.futex, UNLOCKED, Release); // From here on the mutex may be gone.
        membarrier::light();
        if !gate.is_as_in(pass) {
            Self::wake_one(key);
        }
    }

    /// (U2): a release by an exchange.
    #[inline(never)]
    fn release_by_exchange(&self, key: FutexKey<P::Scope>) {
        let gate = self.gate();
        // From here on the mutex may be gone.
        match self.futex.swap(UNLOCKED, Release) {
            CONTENDED => Self::wake_one(key),
            _ if Self::PLAIN => gate.pay_rent(),
            _ => {}
        }
    }

    /// The wake-up a release owes. By key: the mutex may be gone.
    #[cold]
    #[inline(never)]
    fn wake_one(key: FutexKey<P::Scope>) {
        key.wake(1);
    }
}

impl<P: Policy> raw::Metered for RawAsymMutex<P> {
    type Meter = P::Meter;

    fn meter(&self) -> &P::Meter {
        &self.meter
    }
}

impl<P: Policy> Default for RawAsymMutex<P> {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY:
// * One token at a time: invariant 1.
// * A release happens before the next acquisition returns: section "Ordering".
// * The token says how to release and may get lost, and no address is kept, so it may be forgotten
//   and the mutex moved or dropped.
unsafe impl<P: Policy> raw::RawMutex for RawAsymMutex<P> {
    ulocks_core::raw_init!(Self::new());

    type Scope = P::Scope;
    type Token = Pass;
    const CONDVAR_NS: u32 = <P::Spin as spin::Spin>::CONDVAR_NS;

    #[inline]
    fn lock(&self) -> Pass {
        match self.arrive() {
            Some(pass) => pass,
            None => self.lock_contended(None).unwrap_or(Pass::NONE),
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<Pass> {
        self.arrive()
    }

    #[inline]
    fn lock_until(&self, deadline: Deadline) -> Option<Pass> {
        match self.arrive() {
            None if !deadline.has_passed() => self.lock_contended(Some(deadline)),
            arrived => arrived,
        }
    }

    #[inline]
    unsafe fn unlock(&self, pass: Pass) {
        let key = self.futex.key();
        if pass.is_some() {
            self.release_by_store(key, self.gate(), pass);
        } else {
            self.release_by_exchange(key);
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
        if self.futex.load(Relaxed) == UNLOCKED {
            return false;
        }
        let gate = self.gate();
        // A mark that may get lost must not be relied on.
        let is_marked = gate.enter() && self.mark_held();
        gate.leave();
        is_marked
    }

    fn lock_requeued(&self) -> Pass {
        self.lock_asleep(None);
        self.meter.count(Event::Acquired);
        Pass::NONE
    }
}
