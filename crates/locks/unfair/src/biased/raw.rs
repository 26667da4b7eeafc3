//! The protocol of [`BiasedMutex`](crate::BiasedMutex): an asymmetric mutex that a thread can have
//! *biased* to itself. The thread that has the bias, its *owner*, locks and unlocks by plain
//! stores.
//!
//! # The idea and its history
//! Java's monitors were biased from 2006 on: an object belonged to the first thread that locked
//! it, until another thread wanted it. The other thread *revoked* the bias: it stopped the owner.
//! Java gave this up in 2021 (JEP 374), because stopping a thread there is complicated and slow.
//! Here nothing is stopped. A thread that revokes a bias shuts the [`gate`](crate::asym::gate)
//! that [`AsymMutex`](crate::AsymMutex) has for its releases. That is one `membarrier`.
//!
//! The owner and a revoking thread make Dekker's handshake:
//!
//! | owner | revoking thread |
//! |---|---|
//! | stores `held` | shuts the gate, with a heavy fence |
//! | light fence | |
//! | looks whether the gate is as before | looks at `held` |
//!
//! At least one of them sees the other.
//!
//! # Properties
//! - Exclusion; what a holder did happens before the next acquisition returns.
//! - The owner acquires and releases by a plain store each, while the gate is open.
//! - Barging, as with the inner mutex. No bound on waiting.
//! - The store, or the last access of the inner mutex, is the last touch of the mutex (law 2).
//! - All-zero is an unlocked mutex without an owner. Nothing is allocated, no address is stored:
//!   it may be moved while locked.
//! - Between processes (`Shared`) it is the inner mutex. The bias is never used.
//!
//! # State
//! Beside the inner mutex, an [`AsymMutex`](crate::AsymMutex), there are three words:
//!
//! | word | value | meaning |
//! |---|---|---|
//! | `bias` | 0 | no thread has been the owner |
//! | | a thread id | that thread was the owner, and has come back since |
//! | | `BIASED` and a thread id | that thread is the owner |
//! | | `BIASED`, `REVOKED` and a thread id | that thread was the owner, and may be on its way in |
//! | `held` | `FREE`, `HELD` | whether the owner is inside by its bias |
//! | `recent` | part of a thread id, a number | which thread acquired the inner mutex last, and how often in a row |
//!
//! | transition | by | label |
//! |---|---|---|
//! | `held` to `HELD` | the owner that has a pass and finds the inner mutex free | (B1) |
//! | `held` to `FREE` | the owner, at its release, or because the gate has changed since the pass | (B2) |
//! | no owner, or (B5), to owner | a thread that has acquired the inner mutex often in a row | (B3) |
//! | owner to revoked | another thread, with the inner mutex, inside the gate | (B4) |
//! | revoked to a thread id | the former owner, with the inner mutex: it has come back | (B5) |
//!
//! A thread acquires by (B1) and a look at the gate. Otherwise it acquires the inner mutex. If
//! another thread has the bias, it then makes (B4). If the bias is revoked, it waits until `held`
//! is `FREE`, and sleeps on `held` itself as long as that is `HELD`.
//!
//! # Invariants
//! 1. `bias` and `recent` change under the inner mutex only. `BIASED` with a thread id is set by
//!    that thread only.
//! 2. *Only the thread that `bias` names stores to `held`*, or the thread that it passed its
//!    guard to. A former owner may be on its way to (B1) for as long as it is preempted. So
//!    another thread becomes the owner only after (B5), by which the former owner shows that it
//!    is elsewhere.
//! 3. *A thread that has acquired the inner mutex and has read `FREE` after (B4) is alone.* Take
//!    an owner `O` with a pass. If (B4) happened before the pass was taken, then `O` finds the
//!    bias revoked, since (G4) is Release and (G6) is Acquire. Otherwise the revoking thread `R`
//!    entered the gate after the pass. There was a heavy fence since the gate was open: `R`'s
//!    own, or one that `R` learnt of by (G1) from (G3). If `O`'s light fence came after it, `O`
//!    finds the gate changed, and retreats by (B2). If it came before, `R` sees (B1), and waits
//!    for (B2).
//! 4. *An owner does not acquire what it holds.* By its bias it finds `HELD`. With the inner
//!    mutex, it finds that locked. So a second acquisition goes to the inner mutex, or waits for
//!    `FREE`: it is a deadlock.
//! 5. *A thread that waits for `FREE` does not sleep for ever.* It sleeps only while `held` is
//!    `HELD`: the kernel compares. The (B2) that comes later was not visible to it after the
//!    heavy fence of invariant 3. So the light fence behind (B2) comes after that heavy one, and
//!    the owner finds the gate changed, and wakes by the address of `held`.
//! 6. A deadline that passes while `held` is `HELD` leaves the bias revoked. The next thread with
//!    the inner mutex waits for `FREE` in its turn.
//!
//! # The rule
//! A revocation costs a heavy fence. To avoid it, as many read-modify-writes may be spent as one
//! such fence takes ([`membarrier::worth`]). So a thread becomes the owner when it has acquired
//! the inner mutex that often in a row. The cost is at most twice the optimum, by the argument of
//! the gate. A mutex that changes hands never gets an owner, and after a former owner that does
//! not come back there is no other one.
//!
//! # Ordering
//! (B1) is Relaxed: what the owner has to see is its own, or came with the inner mutex, under
//! which it became the owner. (B2) is Release and pairs with the Acquire load of `FREE` by a
//! thread that waits for it. The look at `held` before (B1) is Acquire for a thread that has got
//! the id of an owner that has ended.
//!
//! # If the barrier is taken away
//! If the kernel refuses the fence after it has granted it, because of a seccomp filter, then a
//! bias cannot be revoked. A thread that needs to do so panics.
//!
//! # Sources
//! D. Dice, H. Huang, M. Yang, "Asymmetric Dekker Synchronization" (2001). K. Russell, D.
//! Detlefs, "Eliminating synchronization-related atomic operations with biased locking and bulk
//! rebiasing" (OOPSLA 2006). JEP 374, "Deprecate and Disable Biased Locking". Here: the gate as
//! the handshake, and the inner mutex that all threads but the owner use.

