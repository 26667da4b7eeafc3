//! The peers. They know readers and writers, and nothing of classes.

use super::{Class, RwLock};
use anyhow::{Result, ensure};
use std::cell::UnsafeCell;
use std::convert::identity;
use std::io;
use std::mem::MaybeUninit;
use std::sync::{self, LockResult, PoisonError};

/// A peer as it is: all its readers alike, and none in signal handlers.
pub type Peer<P> = P;

/// No section of a benchmark leaves anything half done.
#[inline]
fn whole<G>(held: LockResult<G>) -> G {
    held.unwrap_or_else(PoisonError::into_inner)
}

/// Locks in the manner of lock_api, and what makes guards of that which they return: those that
/// wait, and those that try.
macro_rules! guarded {
    ($(#[$doc:meta] $name:ident($lock:ty), $read:ty, $write:ty, $waited:expr, $tried:expr;)*) => {$(
        #[$doc]
        #[derive(Debug)]
        #[repr(transparent)]
        pub struct $name($lock);

        impl RwLock for $name {
            type Read<'a> = $read;
            type Write<'a> = $write;

            fn place(place: &mut MaybeUninit<Self>) -> Result<()> {
                place.write(Self(<$lock>::new(())));
                Ok(())
            }

            #[inline]
            fn read<C: Class>(&self) -> Self::Read<'_> {
                $waited(self.0.read())
            }

            #[inline]
            fn try_read<C: Class>(&self) -> Option<Self::Read<'_>> {
                $tried(self.0.try_read())
            }

            #[inline]
            fn write(&self) -> Self::Write<'_> {
                $waited(self.0.write())
            }

            #[inline]
            fn try_write(&self) -> Option<Self::Write<'_>> {
                $tried(self.0.try_write())
            }
        }
    )*};
}

guarded! {
    /// parking_lot 0.13.
    ParkingLot(parking_lot::RwLock<()>), parking_lot::RwLockReadGuard<'a, ()>,
        parking_lot::RwLockWriteGuard<'a, ()>, identity, identity;
    /// usync.
    Usync(usync::RwLock<()>), usync::RwLockReadGuard<'a, ()>, usync::RwLockWriteGuard<'a, ()>,
        identity, identity;
    /// `std::sync::RwLock`.
    Std(sync::RwLock<()>), sync::RwLockReadGuard<'a, ()>, sync::RwLockWriteGuard<'a, ()>,
        whole, Result::ok;
}

/// A `pthread_rwlock_t`: readers first, as by default, or writers first.
#[derive(Debug)]
#[repr(transparent)]
pub struct Pthread<const WRITERS_FIRST: bool>(UnsafeCell<libc::pthread_rwlock_t>);

/// glibc's number of the kind that lets no reader pass a waiting writer; libc has no name for it.
#[cfg(target_env = "gnu")]
const PREFER_WRITER_NONRECURSIVE: libc::c_int = 2;

/// Asks for a lock that serves writers first. The list leaves it out where the libc has none.
///
/// # Safety
/// The attributes are initialised.
unsafe fn prefer_writers(attr: *mut libc::pthread_rwlockattr_t) -> libc::c_int {
    // SAFETY: the attributes are initialised, by the caller's word.
    #[cfg(target_env = "gnu")]
    return unsafe { libc::pthread_rwlockattr_setkind_np(attr, PREFER_WRITER_NONRECURSIVE) };
    #[cfg(not(target_env = "gnu"))]
    return (attr, libc::EINVAL).1;
}

// SAFETY: a pthread rwlock is made to be called from several threads, and knows no owner of a read
// lock; only its functions touch it.
unsafe impl<const WRITERS_FIRST: bool> Sync for Pthread<WRITERS_FIRST> {}

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

impl<const WRITERS_FIRST: bool> Drop for Pthread<WRITERS_FIRST> {
    fn drop(&mut self) {
        // SAFETY: `place` initialised the lock, and `&mut self` says that no thread uses it.
        unsafe { libc::pthread_rwlock_destroy(self.0.get()) };
    }
}

impl<const WRITERS_FIRST: bool> Pthread<WRITERS_FIRST> {
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

impl<const WRITERS_FIRST: bool> RwLock for Pthread<WRITERS_FIRST> {
    const COUNTABLE: bool = false;

    type Read<'a> = PthreadHeld<'a>;
    type Write<'a> = PthreadHeld<'a>;

    fn place(place: &mut MaybeUninit<Self>) -> Result<()> {
        let mut attr = MaybeUninit::uninit();
        let attr = attr.as_mut_ptr();
        // SAFETY: `attr` is writable, is initialised by the first call and destroyed by the last;
        // `place` is valid for writes, and `Pthread` is transparent around the lock.
        let rc = unsafe {
            let mut rc = libc::pthread_rwlockattr_init(attr);
            if rc == 0 && WRITERS_FIRST {
                rc = prefer_writers(attr);
            }
            if rc == 0 {
                rc = libc::pthread_rwlock_init(place.as_mut_ptr().cast(), attr);
                libc::pthread_rwlockattr_destroy(attr);
            }
            rc
        };
        ensure!(rc == 0, "pthread_rwlock_init: {}", io::Error::from_raw_os_error(rc));
        Ok(())
    }

    #[inline]
    fn read<C: Class>(&self) -> Self::Read<'_> {
        self.take(libc::pthread_rwlock_rdlock).expect("rdlock waits")
    }

    #[inline]
    fn try_read<C: Class>(&self) -> Option<Self::Read<'_>> {
        self.take(libc::pthread_rwlock_tryrdlock)
    }

    #[inline]
    fn write(&self) -> Self::Write<'_> {
        self.take(libc::pthread_rwlock_wrlock).expect("wrlock waits")
    }

    #[inline]
    fn try_write(&self) -> Option<Self::Write<'_>> {
        self.take(libc::pthread_rwlock_trywrlock)
    }
}
