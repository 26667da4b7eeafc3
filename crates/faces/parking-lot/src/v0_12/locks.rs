//! lock_api 0.4's traits for the raw locks.
//!
//! *No operation unwinds.* `unlocked`, `bump` and `with_upgraded` of lock_api 0.4 acquire for a
//! guard that lives on whether that panics or not: it would be a guard without a lock. An
//! acquisition does not learn whether it is such a one, so a panic in any of them aborts.

use super::{Marker, RawRwLock, lock_api};
use super::super::below::FaultsAbort;
use super::super::locks::{RawFairMutex, RawMutex, RawThreadId};
use crate::rwlock::Patience;
use core::num::NonZeroUsize;
use core::time::Duration;
use std::time::Instant;
use ulocks_core::raw::{RawMutex as _, RawMutexFair as _};
use ulocks_core::sync::NoUnwinding;
use ulocks_core::time::Deadline;

/// Why the process ends where a lock would panic.
const WHY: &str = "ulocks: the process aborts, because guards of lock_api 0.4 (parking_lot 0.12) live on \
                   without their lock if an acquisition panics\n";

/// An operation that does not unwind. A closure would hide the place of the caller.
macro_rules! whole {
    ($operation:expr) => {{
        let _faults = FaultsAbort::because(WHY);
        let unwinding = NoUnwinding::because(WHY);
        let result = $operation;
        unwinding.end();
        result
    }};
}

// SAFETY: the lock below keeps this contract: exclusion, acquire and release ordering; its token is
// nothing, so a guard may be forgotten and a locked mutex moved or dropped.
unsafe impl lock_api::RawMutex for RawMutex {
    const INIT: Self = Self::new();

    type GuardMarker = Marker;

    #[inline]
    #[track_caller]
    fn lock(&self) {
        whole!(self.0.lock());
    }

    #[inline]
    #[track_caller]
    fn try_lock(&self) -> bool {
        whole!(self.0.try_lock().is_some())
    }

    #[inline]
    #[track_caller]
    unsafe fn unlock(&self) {
        // SAFETY: the caller holds this mutex.
        unsafe { whole!(self.0.unlock(())) };
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
    unsafe fn unlock_fair(&self) {
        // SAFETY: the caller holds this mutex.
        unsafe { whole!(self.0.unlock(())) };
    }
}

// SAFETY: as above; an attempt gives up no earlier than its deadline.
unsafe impl lock_api::RawMutexTimed for RawMutex {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    #[track_caller]
    fn try_lock_for(&self, timeout: Duration) -> bool {
        let acquired = whole!(match self.0.try_lock() {
            None => self.0.lock_until(Deadline::after(timeout)),
            acquired => acquired,
        });
        acquired.is_some()
    }

    #[inline]
    #[track_caller]
    fn try_lock_until(&self, timeout: Instant) -> bool {
        let acquired = whole!(match self.0.try_lock() {
            None => self.0.lock_until(Deadline::at(timeout)),
            acquired => acquired,
        });
        acquired.is_some()
    }
}

// SAFETY: the lock below keeps this contract: exclusion, acquire and release ordering; its token is
// nothing, so a guard may be forgotten and a locked mutex moved or dropped.
unsafe impl lock_api::RawMutex for RawFairMutex {
    const INIT: Self = Self::new();

    type GuardMarker = Marker;

    #[inline]
    #[track_caller]
    fn lock(&self) {
        whole!(self.0.lock());
    }

    #[inline]
    #[track_caller]
    fn try_lock(&self) -> bool {
        whole!(self.0.try_lock().is_some())
    }

    #[inline]
    #[track_caller]
    unsafe fn unlock(&self) {
        // SAFETY: the caller holds this mutex.
        unsafe { whole!(self.0.unlock(())) };
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
    unsafe fn unlock_fair(&self) {
        // SAFETY: the caller holds this mutex.
        unsafe { whole!(self.0.unlock_fair(())) };
    }
}

// SAFETY: as above; an attempt gives up no earlier than its deadline.
unsafe impl lock_api::RawMutexTimed for RawFairMutex {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    #[track_caller]
    fn try_lock_for(&self, timeout: Duration) -> bool {
        let acquired = whole!(match self.0.try_lock() {
            None => self.0.lock_until(Deadline::after(timeout)),
            acquired => acquired,
        });
        acquired.is_some()
    }

