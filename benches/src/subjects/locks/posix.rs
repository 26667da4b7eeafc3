//! glibc's mutexes and unnamed semaphore.

use super::{Held, Lock, Scope};
use anyhow::{Result, ensure};
use std::cell::UnsafeCell;
use std::io;

/// Kinds of [`Posix`] mutex.
pub const NORMAL: u8 = 0;
/// Spins a little before it sleeps.
pub const ADAPTIVE: u8 = 1;
/// Priority inheritance.
pub const INHERIT: u8 = 2;
/// Robust, and process-shared also among threads.
pub const ROBUST: u8 = 3;

/// `PTHREAD_MUTEX_ADAPTIVE_NP` of glibc. Other libcs lack it, and refuse the number.
const ADAPTIVE_NP: libc::c_int = 3;

/// A `pthread_mutex_t` of one kind.
#[derive(Debug)]
#[repr(transparent)]
pub struct Posix<const KIND: u8>(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a pthread mutex is made to be called from several threads; only its functions touch it.
unsafe impl<const KIND: u8> Sync for Posix<KIND> {}

impl<const KIND: u8> Drop for Posix<KIND> {
    fn drop(&mut self) {
        // SAFETY: `place` initialised the mutex, and `&mut self` says that no thread uses it. One
        // that a killed worker left locked is refused with EBUSY, which does no harm.
        unsafe { libc::pthread_mutex_destroy(self.0.get()) };
    }
}

impl<const KIND: u8> Lock for Posix<KIND> {
    const COUNTABLE: bool = false;

    unsafe fn place(place: *mut Self, scope: Scope) -> Result<()> {
        let shared = scope == Scope::Processes || KIND == ROBUST;
        let mut attr = std::mem::MaybeUninit::uninit();
        let attr = attr.as_mut_ptr();
        // SAFETY: `attr` is writable, is initialised by the first call and destroyed by the last.
        // `place` is valid for writes and aligned by the caller's word, and `Posix` is transparent
        // around the mutex.
        unsafe {
            check("pthread_mutexattr_init", libc::pthread_mutexattr_init(attr))?;
            if shared {
                let rc = libc::pthread_mutexattr_setpshared(attr, libc::PTHREAD_PROCESS_SHARED);
                check("pthread_mutexattr_setpshared", rc)?;
            }
            let rc = match KIND {
                ADAPTIVE => libc::pthread_mutexattr_settype(attr, ADAPTIVE_NP),
                INHERIT => libc::pthread_mutexattr_setprotocol(attr, libc::PTHREAD_PRIO_INHERIT),
                ROBUST => libc::pthread_mutexattr_setrobust(attr, libc::PTHREAD_MUTEX_ROBUST),
                _ => libc::pthread_mutexattr_settype(attr, libc::PTHREAD_MUTEX_NORMAL),
            };
            check("pthread_mutexattr", rc)?;
            check("pthread_mutex_init", libc::pthread_mutex_init(place.cast(), attr))?;
            libc::pthread_mutexattr_destroy(attr);
        }
        Ok(())
    }

    type Held<'a> = Held<'a, Self>;

    #[inline]
    fn acquire(&self) -> Self::Held<'_> {
        // SAFETY: `place` initialised the mutex and it has not moved.
        let mut rc = unsafe { libc::pthread_mutex_lock(self.0.get()) };
        if KIND == ROBUST && rc == libc::EOWNERDEAD {
            // SAFETY: `place` initialised the mutex, and this thread has it.
            rc = unsafe { libc::pthread_mutex_consistent(self.0.get()) };
        }
        assert!(rc == 0, "pthread_mutex_lock: {}", io::Error::from_raw_os_error(rc));
        Held(self)
    }

    #[inline]
    fn try_acquire(&self) -> Option<Self::Held<'_>> {
        // SAFETY: `place` initialised the mutex and it has not moved.
        let rc = unsafe { libc::pthread_mutex_trylock(self.0.get()) };
        if rc == libc::EBUSY {
            return None;
        }
        assert!(rc == 0, "pthread_mutex_trylock: {}", io::Error::from_raw_os_error(rc));
        Some(Held(self))
    }

    #[inline]
    fn release(&self) {
        // SAFETY: `place` initialised the mutex, and this thread holds it.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

fn check(call: &str, rc: i32) -> Result<()> {
    ensure!(rc == 0, "{call}: {}", io::Error::from_raw_os_error(rc));
    Ok(())
}

/// A `sem_t` of value one.
#[derive(Debug)]
#[repr(transparent)]
pub struct PosixSem(UnsafeCell<libc::sem_t>);

// SAFETY: a semaphore is made to be called from several threads; only its functions touch it.
unsafe impl Sync for PosixSem {}

impl Drop for PosixSem {
    fn drop(&mut self) {
        // SAFETY: `place` initialised the semaphore, and `&mut self` says that no thread waits on
        // it.
        unsafe { libc::sem_destroy(self.0.get()) };
    }
}

impl PosixSem {
    /// Takes the semaphore by `call`; says whether it was had. Retries what a signal interrupted.
    #[inline]
    fn take(&self, call: unsafe extern "C" fn(*mut libc::sem_t) -> libc::c_int) -> bool {
        loop {
            // SAFETY: `place` initialised the semaphore and it has not moved.
            if unsafe { call(self.0.get()) } == 0 {
                return true;
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN) => return false,
                _ => panic!("sem_wait: {error}"),
            }
        }
    }
}

impl Lock for PosixSem {
    const COUNTABLE: bool = false;

    unsafe fn place(place: *mut Self, _: Scope) -> Result<()> {
        // SAFETY: valid for writes and aligned by the caller's word; `PosixSem` is transparent
        // around the semaphore.
        let rc = unsafe { libc::sem_init(place.cast(), 1, 1) };
        ensure!(rc == 0, "sem_init: {}", io::Error::last_os_error());
        Ok(())
    }

    type Held<'a> = Held<'a, Self>;

    #[inline]
    fn acquire(&self) -> Self::Held<'_> {
        let had = self.take(libc::sem_wait);
        assert!(had, "sem_wait returned EAGAIN");
        Held(self)
    }

    #[inline]
    fn try_acquire(&self) -> Option<Self::Held<'_>> {
        self.take(libc::sem_trywait).then(|| Held(self))
    }

    #[inline]
    fn release(&self) {
        // SAFETY: `place` initialised the semaphore and it has not moved.
        unsafe { libc::sem_post(self.0.get()) };
    }
}
