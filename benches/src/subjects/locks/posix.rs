//! glibc's mutexes.

use super::{Held, Lock, Scope};
use anyhow::{Result, ensure};
use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;

/// Kinds of [`Posix`] mutex.
pub const NORMAL: u8 = 0;
/// Priority inheritance.
pub const INHERIT: u8 = 2;
/// Robust, and process-shared also among threads.
pub const ROBUST: u8 = 3;

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

    fn place(place: &mut MaybeUninit<Self>, scope: Scope) -> Result<()> {
        let shared = match scope {
            Scope::Threads if KIND != ROBUST => libc::PTHREAD_PROCESS_PRIVATE,
            _ => libc::PTHREAD_PROCESS_SHARED,
        };
        let mut attr = MaybeUninit::uninit();
        let attr = attr.as_mut_ptr();
        // SAFETY: `attr` is writable, is initialised by the first call and destroyed by the last.
        // The place is valid for writes and aligned, and `Posix` is transparent around the mutex.
        unsafe {
            check("pthread_mutexattr_init", libc::pthread_mutexattr_init(attr))?;
            check("pthread_mutexattr_setpshared", libc::pthread_mutexattr_setpshared(attr, shared))?;
            let rc = match KIND {
                INHERIT => libc::pthread_mutexattr_setprotocol(attr, libc::PTHREAD_PRIO_INHERIT),
                ROBUST => libc::pthread_mutexattr_setrobust(attr, libc::PTHREAD_MUTEX_ROBUST),
                _ => libc::pthread_mutexattr_settype(attr, libc::PTHREAD_MUTEX_NORMAL),
            };
            check("pthread_mutexattr", rc)?;
            check("pthread_mutex_init", libc::pthread_mutex_init(place.as_mut_ptr().cast(), attr))?;
            libc::pthread_mutexattr_destroy(attr);
        }
        Ok(())
    }

    type Held<'a> = Held<'a, Self>;

    #[inline]
    fn acquire(&self, wait: bool) -> Option<Held<'_, Self>> {
        let call = if wait { libc::pthread_mutex_lock } else { libc::pthread_mutex_trylock };
        // SAFETY: `place` initialised the mutex and it has not moved.
        let mut rc = unsafe { call(self.0.get()) };
        if KIND == ROBUST && rc == libc::EOWNERDEAD {
            // SAFETY: `place` initialised the mutex, and this thread has it.
            rc = unsafe { libc::pthread_mutex_consistent(self.0.get()) };
        }
        match rc {
            0 => Some(Held(self)),
            libc::EBUSY if !wait => None,
            _ => panic!("pthread_mutex_lock: {}", io::Error::from_raw_os_error(rc)),
        }
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
