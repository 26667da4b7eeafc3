//! The futex operations that every world has, on the real kernel.
//!
//! A futex word that is borrowed, aligned and mapped leaves the kernel no reason to refuse a wait.
//! It may refuse all the same: the file behind a mapping was truncated, or a seccomp filter forbids
//! the call. Then the wait panics. The waiter is awake, and its lock knows whether anything must be
//! undone.
//!
//! A wake-up takes a name. If no thread sleeps there, that is no failure. If a seccomp filter
//! forbids the call, the process aborts. A sleeper would sleep for ever without the wake-up. The
//! caller may not touch the lock any more, so no caller could make up for it.

use super::atomic::AtomicU32;
use super::clock::Timespec;
use super::syscall::{checked, clamp, clock_id, futex, futex_until, name, on_clock_of, pointer, waited};
use super::without_unwinding;
use crate::sys::errno::Errno;
use crate::sys::types::futex::{RequeueError, Unexpected, Waited, WaitvError, WaitvOutcome};
use crate::sys::types::time::Deadline;
use crate::sys::world::capabilities::{Capability, missing};
use core::marker::PhantomData;
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
    // SAFETY: the kernel reads `word`, which is borrowed for the whole call, and takes no second
    // word.
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
        // The memory of the futex is gone (EFAULT), or its new owner has made a
        // priority-inheritance futex of it (EINVAL). No thread sleeps there by this name.
        Err(Errno(libc::EFAULT | libc::EINVAL)) => 0,
        Err(error) => without_unwinding(|| -> u32 { refused("futex wake", error) }),
    }
}

/// `FUTEX_CMP_REQUEUE`: an error if `*word != expected`, otherwise how many were woken and requeued
/// together.
///
/// Miri has no such call. There the sleepers that would be moved are woken, and each waiter must be
/// prepared for that anyway.
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
    // SAFETY: the kernel reads `word`, which is borrowed for the whole call; the second word is a
    // name.
    let answer = unsafe { futex(word.as_ptr(), command, private, wake, requeue, name(to), expected) };
    answer.map_err(|error| RequeueError::of("FUTEX_CMP_REQUEUE", error))
}

/// One futex of a [`waitv`](crate::futex::waitv), and the value it is expected to hold.
// The kernel's `struct futex_waitv`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Waiter<'a> {
    value: u64,
    address: u64,
    flags: u32,
    reserved: u32,
    word: PhantomData<&'a AtomicU32>,
}

const _: () = assert!(size_of::<Waiter<'_>>() == 24);

impl<'a> Waiter<'a> {
    pub(crate) fn of(word: &'a AtomicU32, expected: u32, private: bool) -> Self {
        let scope = if private { libc::FUTEX2_PRIVATE } else { 0 };
        Self {
            value: expected.into(),
            address: word.as_ptr().expose_provenance() as u64,
            flags: (libc::FUTEX2_SIZE_U32 | scope).cast_unsigned(),
            reserved: 0,
            word: PhantomData,
        }
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    pub(crate) fn expected(&self) -> u64 {
        self.value
    }
}

/// `futex_waitv`.
pub(crate) fn waitv(waiters: &[Waiter<'_>], deadline: Option<Deadline>) -> Result<WaitvOutcome, WaitvError> {
    if missing(Capability::Waitv) {
        return Err(WaitvError::Unsupported);
    }
    let time = deadline.map(Timespec::of);
    let clock = clock_id(deadline);
    // SAFETY: a waiter has the kernel's layout; there are as many as we say,
    // their words are borrowed for longer than the call, the kernel only reads them, and `time` is
    // null or lives until the end of this function.
    let answer = checked(|| unsafe {
        let time = pointer(time.as_ref());
        libc::syscall(libc::SYS_futex_waitv, waiters.as_ptr(), waiters.len(), 0, time, clock)
    });
    match waited(answer) {
        Ok(Waited::Woken) => Ok(WaitvOutcome::Woken(answer.map_or(0, |index| index as usize))),
        Ok(Waited::Mismatch) => Ok(WaitvOutcome::Mismatch),
        Ok(Waited::TimedOut) => Ok(WaitvOutcome::TimedOut),
        Ok(Waited::Interrupted) => Ok(WaitvOutcome::Interrupted),
        Err(error) => Err(WaitvError::of(error)),
    }
}

#[cold]
#[inline(never)]
fn refused(call: &'static str, error: Errno) -> ! {
    panic!("{}", Unexpected::of(call, error));
}
