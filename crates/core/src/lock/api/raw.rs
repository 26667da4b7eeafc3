//! The newtypes that carry our raw locks into the typed layer.

use crate::lock::condvar;
use crate::lock::traits::RawMutex;
use core::fmt;
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};

/// A raw lock of the family, in the shape the typed layer takes.
#[derive(Debug)]
#[repr(transparent)]
pub struct Raw<L>(L);

impl<L> Raw<L> {
    /// Adapts `lock`, to be given to `Mutex::from_raw`.
    pub const fn new(lock: L) -> Self {
        Self(lock)
    }

    /// The lock itself.
    pub const fn inner(&self) -> &L {
        &self.0
    }

    /// The lock itself, out of its adapter.
    pub fn into_inner(self) -> L {
        self.0
    }
}

// A lock runs no user's code, so a panic leaves it whole, with or without its holder.
impl<L> UnwindSafe for Raw<L> {}
impl<L> RefUnwindSafe for Raw<L> {}
// Nor does a condition variable.
impl<L: RawMutex> UnwindSafe for RawCondvar<L> {}
impl<L: RawMutex> RefUnwindSafe for RawCondvar<L> {}

/// Keeps a [`Token`] from other threads. The compiler names it where a guard is sent to one.
trait UnlockOnTheThreadThatLocked: UnwindSafe + RefUnwindSafe + Unpin {}

/// What a guard owes to its lock: the raw lock's own token, kept on the thread that got it.
pub struct Token<K> {
    token: K,
    not_send: PhantomData<dyn UnlockOnTheThreadThatLocked>,
}

// SAFETY: a shared reference to the marker gives access to nothing; the rest is `token`.
unsafe impl<K: Sync> Sync for Token<K> {}

impl<K> Token<K> {
    /// Wraps the token of an acquisition.
    pub const fn new(token: K) -> Self {
        Self { token, not_send: PhantomData }
    }

    /// The token of the acquisition.
    pub fn into_inner(self) -> K {
        self.token
    }
}

impl<K> fmt::Debug for Token<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token { .. }")
    }
}

/// The condition variable of the family, in the shape the typed layer takes.
///
/// Its waits may end spuriously, so by lock_api's rule a notification does not say how many it
/// reached.
#[repr(transparent)]
pub struct RawCondvar<L: RawMutex>(condvar::RawCondvar<L>);

impl<L: RawMutex> RawCondvar<L> {
    crate::const_fn! {
        /// A condition variable without waiters.
        pub fn new() -> Self {
            Self(condvar::RawCondvar::new())
        }
    }

    /// The condition variable itself.
    pub const fn inner(&self) -> &condvar::RawCondvar<L> {
        &self.0
    }
}

impl<L: RawMutex> Default for RawCondvar<L> {
    fn default() -> Self {
        Self::new()
    }
}

impl<L: RawMutex> fmt::Debug for RawCondvar<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
