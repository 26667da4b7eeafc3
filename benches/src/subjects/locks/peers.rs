//! The peers written in Rust, and no lock at all.

use super::{Lock, Scope};
use anyhow::Result;
use std::sync::PoisonError;

/// No lock: what the workload itself allows.
pub struct NoLock;

impl Lock for NoLock {
    const EXCLUDES: bool = false;
    const SHARED_MODE: bool = true;

    fn unlocked(_: Scope) -> Result<Self> {
        Ok(Self)
    }

    type Held<'a> = ();

    #[inline]
    fn acquire(&self) {}

    #[inline]
    fn try_acquire(&self) -> Option<()> {
        Some(())
    }
}

/// Mutexes with guards; how one is locked and tried.
macro_rules! guarded {
    ($($(#[$doc:meta])* $name:ident($mutex:ty): $guard:ty, $this:ident, $lock:expr, $try_lock:expr;)*) => {$(
        $(#[$doc])*
        pub struct $name($mutex);

        impl Lock for $name {
            fn unlocked(_: Scope) -> Result<Self> {
                Ok(Self(<$mutex>::new(())))
            }

            type Held<'a> = $guard;

            #[inline]
            fn acquire(&self) -> Self::Held<'_> {
                let $this = &self.0;
                $lock
            }

            #[inline]
            fn try_acquire(&self) -> Option<Self::Held<'_>> {
                let $this = &self.0;
                $try_lock
            }
        }
    )*};
}

guarded! {
    /// `std::sync::Mutex`.
    Std(std::sync::Mutex<()>): std::sync::MutexGuard<'a, ()>,
        it, it.lock().unwrap_or_else(PoisonError::into_inner), it.try_lock().ok();
    /// parking_lot 0.13.
    ParkingLot(parking_lot::Mutex<()>): parking_lot::MutexGuard<'a, ()>, it, it.lock(), it.try_lock();
    /// parking_lot 0.13's mutex that hands over to the first waiter. An arriving thread that
    /// finds it free may still overtake.
    ParkingLotFair(parking_lot::FairMutex<()>): parking_lot::FairMutexGuard<'a, ()>, it, it.lock(), it.try_lock();
    /// parking_lot 0.12, another algorithm.
    ParkingLot012(parking_lot_012::Mutex<()>): parking_lot_012::MutexGuard<'a, ()>, it, it.lock(), it.try_lock();
    /// usync.
    Usync(usync::Mutex<()>): usync::MutexGuard<'a, ()>, it, it.lock(), it.try_lock();
}
