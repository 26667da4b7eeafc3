//! The protocol of [`AsymMutex`](crate::AsymMutex): the barging mutex, released by a plain store.
//! `PROTOCOL.md` beside this file has the idea, a picture and traces.
//!
//! # Properties
//! - Exclusion; what a holder did happens before the next acquisition returns.
//! - Barging: an arriving thread takes a free mutex, past sleepers too. No bound on waiting.
//! - One read-modify-write to acquire and a plain store to release, if no thread has to sleep.
//! - The store, or the exchange, is the last touch of the mutex: the gate is static, a wake-up goes
//!   by address. So the thread that releases last may free or unmap the mutex at once (law 2).
//! - All-zero is an unlocked mutex. Nothing is allocated, no address is stored: it may be moved
//!   while locked.
//! - Between processes (`Shared`), where the kernel has no `membarrier`, and until it is known to
//!   have one: a release by an exchange, which makes it [`BargingMutex`](crate::BargingMutex).
//!
//! # State
//! The values are those of [`State`]:
//!
//! | from | to | by | label |
//! |---|---|---|---|
//! | `UNLOCKED` | `LOCKED` | an arriving thread, at once or while it spins | (take) |
//! | `UNLOCKED` | `CONTENDED` | a waiter that is about to sleep, by (mark), or has slept, by (take awake) | (mark), (take awake) |
//! | `LOCKED` | `CONTENDED` | a waiter that is about to sleep, inside the gate | (mark) |
//! | `LOCKED`, `CONTENDED` | `CONTENDED` | a notification that requeues a sleeper here, inside the gate | (mark for others) |
//! | `LOCKED`, or `CONTENDED` unseen | `UNLOCKED` | a holder with a pass, by a store. If the gate has changed, it wakes one sleeper | (store) |
//! | `LOCKED` | `UNLOCKED` | the holder, by an exchange | (exchange) |
//! | `CONTENDED` | `UNLOCKED` | the holder, by an exchange, and wakes one sleeper | (exchange) |
//!
//! # Invariants
//! 1. At most one thread holds the mutex: only transitions out of `UNLOCKED` acquire, and only the
//!    holder stores.
//! 2. A waiter sleeps only if the word was `CONTENDED` at that moment: the kernel compares under
//!    its queue's lock.
//! 3. *No sleeper is forgotten.* While a waiter sleeps, one of three holds: the word is
//!    `CONTENDED`; or a wake-up is on its way; or a woken waiter has not yet made (mark) or (take
//!    awake). As in [`BargingMutex`](crate::BargingMutex), but (store) may also end `CONTENDED`. A
//!    mark on a mutex that another thread holds was set inside the gate. So the holder finds the
//!    gate changed (invariant 2 of the gate), and wakes. So does a holder that notifies, (mark for
//!    others). A holder that set its own mark, by (mark) or (take awake) out of `UNLOCKED`, has no
//!    pass.
//! 4. `CONTENDED` may be stale, and a (store) may wake for another mutex of its gate. That costs a
//!    wake-up that meets no sleeper. The reverse does not happen.
//!
//! # Ordering
//! (take), (mark), (take awake) are Acquire and pair with (store) and (exchange), which are
//! Release. One that acquires reads from the very release that freed the mutex. A pass is taken
//! *before* the acquisition that it is for: a mark set in between would be neither in the pass nor
//! in what the acquisition replaces. Between (store) and the look (look back) stands `light`,
//! between (enter) and (mark) `heavy`: this is the store-buffering case, on the mutex and the gate.
//! Without them the release could find an old gate, and its store reach the word after the mark. A
//! futex call carries no ordering.
//!
//! # If the barrier is taken away
//! A gate opens only if the kernel has the fence. If the kernel refuses the fence later, because of
//! a seccomp filter, a mark may get lost. So a waiter then sleeps for a millisecond at most at a
//! time. One whose time is up may have been woken for another, which sleeps without a limit since
//! its own mark was safe. So it wakes a sleeper before it leaves (pass on): that one looks, and
//! marks for itself.
//!
//! # Sources
//! B. LaHaise, L. Torvalds, I. Molnar in the thread of "Generic Mutex Subsystem" (LKML, December
//! 2005). D. Dice, H. Huang, M. Yang, "Asymmetric Dekker Synchronization" (2001), for the
//! handshake. M. Desnoyers, `membarrier(2)`. The waiting
//! rule is [`BargingMutex`](crate::BargingMutex)'s. Here: the gate.

