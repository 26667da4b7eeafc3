//! A plain futex mutex, and a plain reader-writer lock: the locks with which the kit itself is
//! tested.
//!
//! The mutex is the three-state mutex of Drepper's "Futexes Are Tricky" (2004). It has no spinning
//! and no policy, and foreign sleepers are welcome on its futex. Tests that need some mutex use it
//! as [`Plain`].
//!
//! # State
//! | word | meaning |
//! |---|---|
//! | `UNLOCKED` | free |
//! | `LOCKED` | held, no thread sleeps |
//! | `CONTENDED` | held, a thread may sleep; its release wakes one |
//!
//! A thread that may have slept takes the lock as `CONTENDED`, because others may sleep still.

pub mod rw;

use ulocks_core::const_fn;
use ulocks_core::futex::{Futex, FutexKey, Scope, Waited};
use ulocks_core::raw::{RawInterruptible, RawMutex, RawMutexFair};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::time::Deadline;

const UNLOCKED: u32 = 0;
const LOCKED: u32 = 1;
const CONTENDED: u32 = 2;

/// A futex mutex. Waiters on its condition variables spin for `CONDVAR_NS` before they sleep.
#[derive(Debug)]
#[repr(transparent)]
pub struct ThreeState<S: Scope, const CONDVAR_NS: u32 = 0>(Futex<S>);

/// A futex mutex for one process.
pub type Plain = ThreeState<ulocks_core::futex::Local>;
/// A futex mutex for every process that maps it.
pub type PlainShared = ThreeState<ulocks_core::futex::Global>;

impl<S: Scope, const CONDVAR_NS: u32> ThreeState<S, CONDVAR_NS> {
    const_fn! {
        /// An unlocked mutex.
        pub fn new() -> Self {
            Self(Futex::new(UNLOCKED))
        }
    }

    /// Takes the mutex as `CONTENDED`, sleeping while it is held. False if the deadline passed
    /// first.
    fn lock_contended(&self, deadline: Option<Deadline>) -> bool {
        while self.0.swap(CONTENDED, Acquire) != UNLOCKED {
            if self.0.wait(CONTENDED, deadline) == Waited::TimedOut {
                return false;
            }
        }
        true
    }
}

impl<S: Scope, const CONDVAR_NS: u32> Default for ThreeState<S, CONDVAR_NS> {
    fn default() -> Self {
        Self::new()
    }
}

ulocks_core::initial!([S: Scope, const CONDVAR_NS: u32] ThreeState<S, CONDVAR_NS> = Self::new());

// SAFETY: the word leaves `UNLOCKED` by one atomic exchange of the thread that gets the token and
// returns to it by the release of that token; acquire and release order the two.
unsafe impl<S: Scope, const CONDVAR_NS: u32> RawMutex for ThreeState<S, CONDVAR_NS> {
    type Scope = S;
    type Token = ();
    type Condvar = ulocks_core::condvar::Sequence<Self>;
    const CONDVAR_NS: u32 = CONDVAR_NS;

    fn lock(&self) {
        if self.try_lock().is_none() {
            self.lock_contended(None);
        }
    }

    fn try_lock(&self) -> Option<()> {
        self.0.compare_exchange(UNLOCKED, LOCKED, Acquire, Relaxed).is_ok().then_some(())
    }

    fn lock_until(&self, deadline: Deadline) -> Option<()> {
        self.try_lock().or_else(|| self.lock_contended(Some(deadline)).then_some(()))
    }

    unsafe fn unlock(&self, (): ()) {
        let key = self.0.key();
        if self.0.swap(UNLOCKED, Release) == CONTENDED {
            key.wake(1);
        }
    }

    fn is_locked(&self) -> bool {
        self.0.load(Relaxed) != UNLOCKED
    }

    fn requeue_key(&self) -> Option<FutexKey<S>> {
        Some(self.0.key())
    }

    fn mark_for_requeued(&self) -> bool {
        let mut held = self.0.load(Relaxed);
        while held != UNLOCKED {
            match self.0.compare_exchange(held, CONTENDED, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => held = now,
            }
        }
        false
    }

    fn lock_requeued(&self) {
        self.lock_contended(None);
    }
}

impl<S: Scope, const CONDVAR_NS: u32> RawInterruptible for ThreeState<S, CONDVAR_NS> {}

// SAFETY: a release is a release. It is not fair at all, which no test needs.
unsafe impl<S: Scope, const CONDVAR_NS: u32> RawMutexFair for ThreeState<S, CONDVAR_NS> {
    unsafe fn unlock_fair(&self, (): ()) {
        // SAFETY: the caller's promise.
        unsafe { self.unlock(()) };
    }
}