use crate::asym::{Gate, Pass, RawAsymMutex};
use core::fmt;
use ulocks_core::futex::{Futex, FutexKey, Scope, Waited};
use ulocks_core::membarrier;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::raw::RawMutex as _;
use ulocks_core::spin::{self, Look};
use ulocks_core::sync::AtomicU32;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, Private, raw, tid};

/// Values of `held`.
const FREE: u32 = 0;
const HELD: u32 = 1;

/// Flags of `bias`, above the bits of a thread id.
const BIASED: u32 = 1 << 30;
const REVOKED: u32 = 1 << 31;

/// How far the part of a thread id is shifted in `recent`, above the number.
const THREAD_SHIFT: u32 = 16;
const NUMBER: u32 = (1 << THREAD_SHIFT) - 1;

/// The raw mutex, without data.
#[repr(C, align(16))]
pub struct RawBiasedMutex<P: Policy = Private> {
    bias: AtomicU32,
    held: Futex<P::Scope>,
    recent: AtomicU32,
    inner: RawAsymMutex<P>,
}

/// How a thread holds the mutex.
#[derive(Clone, Copy, Debug)]
pub struct Hold {
    by_bias: bool,
    pass: Pass,
}

/// The inner mutex, held. It is released if the thread gives up or panics.
struct Inner<'a, P: Policy> {
    mutex: &'a RawAsymMutex<P>,
    pass: Pass,
}

impl<P: Policy> Drop for Inner<'_, P> {
    fn drop(&mut self) {
        // SAFETY: the mutex was acquired with this token, and nothing else releases it.
        unsafe { self.mutex.unlock(self.pass) };
    }
}

/// How long a thread waits for an owner to leave.
#[derive(Clone, Copy)]
enum Patience {
    None,
    Until(Option<Deadline>),
}

impl<P: Policy> RawBiasedMutex<P> {
    /// Whether a thread can become the owner at all: `membarrier` reaches one process.
    const BIASES: bool = <P::Scope as Scope>::PRIVATE;

    ulocks_core::const_fn! {
        /// An unlocked mutex; its bytes are all zero.
        pub fn new() -> Self {
            Self {
                bias: AtomicU32::new(0),
                held: Futex::new(FREE),
                recent: AtomicU32::new(0),
                inner: RawAsymMutex::new(),
            }
        }
    }

    /// The counters.
    pub fn meter(&self) -> &P::Meter {
        self.inner.meter()
    }