use super::gate::{Gate, Pass};
use crate::BargingState as State;
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

/// The longest sleep of a waiter whose mark may get lost.
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

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

    /// (take) and (take awake): takes the mutex if it is free, leaving `held` in the word.
    #[inline(always)]
    fn take(&self, held: u32) -> bool {
        self.futex.compare_exchange(UNLOCKED, held, Acquire, Relaxed).is_ok()
    }

    /// A poll; it takes a free mutex, leaving `held` in the word.
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

    /// A pass for a thread that is about to acquire.
    #[inline(always)]
    fn pass(&self) -> Pass {
        if Self::PLAIN { self.gate().pass() } else { Pass::NONE }
    }

    /// An acquisition that does not wait: (take).
    #[inline(always)]
    fn arrive(&self) -> Option<Pass> {
        let pass = self.pass();
        if !self.take(LOCKED) {
            return None;
        }
        self.meter.count(Event::Acquired);
        Some(pass)
    }

    /// For an arriving thread that found the mutex taken: spins, then sleeps. `None` if `deadline`
    /// passed first.
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
            self.meter.gave_up();
            return None;
        }
        self.meter.count(Event::Acquired);
        Some(pass)
    }

    /// Sleeps until it acquires or `deadline` passes. Either way it leaves the word marked
    /// (invariant 3), or, if its mark may get lost, passes its wake-up on.
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
                self.pass_on(safe);
                return false;
            }
            self.meter.count(Event::Slept);
            expired = if safe {
                self.futex.wait(CONTENDED, deadline) == Waited::TimedOut
            } else {
                let waited = self.futex.wait(CONTENDED, Some(Deadline::after(LONGEST_SLEEP)));
                waited.interrupts(deadline) || deadline.is_some_and(|deadline| deadline.has_passed())
            };
            // (take awake)
            if spin::closely::<P>(|| self.look(CONTENDED)) {
                self.owe_wake();
                return true;
            }
        }
    }

    /// (pass on): a waiter that leaves wakes a sleeper, unless its last mark was `safe`.
    fn pass_on(&self, safe: bool) {
        if !safe {
            self.owe_wake();
            Self::wake_one(self.futex.key());
        }
    }

    /// (mark): marks the word, inside the gate. Returns the word before, and whether a release will
    /// see the mark.
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

    /// (mark for others): marks the word of a held mutex, inside the gate. It is an exchange even
    /// where the word does not change: a load could be out of date.
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

    /// Counts the wake-up that a mark causes, or (pass on). The release cannot count it: it must
    /// not touch the mutex again.
    #[inline]
    fn owe_wake(&self) {
        self.meter.count(Event::Woke);
    }

    /// (store): a release by a store.
    #[inline(always)]
    fn release_by_store(&self, key: FutexKey<P::Scope>, gate: &Gate, pass: Pass) {
        membarrier::store(&self.futex, UNLOCKED, Release); // From here on the mutex may be gone.
        membarrier::light();
        if !gate.is_as_in(pass) {
            Self::wake_one(key);
        }
    }

    /// (exchange): a release by an exchange.
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

    /// The wake-up that a release owes, or (pass on). By address: after a release the mutex may be
    /// gone.
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

ulocks_core::initial!([P: Policy] RawAsymMutex<P> = Self::new());

// SAFETY:
// * One token at a time: invariant 1.
// * A release happens before the next acquisition returns: section "Ordering".
// * The token says how to release and may get lost, and no address is kept, so it may be forgotten
//   and the mutex moved or dropped.
unsafe impl<P: Policy> raw::RawMutex for RawAsymMutex<P> {
    type Scope = P::Scope;
    type Token = Pass;
    type Condvar = ulocks_core::condvar::Sequence<Self>;
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
        self.meter.released();
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