    #[inline]
    #[track_caller]
    fn try_lock_until(&self, timeout: Instant) -> bool {
        let acquired = whole!(match self.0.try_lock() {
            None => self.0.lock_until(Deadline::at(timeout)),
            acquired => acquired,
        });
        acquired.is_some()
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
unsafe impl lock_api::RawRwLock for RawRwLock {
    const INIT: Self = Self::new();

    type GuardMarker = Marker;

    #[inline]
    #[track_caller]
    fn lock_shared(&self) {
        whole!(self.0.read(Patience::Forever));
    }

    #[inline]
    #[track_caller]
    fn try_lock_shared(&self) -> bool {
        whole!(self.0.read(Patience::Never))
    }

    #[inline]
    #[track_caller]
    unsafe fn unlock_shared(&self) {
        // SAFETY: the caller holds this lock in this way.
        unsafe { whole!(self.0.unlock_read()) };
    }

    #[inline]
    #[track_caller]
    fn lock_exclusive(&self) {
        whole!(self.0.write(Patience::Forever));
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive(&self) -> bool {
        whole!(self.0.write(Patience::Never))
    }

    #[inline]
    #[track_caller]
    unsafe fn unlock_exclusive(&self) {
        // SAFETY: the caller holds this lock in this way.
        unsafe { whole!(self.0.unlock_write()) };
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
unsafe impl lock_api::RawRwLockFair for RawRwLock {
    #[inline]
    #[track_caller]
    unsafe fn unlock_shared_fair(&self) {
        // SAFETY: the caller holds this lock in this way.
        unsafe { whole!(self.0.unlock_read()) };
    }

    #[inline]
    #[track_caller]
    unsafe fn unlock_exclusive_fair(&self) {
        // SAFETY: the caller holds this lock in this way.
        unsafe { whole!(self.0.unlock_write_fair()) };
    }
}

// SAFETY: as above; no writer comes between the two.
unsafe impl lock_api::RawRwLockDowngrade for RawRwLock {
    #[inline]
    #[track_caller]
    unsafe fn downgrade(&self) {
        // SAFETY: the caller holds this lock in this way.
        unsafe { whole!(self.0.downgrade()) };
    }
}

// SAFETY: as above; an attempt gives up no earlier than its deadline.
unsafe impl lock_api::RawRwLockTimed for RawRwLock {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    #[track_caller]
    fn try_lock_shared_for(&self, timeout: Duration) -> bool {
        whole!(self.0.read(Patience::Until(Deadline::after(timeout))))
    }

    #[inline]
    #[track_caller]
    fn try_lock_shared_until(&self, timeout: Instant) -> bool {
        whole!(self.0.read(Patience::Until(Deadline::at(timeout))))
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive_for(&self, timeout: Duration) -> bool {
        whole!(self.0.write(Patience::Until(Deadline::after(timeout))))
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive_until(&self, timeout: Instant) -> bool {
        whole!(self.0.write(Patience::Until(Deadline::at(timeout))))
    }
}

// SAFETY: as above; such a reader does not wait for a writer that waits, if its thread reads.
unsafe impl lock_api::RawRwLockRecursive for RawRwLock {
    #[inline]
    #[track_caller]
    fn lock_shared_recursive(&self) {
        whole!(self.0.read_again(Patience::Forever));
    }

    #[inline]
    #[track_caller]
    fn try_lock_shared_recursive(&self) -> bool {
        whole!(self.0.read_again(Patience::Never))
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockRecursiveTimed for RawRwLock {
    #[inline]
    #[track_caller]
    fn try_lock_shared_recursive_for(&self, timeout: Duration) -> bool {
        whole!(self.0.read_again(Patience::Until(Deadline::after(timeout))))
    }

    #[inline]
    #[track_caller]
    fn try_lock_shared_recursive_until(&self, timeout: Instant) -> bool {
        whole!(self.0.read_again(Patience::Until(Deadline::at(timeout))))
    }
}

// SAFETY: as above; there is one upgradable reader at most, and no writer comes between two
// accesses.
unsafe impl lock_api::RawRwLockUpgrade for RawRwLock {
    #[inline]
    #[track_caller]
    fn lock_upgradable(&self) {
        whole!(self.0.upgradable(Patience::Forever));
    }

    #[inline]
    #[track_caller]
    fn try_lock_upgradable(&self) -> bool {
        whole!(self.0.upgradable(Patience::Never))
    }

    #[inline]
    #[track_caller]
    unsafe fn unlock_upgradable(&self) {
        // SAFETY: the caller holds this lock in this way.
        unsafe { whole!(self.0.unlock_upgradable()) };
    }

    #[inline]
    #[track_caller]
    unsafe fn upgrade(&self) {
        // SAFETY: the caller is the upgradable reader.
        unsafe { whole!(self.0.upgrade(Patience::Forever)) };
    }

    #[inline]
    #[track_caller]
    unsafe fn try_upgrade(&self) -> bool {
        // SAFETY: the caller is the upgradable reader.
        unsafe { whole!(self.0.upgrade(Patience::Never)) }
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockUpgradeFair for RawRwLock {
    #[inline]
    #[track_caller]
    unsafe fn unlock_upgradable_fair(&self) {
        // SAFETY: the caller holds this lock in this way.
        unsafe { whole!(self.0.unlock_upgradable_fair()) };
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockUpgradeDowngrade for RawRwLock {
    #[inline]
    #[track_caller]
    unsafe fn downgrade_upgradable(&self) {
        // SAFETY: the caller holds this lock in this way.
        unsafe { whole!(self.0.downgrade_upgradable()) };
    }

    #[inline]
    #[track_caller]
    unsafe fn downgrade_to_upgradable(&self) {
        // SAFETY: the caller holds this lock in this way.
        unsafe { whole!(self.0.downgrade_to_upgradable()) };
    }
}

// SAFETY: as above; an attempt gives up no earlier than its deadline.
unsafe impl lock_api::RawRwLockUpgradeTimed for RawRwLock {
    #[inline]
    #[track_caller]
    fn try_lock_upgradable_for(&self, timeout: Duration) -> bool {
        whole!(self.0.upgradable(Patience::Until(Deadline::after(timeout))))
    }

    #[inline]
    #[track_caller]
    fn try_lock_upgradable_until(&self, timeout: Instant) -> bool {
        whole!(self.0.upgradable(Patience::Until(Deadline::at(timeout))))
    }

    #[inline]
    #[track_caller]
    unsafe fn try_upgrade_for(&self, timeout: Duration) -> bool {
        // SAFETY: the caller is the upgradable reader.
        unsafe { whole!(self.0.upgrade(Patience::Until(Deadline::after(timeout)))) }
    }

    #[inline]
    #[track_caller]
    unsafe fn try_upgrade_until(&self, timeout: Instant) -> bool {
        // SAFETY: the caller is the upgradable reader.
        unsafe { whole!(self.0.upgrade(Patience::Until(Deadline::at(timeout)))) }
    }
}
