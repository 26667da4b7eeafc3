//! lock_api 0.4's traits for the raw locks.
//!
//! *No operation unwinds.* `unlocked`, `bump` and `with_upgraded` of lock_api 0.4 acquire for a
//! guard that lives on whether that panics or not: it would be a guard without a lock. An
//! acquisition does not learn whether it is such a one, so a panic in any of them aborts.

use super::{Marker, lock_api};
use super::super::below::FaultsAbort;
use super::super::locks::{RawFairMutex, RawMutex, RawRwLock, RawThreadId};
use crate::rwlock::Patience;
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

macro_rules! acquire {
    ($method:ident($self:ident) $acquire:expr) => {
        #[inline]
        #[track_caller]
        fn $method(&$self) {
            whole!($acquire);
        }
    };
}
macro_rules! attempt {
    ($method:ident($self:ident $(, $limit:ident: $type:ty)?) $attempt:expr) => {
        #[inline]
        #[track_caller]
        fn $method(&$self $(, $limit: $type)?) -> bool {
            whole!($attempt)
        }
    };
}
macro_rules! release {
    ($method:ident($self:ident) $release:expr) => {
        #[inline]
        #[track_caller]
        unsafe fn $method(&$self) {
            // SAFETY: the caller holds this lock in this way.
            unsafe { whole!($release) };
        }
    };
}
macro_rules! exchange {
    ($($exchange:tt)*) => { release!($($exchange)*); };
}
macro_rules! try_exchange {
    ($method:ident($self:ident $(, $limit:ident: $type:ty)?) $exchange:expr) => {
        #[inline]
        #[track_caller]
        unsafe fn $method(&$self $(, $limit: $type)?) -> bool {
            // SAFETY: the caller holds this lock in this way.
            unsafe { whole!($exchange) }
        }
    };
}

crate::traits::traits! {
    mutex { type GuardMarker = Marker; }
    rwlock { type GuardMarker = Marker; }
    upgrade {}
}

// SAFETY: as above; such a reader does not wait for a writer that waits, if its thread reads.
unsafe impl lock_api::RawRwLockRecursive for RawRwLock {
    acquire!(lock_shared_recursive(self) self.0.read_again(Patience::Forever));
    attempt!(try_lock_shared_recursive(self) self.0.read_again(Patience::Never));
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockRecursiveTimed for RawRwLock {
    attempt!(try_lock_shared_recursive_for(self, limit: Duration) self.0.read_again(Patience::after(limit)));
    attempt!(try_lock_shared_recursive_until(self, limit: Instant) self.0.read_again(Patience::at(limit)));
}
