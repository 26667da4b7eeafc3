//! The peers. They know readers and writers, and nothing of classes.

use super::{Rank, RwLock};
use anyhow::{Result, ensure};
use std::cell::UnsafeCell;
use std::convert::identity;
use std::io;
use std::mem::MaybeUninit;
use std::sync::{LockResult, PoisonError};

/// No section of a benchmark leaves anything half done.
#[inline]
fn whole<G>(held: LockResult<G>) -> Option<G> {
    Some(held.unwrap_or_else(PoisonError::into_inner))
}

/// Locks in the manner of lock_api, and what makes guards of that which they return: those that
/// wait, and those that try.
macro_rules! guarded {
    ($(#[$doc:meta] $name:ident($($lock:ident)::+), $waited:expr, $tried:expr;)*) => {$(
        #[$doc]
        #[derive(Debug)]
        #[repr(transparent)]
        pub struct $name($($lock)::+::RwLock<()>);

        impl RwLock for $name {
            type Read<'a> = $($lock)::+::RwLockReadGuard<'a, ()>;
            type Write<'a> = $($lock)::+::RwLockWriteGuard<'a, ()>;

            fn place(place: &mut MaybeUninit<Self>) -> Result<()> {
                place.write(Self(<$($lock)::+::RwLock<()>>::new(())));
                Ok(())
            }

            #[inline]
            fn write(&self, wait: bool) -> Option<Self::Write<'_>> {
                if wait { $waited(self.0.write()) } else { $tried(self.0.try_write()) }
            }

            #[inline]
            fn read(&self, _: Rank, wait: bool) -> Option<Self::Read<'_>> {
                if wait { $waited(self.0.read()) } else { $tried(self.0.try_read()) }
            }
        }
    )*};
}

/// crossbeam's, by the names of the others.
mod sharded {
    pub use crossbeam_utils::sync::{
        ShardedLock as RwLock, ShardedLockReadGuard as RwLockReadGuard,
        ShardedLockWriteGuard as RwLockWriteGuard,
    };
}

guarded! {
    /// crossbeam's `ShardedLock`.
    Sharded(sharded), whole, Result::ok;
    /// parking_lot 0.13.
    ParkingLot(parking_lot), Some, identity;
    /// usync.
    Usync(usync), Some, identity;
    /// `std::sync::RwLock`.
    Std(std::sync), whole, Result::ok;
}

/// A `pthread_rwlock_t`: readers first, as by default.
#[derive(Debug)]
#[repr(transparent)]
pub struct Pthread(UnsafeCell<libc::pthread_rwlock_t>);

// SAFETY: a pthread rwlock is made to be called from several threads, and knows no owner of a read
// lock; only its functions touch it.
unsafe impl Sync for Pthread {}

/// Holding one; either way it is released by the same call.
#[derive(Debug)]
pub struct PthreadHeld<'a>(&'a UnsafeCell<libc::pthread_rwlock_t>);

impl Drop for PthreadHeld<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the lock was initialised, has not moved, and is held by this thread.
        let rc = unsafe { libc::pthread_rwlock_unlock(self.0.get()) };
        debug_assert_eq!(rc, 0);
    }
}

impl Drop for Pthread {
    fn drop(&mut self) {
        // SAFETY: `place` initialised the lock, and `&mut self` says that no thread uses it.
        unsafe { libc::pthread_rwlock_destroy(self.0.get()) };
    }
}

impl Pthread {
    /// Takes it by `call`; says whether it was had. A default lock answers EAGAIN when it has too
    /// many readers.
    #[inline]
    fn take(
        &self,
        call: unsafe extern "C" fn(*mut libc::pthread_rwlock_t) -> libc::c_int,
    ) -> Option<PthreadHeld<'_>> {
        // SAFETY: `place` initialised the lock and it has not moved.
        match unsafe { call(self.0.get()) } {
            0 => Some(PthreadHeld(&self.0)),
            libc::EBUSY => None,
            rc => panic!("pthread_rwlock: {}", io::Error::from_raw_os_error(rc)),
        }
    }
}

impl RwLock for Pthread {
    const COUNTABLE: bool = false;

    type Read<'a> = PthreadHeld<'a>;
    type Write<'a> = PthreadHeld<'a>;

    fn place(place: &mut MaybeUninit<Self>) -> Result<()> {
        // SAFETY: `place` is valid for writes, and `Pthread` is transparent around the lock. No
        // attributes are the default ones.
        let rc = unsafe { libc::pthread_rwlock_init(place.as_mut_ptr().cast(), std::ptr::null()) };
        ensure!(rc == 0, "pthread_rwlock_init: {}", io::Error::from_raw_os_error(rc));
        Ok(())
    }

    #[inline]
    fn write(&self, wait: bool) -> Option<Self::Write<'_>> {
        self.take(if wait { libc::pthread_rwlock_wrlock } else { libc::pthread_rwlock_trywrlock })
    }

    #[inline]
    fn read(&self, _: Rank, wait: bool) -> Option<Self::Read<'_>> {
        self.take(if wait { libc::pthread_rwlock_rdlock } else { libc::pthread_rwlock_tryrdlock })
    }
}
