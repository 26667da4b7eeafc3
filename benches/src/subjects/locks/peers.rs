//! The peers written in Rust, and no lock at all.

use super::{Lock, Scope};
use anyhow::Result;
use std::sync::PoisonError;

/// No lock: what the workload itself allows.
#[derive(Debug)]
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

/// `std::sync::Mutex`.
#[derive(Debug)]
pub struct Std(std::sync::Mutex<()>);

impl Lock for Std {
    fn unlocked(_: Scope) -> Result<Self> {
        Ok(Self(std::sync::Mutex::new(())))
    }

    type Held<'a> = std::sync::MutexGuard<'a, ()>;

    #[inline]
    fn acquire(&self) -> Self::Held<'_> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn try_acquire(&self) -> Option<Self::Held<'_>> {
        self.0.try_lock().ok()
    }
}

/// Locks whose `lock` and `try_lock` return plain guards.
macro_rules! guarded {
    ($($(#[$doc:meta])* $name:ident($mutex:ty), $guard:ty, timed $timed:literal;)*) => {$(
        $(#[$doc])*
        pub struct $name($mutex);

        impl Lock for $name {
            const TIMED: bool = $timed;

            fn unlocked(_: Scope) -> Result<Self> {
                Ok(Self(<$mutex>::new(())))
            }

            type Held<'a> = $guard;

            #[inline]
            fn acquire(&self) -> Self::Held<'_> {
                self.0.lock()
            }

            #[inline]
            fn try_acquire(&self) -> Option<Self::Held<'_>> {
                self.0.try_lock()
            }
        }
    )*};
}

guarded! {
    /// parking_lot 0.13.
    #[derive(Debug)]
    ParkingLot(parking_lot::Mutex<()>), parking_lot::MutexGuard<'a, ()>, timed true;
    /// parking_lot 0.13's mutex that hands over to the first waiter. An arriving thread that
    /// finds it free may still overtake.
    #[derive(Debug)]
    ParkingLotFair(parking_lot::FairMutex<()>), parking_lot::FairMutexGuard<'a, ()>, timed true;
    /// parking_lot 0.12, another algorithm.
    #[derive(Debug)]
    ParkingLot012(parking_lot_012::Mutex<()>), parking_lot_012::MutexGuard<'a, ()>, timed true;
    /// usync.
    #[derive(Debug)]
    Usync(usync::Mutex<()>), usync::MutexGuard<'a, ()>, timed false;
}
