//! The names of parking_lot 0.13, over lock_api 0.5.

use super::locks::{Condvar as Inner, RawFairMutex, RawMutex, RawRwLock, RawThreadId};
use crate::rwlock::Patience;
use core::num::NonZeroUsize;
use core::time::Duration;
use std::time::Instant;
use ulocks_core::raw::{RawMutex as _, RawMutexFair as _};
use ulocks_core::time::Deadline;

#[cfg(feature = "arc_lock")]
#[cfg_attr(docsrs, doc(cfg(feature = "arc_lock")))]
pub use lock_api::{ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard, ArcRwLockWriteGuard};

#[cfg(not(feature = "send_guard"))]
type Marker = lock_api::GuardNoSend;
#[cfg(feature = "send_guard")]
type Marker = lock_api::GuardSend;

/// A mutex around a `T`.
///
/// It is `ulocks::Mutex` with guards that are `Send` if the feature `send_guard` says so.
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;
/// Access to the data of a [`Mutex`]; its drop unlocks.
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;
/// A [`MutexGuard`] narrowed to a part of the data.
pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawMutex, T>;

/// A mutex that serves threads in the order in which they come.
pub type FairMutex<T> = lock_api::Mutex<RawFairMutex, T>;
/// Access to the data of a [`FairMutex`]; its drop unlocks.
pub type FairMutexGuard<'a, T> = lock_api::MutexGuard<'a, RawFairMutex, T>;
/// A [`FairMutexGuard`] narrowed to a part of the data.
pub type MappedFairMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawFairMutex, T>;

/// A mutex that its holder may lock again.
pub type ReentrantMutex<T> = lock_api::ReentrantMutex<RawMutex, RawThreadId, T>;
/// Shared access to the data of a [`ReentrantMutex`]; the drop of the last one unlocks.
pub type ReentrantMutexGuard<'a, T> = lock_api::ReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;
/// A [`ReentrantMutexGuard`] narrowed to a part of the data.
pub type MappedReentrantMutexGuard<'a, T> = lock_api::MappedReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;

/// Many readers or one writer. Readers and writers take turns.
pub type RwLock<T> = lock_api::RwLock<RawRwLock, T>;
/// Access to read the data of a [`RwLock`]; its drop unlocks.
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLock, T>;
/// Access to write the data of a [`RwLock`]; its drop unlocks.
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLock, T>;
/// Access to read the data of a [`RwLock`] that can become access to write; its drop unlocks.
pub type RwLockUpgradableReadGuard<'a, T> = lock_api::RwLockUpgradableReadGuard<'a, RawRwLock, T>;
/// A [`RwLockReadGuard`] narrowed to a part of the data.
pub type MappedRwLockReadGuard<'a, T> = lock_api::MappedRwLockReadGuard<'a, RawRwLock, T>;
/// A [`RwLockWriteGuard`] narrowed to a part of the data.
pub type MappedRwLockWriteGuard<'a, T> = lock_api::MappedRwLockWriteGuard<'a, RawRwLock, T>;

/// The raw lock of [`RecursiveRwLock`].
pub type RawRwLockRecursive = RawRwLock<true>;
/// A [`RwLock`] that a thread may read again while it reads. Readers may starve writers.
pub type RecursiveRwLock<T> = lock_api::RwLock<RawRwLockRecursive, T>;
/// Access to read the data of a [`RecursiveRwLock`]; its drop unlocks.
pub type RecursiveRwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLockRecursive, T>;
/// Access to write the data of a [`RecursiveRwLock`]; its drop unlocks.
pub type RecursiveRwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLockRecursive, T>;
/// Access to read that can become access to write; its drop unlocks.
pub type RecursiveRwLockUpgradableReadGuard<'a, T> = lock_api::RwLockUpgradableReadGuard<'a, RawRwLockRecursive, T>;
/// A [`RecursiveRwLockReadGuard`] narrowed to a part of the data.
pub type MappedRecursiveRwLockReadGuard<'a, T> = lock_api::MappedRwLockReadGuard<'a, RawRwLockRecursive, T>;
/// A [`RecursiveRwLockWriteGuard`] narrowed to a part of the data.
pub type MappedRecursiveRwLockWriteGuard<'a, T> = lock_api::MappedRwLockWriteGuard<'a, RawRwLockRecursive, T>;