    /// The gate of this mutex.
    #[inline(always)]
    fn gate(&self) -> &'static Gate {
        Gate::of(self.held.key().address())
    }

    /// An acquisition by the owner: (B1).
    #[inline(always)]
    fn lock_by_bias(&self) -> Option<Hold> {
        if !Self::BIASES {
            return None;
        }
        let gate = self.gate();
        let pass = gate.pass();
        if !pass.is_some() || self.bias.load(Relaxed) != BIASED | tid::current() {
            return None;
        }
        // Invariant 4.
        // Mutant: Acquire -> Relaxed: no model has two threads of one id.
        if self.inner.is_locked() || self.held.load(Acquire) != FREE {
            return None;
        }
        membarrier::store(&self.held, HELD, Relaxed); // (B1)
        membarrier::light();
        if !gate.is_as_in(pass) {
            self.retreat();
            return None;
        }
        self.meter().count(Event::Acquired);
        Some(Hold { by_bias: true, pass })
    }

    /// An acquisition by another thread than the owner. Out of line, so that the owner's path is
    /// short.
    #[inline(never)]
    fn lock_inner(&self) -> Hold {
        loop {
            if let Some(hold) = self.settle(self.inner.lock(), Patience::Until(None)) {
                return hold;
            }
        }
    }

    /// The release that goes with it.
    ///
    /// # Safety
    /// The inner mutex was acquired with `pass`.
    #[inline(never)]
    unsafe fn unlock_inner(&self, pass: Pass) {
        // SAFETY: the caller's promise.
        unsafe { self.inner.unlock(pass) };
    }

    /// (B2), if the gate has changed since the pass. A thread that revokes may have seen (B1).
    #[cold]
    #[inline(never)]
    fn retreat(&self) {
        let key = self.held.key();
        // Mutant: Release -> Relaxed: in the models the heavy fence orders what the owner did before.
        membarrier::store(&self.held, FREE, Release);
        key.wake(1);
    }

    /// (B2), at a release.
    #[inline(always)]
    fn release_by_store(&self, pass: Pass) {
        let (key, gate) = (self.held.key(), self.gate());
        membarrier::store(&self.held, FREE, Release); // From here on the mutex may be gone.
        membarrier::light();
        if !gate.is_as_in(pass) {
            Self::wake(key);
        }
    }

    /// Wakes a thread that revokes. By address: the mutex may be gone.
    #[cold]
    #[inline(never)]
    fn wake(key: FutexKey<P::Scope>) {
        key.wake(1);
    }

    /// For a thread that has just acquired the inner mutex. `None` if it has released it again,
    /// because an owner did not leave in time.
    #[inline]
    fn settle(&self, pass: Pass, patience: Patience) -> Option<Hold> {
        let hold = Hold { by_bias: false, pass };
        if !Self::BIASES {
            return Some(hold);
        }
        let (me, bias) = (tid::current(), self.bias.load(Relaxed));
        let is_former = bias & REVOKED != 0 && bias != BIASED | REVOKED | me;
        let is_free = bias & BIASED == 0 || (is_former && self.held.load(Acquire) == FREE);
        if !is_free && !self.await_free(bias, me, pass, patience) {
            return None;
        }
        let is_long = self.count(me);
        if is_long && (bias & BIASED == 0 || bias == BIASED | REVOKED | me) {
            self.bias.store(BIASED | me, Relaxed); // (B3)
        }
        Some(hold)
    }

    /// Counts an acquisition of the inner mutex. Whether there have been enough in a row.
    #[inline]
    fn count(&self, me: u32) -> bool {
        let recent = self.recent.load(Relaxed);
        let mine = me << THREAD_SHIFT;
        let number = if recent & !NUMBER == mine { recent & NUMBER } else { 0 };
        let is_long = number >= membarrier::worth().min(NUMBER);
        if !is_long {
            self.recent.store(mine | (number + 1), Relaxed);
        }
        is_long
    }

    /// For a mutex that has an owner or had one: (B4) and (B5), and waits until `held` is free.
    /// False if that takes longer than `patience`: then the inner mutex is released.
    #[cold]
    #[inline(never)]
    fn await_free(&self, bias: u32, me: u32, pass: Pass, patience: Patience) -> bool {
        let inner = Inner { mutex: &self.inner, pass };
        if bias & REVOKED == 0 && bias != BIASED | me {
            self.revoke(bias);
        }
        if !self.await_owner(patience) {
            return false;
        }
        if bias == BIASED | REVOKED | me {
            self.bias.store(me, Relaxed); // (B5)
        }
        core::mem::forget(inner);
        true
    }

    /// (B4).
    fn revoke(&self, bias: u32) {
        let gate = self.gate();
        let is_shut = gate.enter();
        if is_shut {
            self.bias.store(bias | REVOKED, Relaxed); // (B4)
        }
        gate.leave();
        assert!(
            is_shut,
            "a BiasedMutex belongs to another thread, and the kernel refuses the membarrier that it \
             granted before: permit membarrier in the seccomp filter, or use another mutex"
        );
    }

    /// Waits until `held` is free. False if that takes longer than `patience`.
    fn await_owner(&self, patience: Patience) -> bool {
        let is_free = || self.held.load(Acquire) == FREE;
        if is_free() {
            return true;
        }
        let Patience::Until(deadline) = patience else { return false };
        if spin::backing_off::<P>(|| if is_free() { Look::Acquired } else { Look::Taken }) {
            return true;
        }
        loop {
            self.meter().count(Event::Slept);
            let waited = self.held.wait(HELD, deadline);
            if is_free() {
                return true;
            }
            if waited == Waited::TimedOut {
                return false;
            }
        }
    }
}

