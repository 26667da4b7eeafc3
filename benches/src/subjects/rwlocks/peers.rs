//! The peers. They know readers and writers, and nothing of classes.

use super::{Class, OnSignal, RwLock};
use anyhow::{Result, bail, ensure};
use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;
use std::sync::PoisonError;

/// A lock with one kind of reader.
pub trait Plain: Send + Sync + Sized + 'static {
    /// As [`RwLock::COUNTABLE`].
    const COUNTABLE: bool = true;
    /// Holding it with others.
    type Read<'a>;
    /// Holding it alone.
    type Write<'a>;
    /// An unlocked lock that may still be moved.
    fn unlocked() -> Result<Self> {
        bail!("this lock has no value to be moved: it is made where it stays")
    }
    /// Creates an unlocked lock where it stays.
    fn place(place: &mut MaybeUninit<Self>) -> Result<()> {
        place.write(Self::unlocked()?);
        Ok(())
    }
    /// Locks for reading.
    fn read(&self) -> Self::Read<'_>;
    /// Locks for reading if that needs no waiting.
    fn try_read(&self) -> Option<Self::Read<'_>>;
    /// Locks for writing.
    fn write(&self) -> Self::Write<'_>;
    /// Locks for writing if that needs no waiting.
    fn try_write(&self) -> Option<Self::Write<'_>>;
}

/// A peer as it is: all its readers alike, and none in signal handlers.
#[derive(Debug)]
#[repr(transparent)]
pub struct Peer<P>(pub(super) P);

/// Places the lock inside a transparent wrapper.
pub(super) fn place_inside<P: Plain, W>(place: &mut MaybeUninit<W>) -> Result<()> {
    const { assert!(size_of::<P>() == size_of::<W>() && align_of::<P>() == align_of::<W>()) };
    // SAFETY: `W` is a transparent wrapper around `P`, as both callers know and the assertion
    // supports; uninitialised memory of one is that of the other.
    P::place(unsafe { &mut *place.as_mut_ptr().cast::<MaybeUninit<P>>() })
}

impl<P: Plain> RwLock for Peer<P> {
    const COUNTABLE: bool = P::COUNTABLE;

    type Write<'a> = P::Write<'a>;
    type Read<'a> = P::Read<'a>;
    type Handler<'a> = P::Read<'a>;
    type Context<'a> = ();

    fn place(place: &mut MaybeUninit<Self>) -> Result<()> {
        place_inside::<P, Self>(place)
    }

    #[inline]
    fn write(&self) -> P::Write<'_> {
        self.0.write()
    }

    #[inline]
    fn try_write(&self) -> Option<P::Write<'_>> {
        self.0.try_write()
    }

    #[inline]
    fn read<C: Class>(&self) -> P::Read<'_> {
        self.0.read()
    }

    #[inline]
    fn try_read<C: Class>(&self) -> Option<P::Read<'_>> {
        self.0.try_read()
    }

    /// None: a handler on a thread that has or wants the lock would wait for itself.
    fn read_handler<'a>(&'a self, (): &'a ()) -> Option<P::Read<'a>> {
        None
    }

    fn try_read_handler<'a>(&'a self, (): &'a ()) -> Option<P::Read<'a>> {
        None
    }

    unsafe fn install<H: OnSignal<Self>>(_: i32) -> Result<()> {
        bail!("this lock is not read in signal handlers; allowed: its masked twin")
    }
}

/// Locks in the manner of lock_api.
macro_rules! guarded {
    ($($(#[$doc:meta])* $name:ident($lock:ty), $read:ty, $write:ty;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name($lock);

        impl Plain for $name {
            type Read<'a> = $read;
            type Write<'a> = $write;

            fn unlocked() -> Result<Self> {
                Ok(Self(<$lock>::new(())))
            }

            #[inline]
            fn read(&self) -> Self::Read<'_> {
                self.0.read()
            }

            #[inline]
            fn try_read(&self) -> Option<Self::Read<'_>> {
                self.0.try_read()
            }

            #[inline]
            fn write(&self) -> Self::Write<'_> {
                self.0.write()
            }

            #[inline]
            fn try_write(&self) -> Option<Self::Write<'_>> {
                self.0.try_write()
            }
        }
    )*};
}

guarded! {
    /// parking_lot 0.13.
    ParkingLot(parking_lot::RwLock<()>),
        parking_lot::RwLockReadGuard<'a, ()>, parking_lot::RwLockWriteGuard<'a, ()>;
    /// usync.
    Usync(usync::RwLock<()>), usync::RwLockReadGuard<'a, ()>, usync::RwLockWriteGuard<'a, ()>;
}

/// `std::sync::RwLock`.
#[derive(Debug)]
pub struct Std(std::sync::RwLock<()>);

impl Plain for Std {
    type Read<'a> = std::sync::RwLockReadGuard<'a, ()>;
    type Write<'a> = std::sync::RwLockWriteGuard<'a, ()>;

    fn unlocked() -> Result<Self> {
        Ok(Self(std::sync::RwLock::new(())))
    }

    #[inline]
    fn read(&self) -> Self::Read<'_> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn try_read(&self) -> Option<Self::Read<'_>> {
        self.0.try_read().ok()
    }

    #[inline]
    fn write(&self) -> Self::Write<'_> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn try_write(&self) -> Option<Self::Write<'_>> {
        self.0.try_write().ok()
    }
}

/// A `pthread_rwlock_t`: readers first, as by default, or writers first.
#[derive(Debug)]
#[repr(transparent)]
pub struct Pthread<const WRITERS_FIRST: bool>(UnsafeCell<libc::pthread_rwlock_t>);

/// glibc's number of the kind that lets no reader pass a waiting writer; libc has no name for it.
#[cfg(target_env = "gnu")]
const PREFER_WRITER_NONRECURSIVE: libc::c_int = 2;

/// Asks for a lock that serves writers first. The registry leaves it out where the libc has none.
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

impl<const WRITERS_FIRST: bool> Plain for Pthread<WRITERS_FIRST> {
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
    fn read(&self) -> Self::Read<'_> {
        self.take(libc::pthread_rwlock_rdlock).expect("rdlock waits")
    }

    #[inline]
    fn try_read(&self) -> Option<Self::Read<'_>> {
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
