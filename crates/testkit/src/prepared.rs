//! A lock that is used in circumstances of its own, in models.

use core::marker::PhantomData;
use ulocks_core::raw::{RawInterruptible, RawMutex};
use ulocks_core::time::Deadline;

/// Makes a lock, and what it is to be used in.
pub trait Preparation {
    /// The lock, prepared.
    fn lock<L: RawMutex>() -> L;
}

/// The mutex `L` as `P` makes it.
pub struct Prepared<L, P>(L, PhantomData<fn() -> P>);

ulocks_core::initial!([L: RawMutex, P: Preparation] Prepared<L, P> = Self(P::lock(), PhantomData));

// SAFETY: every call is passed on.
unsafe impl<L: RawMutex, P: Preparation> RawMutex for Prepared<L, P> {
    type Scope = L::Scope;
    type Token = L::Token;
    type Condvar = ulocks_core::condvar::Sequence<Self>;

    fn lock(&self) -> Self::Token {
        self.0.lock()
    }

    fn try_lock(&self) -> Option<Self::Token> {
        self.0.try_lock()
    }

    fn lock_until(&self, deadline: Deadline) -> Option<Self::Token> {
        self.0.lock_until(deadline)
    }

    unsafe fn unlock(&self, token: Self::Token) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock(token) };
    }

    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

impl<L: RawInterruptible, P: Preparation> RawInterruptible for Prepared<L, P> {}
