//! Guards that own a share of their lock.
//!
//! lock_api makes them of an `Arc` of its own type. The checked types are that type and nothing
//! else (`repr(transparent)`), so an `Arc` of the one is an `Arc` of the other.

use crate::locks::checker::Checked;
use crate::locks::mutex::CheckedMutex;
use crate::locks::reentrant::{CheckedReentrant, CheckedReentrantMutex, called_at};
use crate::locks::rwlock::{CheckedRw, CheckedRwLock};
use core::panic::Location;
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;
use ulocks_core::api;
use ulocks_core::futex::Local;
use ulocks_core::raw::{RawMutex, RawRwLock, RawRwLockUpgrade};

macro_rules! arc {
    ($bound:ident $face:ident $checked:ident $guard:ident, $plain:literal:
        $wait:ident $attempt:ident $attempt_for:ident $attempt_until:ident $(, $by:ident)?) => {
        impl<R: $bound<Scope = Local>, T: ?Sized> $face<R, T> {
            #[doc = concat!("As `", $plain, "`, with a guard that owns a share of the lock.")]
            #[track_caller]
            pub fn $wait(self: &Arc<Self>) -> api::$guard<$checked<R>, T> {
                arc!(@ [$($by)?] self.share().$wait())
            }

            #[doc = concat!("As [`", stringify!($wait), "`](Self::", stringify!($wait), "), without waiting.")]
            #[track_caller]
            pub fn $attempt(self: &Arc<Self>) -> Option<api::$guard<$checked<R>, T>> {
                arc!(@ [$($by)?] self.share().$attempt())
            }

            #[doc = concat!("As [`", stringify!($wait), "`](Self::", stringify!($wait), "), or gives up after `timeout`.")]
            #[track_caller]
            pub fn $attempt_for(self: &Arc<Self>, timeout: Duration) -> Option<api::$guard<$checked<R>, T>> {
                arc!(@ [$($by)?] self.share().$attempt_for(timeout))
            }

            #[doc = concat!("As [`", stringify!($wait), "`](Self::", stringify!($wait), "), or gives up at `timeout`.")]
            #[track_caller]
            pub fn $attempt_until(self: &Arc<Self>, timeout: Instant) -> Option<api::$guard<$checked<R>, T>> {
                arc!(@ [$($by)?] self.share().$attempt_until(timeout))
            }
        }
    };
    // Without a closure, which would be the caller, unless the line is handed on in another way.
    (@ [] $($call:tt)*) => { $($call)* };
    (@ [$by:ident] $($call:tt)*) => { $by(Location::caller(), || $($call)*) };
}

arc! { RawMutex CheckedMutex Checked ArcMutexGuard, "lock":
lock_arc try_lock_arc try_lock_arc_for try_lock_arc_until }
arc! { RawMutex CheckedReentrantMutex CheckedReentrant ArcReentrantMutexGuard, "lock":
lock_arc try_lock_arc try_lock_arc_for try_lock_arc_until, called_at }
arc! { RawRwLock CheckedRwLock CheckedRw ArcRwLockReadGuard, "read":
read_arc try_read_arc try_read_arc_for try_read_arc_until }
arc! { RawRwLock CheckedRwLock CheckedRw ArcRwLockWriteGuard, "write":
write_arc try_write_arc try_write_arc_for try_write_arc_until }
arc! { RawRwLockUpgrade CheckedRwLock CheckedRw ArcRwLockUpgradableReadGuard, "upgradable_read":
upgradable_read_arc try_upgradable_read_arc try_upgradable_read_arc_for try_upgradable_read_arc_until }
