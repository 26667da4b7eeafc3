//! Futex calls, and words on lines of their own.

use std::sync::atomic::AtomicU32;

/// A line of its own, two of them against machines that fetch pairs.
#[repr(align(128))]
pub struct Line<T>(pub T);

pub fn futex_wait(word: &AtomicU32, expected: u32) {
    futex(word, libc::FUTEX_WAIT, expected, 0);
}

pub fn futex_wake(word: &AtomicU32, count: u32) -> u32 {
    futex(word, libc::FUTEX_WAKE, count, 0)
}

/// A private futex call; `mask` is for those that take one. Its result, if that is not an
/// error.
pub fn futex(word: &AtomicU32, operation: libc::c_int, value: u32, mask: u32) -> u32 {
    // SAFETY: the word is borrowed for the call, which reads it at most; there is no timeout
    // and no second word.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            operation | libc::FUTEX_PRIVATE_FLAG,
            value,
            std::ptr::null::<libc::timespec>(),
            std::ptr::null::<u32>(),
            mask,
        )
    };
    result.try_into().unwrap_or(0)
}
