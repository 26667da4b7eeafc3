//! The futex operations that every world has, on the real kernel.
//!
//! A futex word that is borrowed, aligned and mapped leaves the kernel no reason to refuse a wait. If it does so all
//! the same (the file behind a mapping was truncated, a seccomp filter forbids the call), nobody could say what a lock
//! should do next, and these functions panic. A wake-up is different: it takes a name, and to find nobody by that name
//! is no failure.

use super::atomic::AtomicU32;
use super::syscall::{Errno, clamp, futex, futex_until, name, on_clock_of, waited};
use crate::futex::{RequeueError, Unexpected, Waited};
use crate::time::Deadline;
use core::ptr::null_mut;

/// `FUTEX_WAIT_BITSET` on `word`.
#[inline]
pub(crate) fn wait(
    word: &AtomicU32,
    expected: u32,
    bitset: u32,
    deadline: Option<Deadline>,
    private: bool,
) -> Waited {
    let command = on_clock_of(deadline, libc::FUTEX_WAIT_BITSET);
    // SAFETY: the kernel reads `word`, which is borrowed for the whole call, and takes no second word.
    let answer =
        unsafe { futex_until(word.as_ptr(), command, private, expected, deadline, null_mut(), bitset) };
    waited(answer).unwrap_or_else(|error| refused("futex wait", error))
}

/// `FUTEX_WAKE_BITSET` on `key`, which need not be mapped any more. Returns how many were woken.
#[inline]
pub(crate) fn wake(key: usize, count: u32, bitset: u32, private: bool) -> u32 {
    if count == 0 {
        return 0; // The kernel would wake one.
    }
    // SAFETY: a wake-up neither reads nor writes a word: both addresses are names.
    let answer =
        unsafe { futex(name(key), libc::FUTEX_WAKE_BITSET, private, clamp(count), 0, null_mut(), bitset) };
    match answer {
        Ok(woken) => woken,
        // The memory of the futex is gone (EFAULT), or by now somebody else's, who made a priority-inheritance futex
        // of it (EINVAL): nobody sleeps there by this name.
        Err(Errno(libc::EFAULT | libc::EINVAL)) => 0,
        Err(error) => refused("futex wake", error),
    }
}

/// `FUTEX_CMP_REQUEUE`: an error if `*word != expected`, otherwise (woken, requeued) taken together.
///
/// Miri has no such call: there, whoever would be moved is woken, which every waiter must be prepared for anyway.
#[inline]
pub(crate) fn cmp_requeue(
    word: &AtomicU32,
    expected: u32,
    wake: u32,
    requeue: u32,
    to: usize,
    private: bool,
) -> Result<u32, RequeueError> {
    if cfg!(miri) {
        if word.load(super::atomic::Ordering::Relaxed) != expected {
            return Err(RequeueError::Mismatch);
        }
        let count = wake.saturating_add(requeue);
        return Ok(self::wake(word.as_ptr().expose_provenance(), count, u32::MAX, private));
    }
    let command = libc::FUTEX_CMP_REQUEUE;
    let (wake, requeue) = (clamp(wake), clamp(requeue));
    // SAFETY: the kernel reads `word`, which is borrowed for the whole call; the second word is a name.
    let answer = unsafe { futex(word.as_ptr(), command, private, wake, requeue, name(to), expected) };
    answer.map_err(|error| RequeueError::of("FUTEX_CMP_REQUEUE", error))
}

#[cold]
#[inline(never)]
fn refused(call: &'static str, error: Errno) -> ! {
    panic!("{}", Unexpected::of(call, error));
}