impl<P: Policy> raw::Metered for RawBiasedMutex<P> {
    type Meter = P::Meter;

    fn meter(&self) -> &P::Meter {
        self.inner.meter()
    }
}

impl<P: Policy> fmt::Debug for RawBiasedMutex<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bias = self.bias.load(Relaxed);
        let state = match bias & (BIASED | REVOKED) {
            0 | REVOKED => "former_owner",
            BIASED => "owner",
            _ => "revoked_owner",
        };
        f.debug_struct("RawBiasedMutex")
            .field(state, &(bias & !(BIASED | REVOKED)))
            .field("is_locked", &self.is_locked())
            .finish_non_exhaustive()
    }
}

impl<P: Policy> Default for RawBiasedMutex<P> {
    fn default() -> Self {
        Self::new()
    }
}

ulocks_core::initial!([P: Policy] RawBiasedMutex<P> = Self::new());

// SAFETY:
// * One token at a time: invariants 3 and 4, and the inner mutex's.
// * A release happens before the next acquisition returns: section "Ordering".
// * The token says how to release and may get lost, and no address is kept, so it may be forgotten
//   and the mutex moved or dropped.
unsafe impl<P: Policy> raw::RawMutex for RawBiasedMutex<P> {
    type Scope = P::Scope;
    type Token = Hold;
    const CONDVAR_NS: u32 = <P::Spin as spin::Spin>::CONDVAR_NS;

    #[inline]
    fn lock(&self) -> Hold {
        match self.lock_by_bias() {
            Some(hold) => hold,
            None => self.lock_inner(),
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<Hold> {
        match self.lock_by_bias() {
            None => self.settle(self.inner.try_lock()?, Patience::None),
            hold => hold,
        }
    }

    #[inline]
    fn lock_until(&self, deadline: Deadline) -> Option<Hold> {
        match self.lock_by_bias() {
            None => self.settle(self.inner.lock_until(deadline)?, Patience::Until(Some(deadline))),
            hold => hold,
        }
    }

    #[inline]
    unsafe fn unlock(&self, hold: Hold) {
        if hold.by_bias {
            self.meter().released();
            self.release_by_store(hold.pass);
        } else {
            // SAFETY: the caller's promise, and the token is the inner mutex's.
            unsafe { self.unlock_inner(hold.pass) };
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.inner.is_locked() || self.held.load(Relaxed) != FREE
    }

    #[inline]
    fn requeue_key(&self) -> Option<FutexKey<P::Scope>> {
        self.inner.requeue_key()
    }

    /// A mutex that its owner holds by its bias has no mark.
    fn mark_for_requeued(&self) -> bool {
        self.inner.mark_for_requeued()
    }

    fn lock_requeued(&self) -> Hold {
        match self.settle(self.inner.lock_requeued(), Patience::Until(None)) {
            Some(hold) => hold,
            None => self.lock_inner(),
        }
    }
}
