//! A probe: the plainest ticket lock that sleeps in the kernel.
//!
//! Draw a ticket, sleep until it is served. A release serves the next ticket and wakes the waiters
//! that sleep with its bit, one of 32: tickets that differ by a multiple of 32 wake one another for
//! nothing. All sleep in one bucket of the kernel's hash table, which each wake-up walks. What
//! `ulocks_fair`'s process-shared mutex must not be like when a thousand wait.

use super::{Held, Lock, Release, Scope};
use anyhow::Result;
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

/// For the threads of one process, or, if `SHARED`, for processes.
#[derive(Debug, Default)]
pub struct TicketFutex<const SHARED: bool> {
    /// The next ticket to be drawn.
    next: AtomicU32,
    /// The ticket that holds the lock, or will: the lock is free if no thread has drawn it.
    serving: AtomicU32,
}

impl<const SHARED: bool> TicketFutex<SHARED> {
    const FLAG: libc::c_int = if SHARED { 0 } else { libc::FUTEX_PRIVATE_FLAG };

    fn bit(ticket: u32) -> u32 {
        1 << (ticket % 32)
    }

    #[cold]
    fn wait(&self, ticket: u32) {
        loop {
            let serving = self.serving.load(Acquire);
            if serving == ticket {
                return;
            }
            // SAFETY: the word lives; there is no timeout, and the second address is not used. Any
            // outcome is followed by another look.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.serving.as_ptr(),
                    libc::FUTEX_WAIT_BITSET | Self::FLAG,
                    serving,
                    ptr::null::<libc::timespec>(),
                    ptr::null::<u32>(),
                    Self::bit(ticket),
                )
            };
        }
    }
}

impl<const SHARED: bool> Lock for TicketFutex<SHARED> {
    fn unlocked(_: Scope) -> Result<Self> {
        Ok(Self::default())
    }

    type Held<'a> = Held<'a, Self>;

    #[inline]
    fn acquire(&self) -> Self::Held<'_> {
        let ticket = self.next.fetch_add(1, SeqCst);
        if self.serving.load(Acquire) != ticket {
            self.wait(ticket);
        }
        Held(self)
    }

    #[inline]
    fn try_acquire(&self) -> Option<Self::Held<'_>> {
        let serving = self.serving.load(Acquire);
        // No thread is served before drawing: success says that the ticket was still to be had, so
        // the lock was free.
        self.next.compare_exchange(serving, serving.wrapping_add(1), SeqCst, Relaxed).ok().map(|_| Held(self))
    }
}

impl<const SHARED: bool> Release for TicketFutex<SHARED> {
    #[inline]
    fn release(&self) {
        // Either the release sees a ticket that was drawn, or the thread that draws it sees that it
        // is served: both raise one counter and read the other, in the one order of all SeqCst
        // accesses (the kernel's look is a barrier too).
        let next = self.serving.fetch_add(1, SeqCst).wrapping_add(1);
        if self.next.load(SeqCst) != next {
            // SAFETY: waking needs only the address.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.serving.as_ptr(),
                    libc::FUTEX_WAKE_BITSET | Self::FLAG,
                    i32::MAX,
                    ptr::null::<libc::timespec>(),
                    ptr::null::<u32>(),
                    Self::bit(next),
                )
            };
        }
    }
}
