//! The priority-inheriting futex, on the real kernel.
//!
//! `FUTEX_LOCK_PI` measures its deadline on the realtime clock only. Linux 5.14 mended that with
//! `FUTEX_LOCK_PI2`; before, a monotonic deadline is translated, and translated anew if the clock
//! was set forward meanwhile. If it was set back, the wait ends later by as much.
//!
//! # The end of an owner
//! If a thread ends with a lock for which others wait, the kernel wakes the best waiter: the
//! *heir*. The lock is in no robust list, so only the heir writes the word, when it runs. Until
//! then the word names a thread that has ended, and the kernel answers `EINVAL` to each arriving
//! thread and to a requeue. That answer also means that a word is used in two ways. So the caller
//! waits for the heir and asks again ([`Heir`]), and believes the answer in the end. As long as the
//! word names a thread that is gone, it waits on: other threads may keep the heir from its CPU.

use super::atomic::{AtomicU32, Ordering};
use super::syscall::{checked, clamp, futex, futex_until, on_clock_of};
use crate::sys::errno::Errno;
use crate::sys::types::futex::{PiError, PiWaited};
use crate::sys::types::time::{Clock, Deadline};
use crate::sys::world::capabilities::{Capability, missing, note_missing};
use core::ptr::null_mut;
use core::time::Duration;

/// How long a caller sleeps until it asks again: a yield would not let an heir run that has a lower
/// priority. Others were not measured.
const HEIR_PAUSE: Duration = Duration::from_micros(100);
/// How often it does while the owner may live: 0.1 s in all. A word that is used in two ways is
/// reported then. Others were not measured.
const HEIR_PAUSES: u32 = 1_000;

/// How often a caller has waited for the heir of a lock.
#[derive(Default)]
struct Heir {
    tries: u32,
}

impl Heir {
    /// Waits a moment, after an `EINVAL`. False if that does not come from the end of an owner, as
    /// far as can be told.
    fn wait(&mut self, word: &AtomicU32) -> bool {
        let holds = word.load(Ordering::Relaxed);
        let names_owner = holds & libc::FUTEX_TID_MASK != 0 && holds & libc::FUTEX_WAITERS != 0;
        self.tries = self.tries.saturating_add(1);
        // Otherwise the heir has run since the call, and has released.
        if names_owner {
            let own = AtomicU32::new(0);
            let end = Some(Deadline::after(HEIR_PAUSE));
            // A sleep that is no cancellation point. If it is refused, the next call comes at once.
            // SAFETY: the kernel reads this word, which lives for the whole call; there is no
            // second.
            let _ = unsafe {
                futex_until(own.as_ptr(), libc::FUTEX_WAIT_BITSET, true, 0, end, null_mut(), u32::MAX)
            };
        }
        if self.tries <= HEIR_PAUSES {
            return true;
        }
        let waits_on = names_owner && is_gone(holds & libc::FUTEX_TID_MASK);
        if waits_on {
            // When the heir has run, the answer may still be that of the word before.
            self.tries = 0;
        }
        waits_on
    }
}

/// Whether no thread has that id. The main thread of a process has it until its parent has learnt
/// of the end of the process.
fn is_gone(thread: u32) -> bool {
    // SAFETY: asks only, since no signal is sent.
    let answer = checked(|| unsafe { libc::kill(thread.cast_signed(), 0) }.into());
    answer == Err(Errno(libc::ESRCH))
}

/// Whether a call may be made that acquires, or waits. One that releases is made in any case.
fn is_supported() -> Result<(), PiError> {
    if missing(Capability::PriorityInheritance) { Err(PiError::Unsupported) } else { Ok(()) }
}

/// `FUTEX_LOCK_PI2`, or `FUTEX_LOCK_PI`.
pub(crate) fn lock(word: &AtomicU32, deadline: Option<Deadline>, private: bool) -> Result<(), PiError> {
    is_supported()?;
    let mut heir = Heir::default();
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
            Err(Errno(libc::EINVAL)) if heir.wait(word) => {
                if deadline.is_some_and(|deadline| deadline.has_passed()) {
                    return Err(PiError::TimedOut);
                }
            }
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
    is_supported()?;
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
    is_supported()?;
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
    is_supported()?;
    let (from, second, requeue) = (word.as_ptr(), to.as_ptr(), clamp(requeue));
    let mut heir = Heir::default();
    loop {
        // SAFETY: the kernel reads the one word and writes the other, atomics that are borrowed for
        // the whole call.
        let answer =
            unsafe { futex(from, libc::FUTEX_CMP_REQUEUE_PI, private, 1, requeue, second, expected) };
        match answer {
            Err(Errno(libc::EINVAL)) if heir.wait(to) => {}
            answer => return answer.map_err(|error| PiError::of("FUTEX_CMP_REQUEUE_PI", error)),
        }
    }
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

#[cfg(all(test, not(miri), not(ulocks_vm), not(ulocks_loom)))]
mod tests {
    use super::*;

    /// The heir has released between the kernel's answer and the look at the word.
    #[test]
    fn a_caller_asks_again_once_a_late_heir_has_run() {
        let gone = std::thread::spawn(crate::sys::tid::current).join().unwrap();
        let (mut heir, word) = (Heir { tries: HEIR_PAUSES }, AtomicU32::new(gone | libc::FUTEX_WAITERS));
        assert!(heir.wait(&word), "the owner is gone");
        word.store(0, Ordering::Relaxed);
        assert!(heir.wait(&word), "the heir has run");
        heir.tries = HEIR_PAUSES;
        assert!(!heir.wait(&word), "the word is used in two ways");
    }
}
