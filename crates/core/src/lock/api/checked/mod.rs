//! The typed face in a model world: lock_api's names and methods, over data whose accesses the
//! model sees.
//!
//! The holder of the lock has an access open in the lock's `Watch`, from the moment the raw lock is
//! acquired to just before it is released (`access`).
//! Two accesses that overlap, or that nothing orders, fail the model, unless both are readers'.

mod access;
mod condvar;
mod guard;
mod mapped;
mod mutex;
mod rwlock;

pub(crate) use condvar::wait_until;
pub use condvar::{Condvar, WaitTimeoutResult};
#[cfg(feature = "arc_lock")]
pub use guard::{ArcMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard, ArcRwLockWriteGuard};
pub use guard::{MutexGuard, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard};
pub use mapped::{MappedMutexGuard, MappedRwLockReadGuard, MappedRwLockWriteGuard};
pub use mutex::Mutex;
pub use rwlock::{RwLock, read_with};
pub(crate) use rwlock::{forget_upgradable, upgradable_guard, write_guard};

use super::{Raw, RawCondvar, Token};
use crate::lock::traits::RawMutex;
use access::Held;

/// Acquires the lock of `mutex` in a way that the traits do not know: one that can fail, or that
/// tells more.
///
/// # Errors
/// Those of `acquire`.
///
/// # Safety
/// `acquire` returns `Ok` only with the token of an acquisition of the very lock it gets.
#[track_caller]
pub unsafe fn lock_with<'a, L: RawMutex, T: ?Sized, E>(
    mutex: &'a Mutex<L, T>,
    acquire: impl FnOnce(&L) -> Result<L::Token, E>,
) -> Result<MutexGuard<'a, L, T>, E> {
    Ok(MutexGuard::new(mutex, mutex.parts().acquire_with::<Held, E>(acquire)?))
}

/// Gives up the lock of `guard` for as long as `wait` takes, which acquires it again or fails;
/// there is no guard then.
///
/// # Errors
/// Those of `wait`.
///
/// # Safety
/// `wait` is called by a holder of the lock it gets. It returns `Ok` only if the calling thread
/// holds the lock again.
#[track_caller]
pub unsafe fn wait_with<'a, L: RawMutex<Token = ()>, T: ?Sized, E>(
    guard: MutexGuard<'a, L, T>,
    wait: impl FnOnce(&L) -> Result<(), E>,
) -> Result<MutexGuard<'a, L, T>, E> {
    MutexGuard::wait_with(guard, wait)
}
