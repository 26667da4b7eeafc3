//! Semaphores of one permit as locks: POSIX's and System V's.

use super::{Held, Lock, Scope};
use crate::subjects::semaphores::kernel_set::SemSet;
use anyhow::{Result, ensure};
use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;

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

impl Lock for PosixSem {
    const COUNTABLE: bool = false;

    fn place(place: &mut MaybeUninit<Self>, scope: Scope) -> Result<()> {
        let is_shared = libc::c_int::from(scope == Scope::Processes);
        // SAFETY: the place is valid for writes and aligned, and `PosixSem` is transparent around
        // the semaphore.
        let rc = unsafe { libc::sem_init(place.as_mut_ptr().cast(), is_shared, 1) };
        ensure!(rc == 0, "sem_init: {}", io::Error::last_os_error());
        Ok(())
    }

    type Held<'a> = Held<'a, Self>;

    #[inline]
    fn acquire(&self, wait: bool) -> Option<Held<'_, Self>> {
        loop {
            let call = if wait { libc::sem_wait } else { libc::sem_trywait };
            // SAFETY: `place` initialised the semaphore and it has not moved.
            if unsafe { call(self.0.get()) } == 0 {
                return Some(Held(self));
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN) if !wait => return None,
                _ => panic!("sem_wait: {error}"),
            }
        }
    }

    #[inline]
    fn release(&self) {
        // SAFETY: `place` initialised the semaphore and it has not moved.
        unsafe { libc::sem_post(self.0.get()) };
    }
}

/// A System V set of one semaphore, which a death gives back if `UNDO`: Franke's base line, two
/// system calls an acquisition. His program does without SEM_UNDO.
#[derive(Debug)]
#[repr(transparent)]
pub struct SysV<const UNDO: bool = false>(pub(crate) SemSet);

impl<const UNDO: bool> SysV<UNDO> {
    /// Adds `change`; says whether that was possible without waiting, or after it.
    #[inline]
    fn change(&self, change: i16, flags: i16) -> bool {
        let flags = if UNDO { flags | libc::SEM_UNDO as i16 } else { flags };
        self.0.apply(&[libc::sembuf { sem_num: 0, sem_op: change, sem_flg: flags }])
    }
}

impl<const UNDO: bool> Lock for SysV<UNDO> {
    const COUNTABLE: bool = false;

    fn place(place: &mut MaybeUninit<Self>, _: Scope) -> Result<()> {
        place.write(Self(SemSet::new(&[1])?));
        Ok(())
    }

    type Held<'a> = Held<'a, Self>;

    #[inline]
    fn acquire(&self, wait: bool) -> Option<Held<'_, Self>> {
        self.change(-1, if wait { 0 } else { libc::IPC_NOWAIT as i16 }).then(|| Held(self))
    }

    #[inline]
    fn release(&self) {
        self.change(1, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem;

    /// The bytes of a semaphore of these users; what `sem_init` leaves out is zero.
    fn bytes(scope: Scope) -> [u8; size_of::<libc::sem_t>()] {
        let mut place = MaybeUninit::zeroed();
        PosixSem::place(&mut place, scope).unwrap();
        // SAFETY: all bytes were zero or written by `sem_init`, and bytes may have any value.
        unsafe { mem::transmute_copy(&place) }
    }

    #[test]
    fn a_semaphore_of_threads_is_private_to_the_process() {
        let shared = |flag| {
            let mut place = MaybeUninit::<libc::sem_t>::zeroed();
            // SAFETY: the place is valid for writes and aligned.
            assert_eq!(unsafe { libc::sem_init(place.as_mut_ptr(), flag, 1) }, 0);
            // SAFETY: as above.
            unsafe { mem::transmute_copy::<_, [u8; size_of::<libc::sem_t>()]>(&place) }
        };
        assert_ne!(shared(0), shared(1));
        assert_eq!([Scope::Threads, Scope::Processes].map(bytes), [0, 1].map(shared));
    }
}