/// Waits until something is true under a [`Mutex`]. Notifications count exactly; a wait ends only
/// by one of them, or by its deadline.
///
/// # Panics
/// A wait with another mutex than the one that threads wait with.
pub type Condvar = lock_api::Condvar<RawCondvar>;
pub use lock_api::WaitTimeoutResult;

/// The raw condition variable of [`Condvar`].
pub struct RawCondvar(Inner);

fn held(is_held: bool) -> Option<Marker> {
    is_held.then(Marker::new)
}

// SAFETY: `wait` gives up the mutex and begins to wait in one step with respect to notifications,
// and returns holding it. It panics before it gives up the mutex, or not at all.
unsafe impl lock_api::RawCondvar for RawCondvar {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self(Inner::new());

    type RawMutex = RawMutex;

    unsafe fn wait(&self, mutex: &RawMutex, _: &mut Marker) {
        // SAFETY: the caller holds the mutex.
        unsafe { self.0.wait(mutex, None) };
    }

    #[inline]
    fn notify_one(&self) -> bool {
        self.0.notify_one()
    }

    #[inline]
    fn notify_all(&self) -> usize {
        self.0.notify_all()
    }
}

// SAFETY: as above; a wait that reports a timeout has outlasted its deadline.
unsafe impl lock_api::RawCondvarTimed for RawCondvar {
    fn checked_duration_to_instant(timeout: &Duration) -> Option<Instant> {
        Instant::now().checked_add(*timeout)
    }

    unsafe fn wait_until(&self, mutex: &RawMutex, _: &mut Marker, timeout: &Instant) -> bool {
        // SAFETY: the caller holds the mutex.
        unsafe { self.0.wait(mutex, Some(Deadline::at(*timeout))) }
    }

    unsafe fn wait_for(&self, mutex: &RawMutex, _: &mut Marker, timeout: &Duration) -> bool {
        // SAFETY: the caller holds the mutex.
        unsafe { self.0.wait(mutex, Some(Deadline::after(*timeout))) }
    }
}

impl<const RECURSIVE: bool> RawRwLock<RECURSIVE> {
    #[inline]
    #[track_caller]
    fn acquire_shared(&self, patience: Patience) -> bool {
        if RECURSIVE { self.0.read_again(patience) } else { self.0.read(patience) }
    }
}

// SAFETY: the lock below keeps this contract: exclusion, acquire and release ordering; its token is
// nothing, so a guard may be forgotten and a locked mutex moved or dropped.
unsafe impl lock_api::RawMutex for RawMutex {
    const INIT: Self = Self::new();

    type Guard = Marker;

    #[inline]
    #[track_caller]
    fn lock(&self) -> Marker {
        self.0.lock();
        Marker::new()
    }

    #[inline]
    #[track_caller]
    fn try_lock(&self) -> Option<Marker> {
        held(self.0.try_lock().is_some())
    }

