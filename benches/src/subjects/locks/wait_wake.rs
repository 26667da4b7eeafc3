//! A probe: the mutex of three values on FUTEX_WAIT and FUTEX_WAKE, which never spins.
//!
//! It is what Long's mail of 2016 calls a wait-wake futex. The algorithm is the third one of Ulrich
//! Drepper, *Futexes Are Tricky*.

use super::{Held, Lock, Release, Scope};
use anyhow::Result;
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release as Releasing};

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and a thread may sleep.
const CONTENDED: u32 = 2;

/// For the threads of one process.
#[derive(Debug, Default)]
pub struct WaitWake(AtomicU32);

impl WaitWake {
    fn futex(&self, operation: libc::c_int, argument: u32) {
        // SAFETY: the word lives, and there is no timeout. Any outcome of a wait is followed by
        // another look.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.0.as_ptr(),
                operation | libc::FUTEX_PRIVATE_FLAG,
                argument,
                ptr::null::<libc::timespec>(),
            )
        };
    }

    #[cold]
    fn wait(&self) {
        while self.0.swap(CONTENDED, Acquire) != FREE {
            self.futex(libc::FUTEX_WAIT, CONTENDED);
        }
    }
}

impl Lock for WaitWake {
    fn unlocked(_: Scope) -> Result<Self> {
        Ok(Self::default())
    }

    type Held<'a> = Held<'a, Self>;

    #[inline]
    fn acquire(&self) -> Self::Held<'_> {
        self.try_acquire().unwrap_or_else(|| {
            self.wait();
            Held(self)
        })
    }

    #[inline]
    fn try_acquire(&self) -> Option<Self::Held<'_>> {
        self.0.compare_exchange(FREE, HELD, Acquire, Relaxed).ok().map(|_| Held(self))
    }
}

impl Release for WaitWake {
    #[inline]
    fn release(&self) {
        if self.0.swap(FREE, Releasing) == CONTENDED {
            self.futex(libc::FUTEX_WAKE, 1);
        }
    }
}
