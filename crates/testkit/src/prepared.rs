//! A lock that is used in circumstances of its own, in models.

use core::marker::PhantomData;
use ulocks_core::raw::{RawInterruptible, RawMutex};

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
    crate::passes_on! { 0: lock, try_lock, lock_until, unlock, is_locked }
}

impl<L: RawInterruptible, P: Preparation> RawInterruptible for Prepared<L, P> {}