    #[inline]
    #[track_caller]
    unsafe fn unlock(&self, _: Marker) {
        // SAFETY: the caller holds this mutex.
        unsafe { self.0.unlock(()) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

// SAFETY: as above; a fair release is a release.
unsafe impl lock_api::RawMutexFair for RawMutex {
    #[inline]
    #[track_caller]
    unsafe fn unlock_fair(&self, _: Marker) {
        // SAFETY: the caller holds this mutex.
        unsafe { self.0.unlock(()) };
    }
}

// SAFETY: as above; an attempt gives up no earlier than its deadline.
unsafe impl lock_api::RawMutexTimed for RawMutex {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    #[track_caller]
    fn try_lock_for(&self, timeout: Duration) -> Option<Marker> {
        let acquired = match self.0.try_lock() {
            None => self.0.lock_until(Deadline::after(timeout)),
            acquired => acquired,
        };
        held(acquired.is_some())
    }

    #[inline]
    #[track_caller]
    fn try_lock_until(&self, timeout: Instant) -> Option<Marker> {
        let acquired = match self.0.try_lock() {
            None => self.0.lock_until(Deadline::at(timeout)),
            acquired => acquired,
        };
        held(acquired.is_some())
    }
}

// SAFETY: the lock below keeps this contract: exclusion, acquire and release ordering; its token is
// nothing, so a guard may be forgotten and a locked mutex moved or dropped.
unsafe impl lock_api::RawMutex for RawFairMutex {
    const INIT: Self = Self::new();

    type Guard = Marker;

    #[inline]
    #[track_caller]
    fn lock(&self) -> Marker {
        self.0.lock();
        Marker::new()
    }

    #[inline]
    #[track_caller]
    fn try_lock(&self) -> Option<Marker> {
        held(self.0.try_lock().is_some())
    }

    #[inline]
    #[track_caller]
    unsafe fn unlock(&self, _: Marker) {
        // SAFETY: the caller holds this mutex.
        unsafe { self.0.unlock(()) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

// SAFETY: as above; a fair release is a release.
unsafe impl lock_api::RawMutexFair for RawFairMutex {
    #[inline]
    #[track_caller]
    unsafe fn unlock_fair(&self, _: Marker) {
        // SAFETY: the caller holds this mutex.
        unsafe { self.0.unlock_fair(()) };
    }
}

// SAFETY: as above; an attempt gives up no earlier than its deadline.
unsafe impl lock_api::RawMutexTimed for RawFairMutex {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    #[track_caller]
    fn try_lock_for(&self, timeout: Duration) -> Option<Marker> {
        let acquired = match self.0.try_lock() {
            None => self.0.lock_until(Deadline::after(timeout)),
            acquired => acquired,
        };
        held(acquired.is_some())
    }

    #[inline]
    #[track_caller]
    fn try_lock_until(&self, timeout: Instant) -> Option<Marker> {
        let acquired = match self.0.try_lock() {
            None => self.0.lock_until(Deadline::at(timeout)),
            acquired => acquired,
        };
        held(acquired.is_some())
    }
}

// SAFETY: two threads that live at the same time have different variables.
unsafe impl lock_api::GetThreadId for RawThreadId {
    const INIT: Self = Self;

    #[inline]
    fn nonzero_thread_id(&self) -> NonZeroUsize {
        Self::current()
    }
}

// SAFETY: the lock below keeps this contract: readers or one writer, acquire and release
// ordering. It keeps no address, so a guard may be forgotten and a locked lock moved or dropped.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLock for RawRwLock<RECURSIVE> {
    const INIT: Self = Self::new();

    type SharedGuard = Marker;
    type ExclusiveGuard = Marker;

    #[inline]
    #[track_caller]
    fn lock_shared(&self) -> Marker {
        self.acquire_shared(Patience::Forever);
        Marker::new()
    }

    #[inline]
    #[track_caller]
    fn try_lock_shared(&self) -> Option<Marker> {
        held(self.acquire_shared(Patience::Never))
    }

    #[inline]
    #[track_caller]
    unsafe fn unlock_shared(&self, _: Marker) {
        // SAFETY: the caller holds this lock in this way.
        unsafe { self.0.unlock_read() };
    }

    #[inline]
    #[track_caller]
    fn lock_exclusive(&self) -> Marker {
        self.0.write(Patience::Forever);
        Marker::new()
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive(&self) -> Option<Marker> {
        held(self.0.write(Patience::Never))
    }

    #[inline]
    #[track_caller]
    unsafe fn unlock_exclusive(&self, _: Marker) {
        // SAFETY: the caller holds this lock in this way.
        unsafe { self.0.unlock_write() };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.0.is_write_locked()
    }
}

// SAFETY: as above; a fair release is a release. A writer that waits has shut out new readers, so a
// reader's release is fair.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockFair for RawRwLock<RECURSIVE> {
    #[inline]
    #[track_caller]
    unsafe fn unlock_shared_fair(&self, _: Marker) {
        // SAFETY: the caller holds this lock in this way.
        unsafe { self.0.unlock_read() };
    }

    #[inline]
    #[track_caller]
    unsafe fn unlock_exclusive_fair(&self, _: Marker) {
        // SAFETY: the caller holds this lock in this way.
        unsafe { self.0.unlock_write_fair() };
    }
}

// SAFETY: as above; no writer comes between the two.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockDowngrade for RawRwLock<RECURSIVE> {
    #[inline]
    #[track_caller]
    unsafe fn downgrade(&self, _: Marker) -> Marker {
        // SAFETY: the caller holds this lock in this way.
        unsafe { self.0.downgrade() };
        Marker::new()
    }
}

// SAFETY: as above; an attempt gives up no earlier than its deadline.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockTimed for RawRwLock<RECURSIVE> {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    #[track_caller]
    fn try_lock_shared_for(&self, timeout: Duration) -> Option<Marker> {
        held(self.acquire_shared(Patience::Until(Deadline::after(timeout))))
    }

    #[inline]
    #[track_caller]
    fn try_lock_shared_until(&self, timeout: Instant) -> Option<Marker> {
        held(self.acquire_shared(Patience::Until(Deadline::at(timeout))))
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive_for(&self, timeout: Duration) -> Option<Marker> {
        held(self.0.write(Patience::Until(Deadline::after(timeout))))
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive_until(&self, timeout: Instant) -> Option<Marker> {
        held(self.0.write(Patience::Until(Deadline::at(timeout))))
    }
}

// SAFETY: as above; there is one upgradable reader at most, and no writer comes between two
// accesses.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockUpgrade for RawRwLock<RECURSIVE> {
    type UpgradableGuard = Marker;

    #[inline]
    #[track_caller]
    fn lock_upgradable(&self) -> Marker {
        self.0.upgradable(Patience::Forever);
        Marker::new()
    }

    #[inline]
    #[track_caller]
    fn try_lock_upgradable(&self) -> Option<Marker> {
        held(self.0.upgradable(Patience::Never))
    }

    #[inline]
    #[track_caller]
    unsafe fn unlock_upgradable(&self, _: Marker) {
        // SAFETY: the caller holds this lock in this way.
        unsafe { self.0.unlock_upgradable() };
    }

    #[inline]
    #[track_caller]
    unsafe fn upgrade(&self, _: Marker) -> Marker {
        // SAFETY: the caller is the upgradable reader.
        unsafe { self.0.upgrade(Patience::Forever) };
        Marker::new()
    }

    #[inline]
    #[track_caller]
    unsafe fn try_upgrade(&self, guard: Marker) -> Result<Marker, Marker> {
        // SAFETY: the caller is the upgradable reader.
        if unsafe { self.0.upgrade(Patience::Never) } { Ok(guard) } else { Err(guard) }
    }
}

// SAFETY: as above.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockUpgradeFair for RawRwLock<RECURSIVE> {
    #[inline]
    #[track_caller]
    unsafe fn unlock_upgradable_fair(&self, _: Marker) {
        // SAFETY: the caller holds this lock in this way.
        unsafe { self.0.unlock_upgradable_fair() };
    }
}

// SAFETY: as above.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockUpgradeDowngrade for RawRwLock<RECURSIVE> {
    #[inline]
    #[track_caller]
    unsafe fn downgrade_upgradable(&self, _: Marker) -> Marker {
        // SAFETY: the caller holds this lock in this way.
        unsafe { self.0.downgrade_upgradable() };
        Marker::new()
    }

    #[inline]
    #[track_caller]
    unsafe fn downgrade_to_upgradable(&self, _: Marker) -> Marker {
        // SAFETY: the caller holds this lock in this way.
        unsafe { self.0.downgrade_to_upgradable() };
        Marker::new()
    }
}

// SAFETY: as above; an attempt gives up no earlier than its deadline.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockUpgradeTimed for RawRwLock<RECURSIVE> {
    #[inline]
    #[track_caller]
    fn try_lock_upgradable_for(&self, timeout: Duration) -> Option<Marker> {
        held(self.0.upgradable(Patience::Until(Deadline::after(timeout))))
    }

    #[inline]
    #[track_caller]
    fn try_lock_upgradable_until(&self, timeout: Instant) -> Option<Marker> {
        held(self.0.upgradable(Patience::Until(Deadline::at(timeout))))
    }

    #[inline]
    #[track_caller]
    unsafe fn try_upgrade_for(&self, guard: Marker, timeout: Duration) -> Result<Marker, Marker> {
        let patience = Patience::Until(Deadline::after(timeout));
        // SAFETY: the caller is the upgradable reader.
        if unsafe { self.0.upgrade(patience) } { Ok(guard) } else { Err(guard) }
    }

    #[inline]
    #[track_caller]
    unsafe fn try_upgrade_until(&self, guard: Marker, timeout: Instant) -> Result<Marker, Marker> {
        let patience = Patience::Until(Deadline::at(timeout));
        // SAFETY: the caller is the upgradable reader.
        if unsafe { self.0.upgrade(patience) } { Ok(guard) } else { Err(guard) }
    }
}
