//! The priority-inheriting futex, on the real kernel.
//!
//! `FUTEX_LOCK_PI` measures its deadline on the realtime clock only. Linux 5.14 mended that with
//! `FUTEX_LOCK_PI2`; before, a monotonic deadline is translated, and translated anew if the clock
//! was set meanwhile.

use super::atomic::AtomicU32;
use super::syscall::{clamp, futex, futex_until, on_clock_of};
use crate::sys::errno::Errno;
use crate::sys::types::futex::{PiError, PiWaited};
use crate::sys::types::time::{Clock, Deadline};
use crate::sys::world::capabilities::{Capability, missing, note_missing};
use core::ptr::null_mut;

/// `FUTEX_LOCK_PI2`, or `FUTEX_LOCK_PI`.
pub(crate) fn lock(word: &AtomicU32, deadline: Option<Deadline>, private: bool) -> Result<(), PiError> {
    loop {
        let answer = if missing(Capability::LockPi2) {
            lock_on_realtime(word, deadline, private)
        } else {
            lock2(word, deadline, private)
        };
        match answer {
            Ok(_) => {
                seen::acquired(word);
                return Ok(());
            }
            // The owner is on its way out of the kernel and has not left its locks behind yet.
            Err(Errno(libc::EAGAIN)) => {}
            Err(Errno(libc::ENOSYS)) if !missing(Capability::LockPi2) => note_missing(Capability::LockPi2),
            Err(error) => return Err(PiError::of("FUTEX_LOCK_PI", error)),
        }
    }
}

fn lock2(word: &AtomicU32, deadline: Option<Deadline>, private: bool) -> Result<u32, Errno> {
    let command = on_clock_of(deadline, libc::FUTEX_LOCK_PI2);
    // SAFETY: the kernel writes this word, an atomic that is borrowed for the whole call; there is
    // no second.
    unsafe { futex_until(word.as_ptr(), command, private, 0, deadline, null_mut(), 0) }
}

fn lock_on_realtime(word: &AtomicU32, deadline: Option<Deadline>, private: bool) -> Result<u32, Errno> {
    let translated = deadline.map(|deadline| match deadline.clock() {
        Clock::Realtime => deadline,
        Clock::Monotonic => Deadline::after_on(Clock::Realtime, deadline.remaining()),
    });
    // SAFETY: as in `lock2`.
    let answer =
        unsafe { futex_until(word.as_ptr(), libc::FUTEX_LOCK_PI, private, 0, translated, null_mut(), 0) };
    match answer {
        // The clock was set forward.
        Err(Errno(libc::ETIMEDOUT)) if !deadline.is_some_and(|deadline| deadline.has_passed()) => {
            Err(Errno(libc::EAGAIN))
        }
        answer => answer,
    }
}

/// `FUTEX_TRYLOCK_PI`.
pub(crate) fn try_lock(word: &AtomicU32, private: bool) -> Result<bool, PiError> {
    // SAFETY: as in `lock2`.
    let answer = unsafe { futex(word.as_ptr(), libc::FUTEX_TRYLOCK_PI, private, 0, 0, null_mut(), 0) };
    match answer {
        Ok(_) => {
            seen::acquired(word);
            Ok(true)
        }
        Err(Errno(libc::EAGAIN)) => Ok(false),
        Err(error) => Err(PiError::of("FUTEX_TRYLOCK_PI", error)),
    }
}

/// `FUTEX_UNLOCK_PI`.
pub(crate) fn unlock(word: &AtomicU32, private: bool) -> Result<(), PiError> {
    seen::released(word);
    // SAFETY: as in `lock2`.
    let answer = unsafe { futex(word.as_ptr(), libc::FUTEX_UNLOCK_PI, private, 0, 0, null_mut(), 0) };
    match answer {
        Ok(_) => Ok(()),
        Err(error) => Err(PiError::of("FUTEX_UNLOCK_PI", error)),
    }
}

/// `FUTEX_WAIT_REQUEUE_PI`.
pub(crate) fn wait_requeue(
    word: &AtomicU32,
    expected: u32,
    to: &AtomicU32,
    deadline: Option<Deadline>,
    private: bool,
) -> Result<PiWaited, PiError> {
    let command = on_clock_of(deadline, libc::FUTEX_WAIT_REQUEUE_PI);
    let words = (word.as_ptr(), to.as_ptr());
    // SAFETY: the kernel reads the one word and writes the other, atomics that are borrowed for the
    // whole call.
    match unsafe { futex_until(words.0, command, private, expected, deadline, words.1, u32::MAX) } {
        Ok(_) => {
            seen::acquired(to);
            Ok(PiWaited::Locked)
        }
        Err(Errno(libc::EAGAIN | libc::EINTR)) => Ok(PiWaited::Retry),
        Err(error) => Err(PiError::of("FUTEX_WAIT_REQUEUE_PI", error)),
    }
}

/// `FUTEX_CMP_REQUEUE_PI`.
pub(crate) fn cmp_requeue(
    word: &AtomicU32,
    expected: u32,
    requeue: u32,
    to: &AtomicU32,
    private: bool,
) -> Result<u32, PiError> {
    let (word, to, requeue) = (word.as_ptr(), to.as_ptr(), clamp(requeue));
    // SAFETY: the kernel reads the one word and writes the other, atomics that are borrowed for the
    // whole call.
    let answer = unsafe { futex(word, libc::FUTEX_CMP_REQUEUE_PI, private, 1, requeue, to, expected) };
    answer.map_err(|error| PiError::of("FUTEX_CMP_REQUEUE_PI", error))
}

/// ThreadSanitizer sees what this process does to a word, and not what the kernel does to it. It is
/// told: that a mutex was acquired from the kernel, or is about to be released to it.
#[cfg(ulocks_tsan)]
mod seen {
    use super::AtomicU32;
    use core::ffi::c_void;

    unsafe extern "C" {
        fn __tsan_acquire(address: *mut c_void);
        fn __tsan_release(address: *mut c_void);
    }

    pub(super) fn acquired(word: &AtomicU32) {
        // SAFETY: the address is a name to the sanitizer, which this program was built with.
        unsafe { __tsan_acquire(word.as_ptr().cast()) };
    }

    pub(super) fn released(word: &AtomicU32) {
        // SAFETY: as above.
        unsafe { __tsan_release(word.as_ptr().cast()) };
    }
}

#[cfg(not(ulocks_tsan))]
mod seen {
    use super::AtomicU32;

    #[inline(always)]
    pub(super) fn acquired(_: &AtomicU32) {}
    #[inline(always)]
    pub(super) fn released(_: &AtomicU32) {}
}
