//! A probe: the mutex of three values on FUTEX_WAIT and FUTEX_WAKE, which never spins.
//!
//! It is what Long's mail of 2016 calls a wait-wake futex. The algorithm is the third one of Ulrich
//! Drepper, *Futexes Are Tricky*.

use super::{Held, Lock, Scope};
use anyhow::Result;
use std::mem::MaybeUninit;
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
    #[cold]
    fn wait(&self) {
        while self.0.swap(CONTENDED, Acquire) != FREE {
            futex(self.0.as_ptr(), libc::FUTEX_WAIT, CONTENDED);
        }
    }
}

/// A call without a timeout, between the threads of one process. Whatever comes of it, a waiter
/// looks again. To wake needs only the address, which may be that of a word that is gone.
pub(super) fn futex(word: *mut u32, operation: libc::c_int, argument: u32) {
    let (operation, never) = (operation | libc::FUTEX_PRIVATE_FLAG, ptr::null::<libc::timespec>());
    // SAFETY: the kernel looks at the word, and refuses an address at which there is none.
    unsafe { libc::syscall(libc::SYS_futex, word, operation, argument, never) };
}

impl Lock for WaitWake {
    fn place(place: &mut MaybeUninit<Self>, _: Scope) -> Result<()> {
        place.write(Self::default());
        Ok(())
    }

    type Held<'a> = Held<'a, Self>;

    #[inline]
    fn acquire(&self, wait: bool) -> Option<Held<'_, Self>> {
        if self.0.compare_exchange(FREE, HELD, Acquire, Relaxed).is_err() {
            if !wait {
                return None;
            }
            self.wait();
        }
        Some(Held(self))
    }

    #[inline]
    fn release(&self) {
        if self.0.swap(FREE, Releasing) == CONTENDED {
            futex(self.0.as_ptr(), libc::FUTEX_WAKE, 1);
        }
    }
}
