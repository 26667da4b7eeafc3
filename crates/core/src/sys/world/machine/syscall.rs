//! The system calls behind the futex, with the kernel's answer as a `Result` and the caller's
//! `errno` kept.
//!
//! 64-bit kernels take one shape of a point in time. 32-bit ones have `futex_time64` for it since
//! Linux 5.1, and before that only `futex` with 32-bit seconds; [`futex_until`] uses the first and
//! falls back to the second. It falls back, too, if a seccomp filter that is older than the first
//! call answers `EPERM` to it.

use super::clock::Timespec;
use crate::sys::errno::{self, Errno};
use crate::sys::types::futex::Waited;
use crate::sys::types::time::{Clock, Deadline};

/// Makes a `Result` of libc's `syscall`, which reports a failure as -1 and `errno`. The caller's
/// `errno` survives.
#[inline]
pub(crate) fn checked(call: impl FnOnce() -> libc::c_long) -> Result<u32, Errno> {
    let _errno = errno::Guard::new();
    match call() {
        // SAFETY: the address is valid for reads by this thread.
        -1 => Err(Errno(unsafe { *errno::location() })),
        // Counts, indices and zeros: none exceeds an `int`.
        answer => Ok(answer as u32),
    }
}

/// The futex call with a second count in its fourth argument. It has no time in it, so it is the
/// old call everywhere.
///
/// # Safety
/// What `command` does to `word` and `second` is allowed: a word that the kernel may write is an
/// atomic that is borrowed for the whole call. A word that it only reads, or takes for a name, may
/// be any address.
pub(crate) unsafe fn futex(
    word: *mut u32,
    command: i32,
    private: bool,
    value: u32,
    value2: u32,
    second: *mut u32,
    value3: u32,
) -> Result<u32, Errno> {
    let command = scoped(command, private);
    // SAFETY: the caller answers for the words; a count is no pointer.
    checked(|| unsafe {
        libc::syscall(libc::SYS_futex, word, command, value, value2 as usize, second, value3)
    })
}

/// The futex call with a deadline in its fourth argument.
///
/// # Safety
/// As [`futex`].
pub(crate) unsafe fn futex_until(
    word: *mut u32,
    command: i32,
    private: bool,
    value: u32,
    deadline: Option<Deadline>,
    second: *mut u32,
    value3: u32,
) -> Result<u32, Errno> {
    let command = scoped(command, private);
    let time = deadline.map(Timespec::of);
    let time = time.as_ref();
    #[cfg(all(target_pointer_width = "32", not(target_arch = "x86_64")))]
    {
        use crate::sys::world::capabilities::{Capability, missing, note_missing, time64_is_there};
        if !missing(Capability::Time64) {
            // SAFETY: the caller answers for the words; `time` is null or lives until the end of
            // this function.
            let answer = checked(|| unsafe {
                libc::syscall(SYS_FUTEX_TIME64, word, command, value, pointer(time), second, value3)
            });
            let lacks_the_call = match answer {
                Err(Errno(libc::ENOSYS)) => true,
                // Either a filter that is older than the call, or the kernel's own answer to a
                // priority-inheriting operation. A wake-up of no thread tells the two apart,
                // because the kernel never answers that to a wake-up.
                Err(Errno(libc::EPERM)) => !time64_is_there(),
                _ => false,
            };
            if !lacks_the_call {
                return answer;
            }
            note_missing(Capability::Time64);
        }
        let time = time.map(|time| time.to_time32());
        // SAFETY: as above.
        checked(|| unsafe {
            libc::syscall(libc::SYS_futex, word, command, value, pointer(time.as_ref()), second, value3)
        })
    }
    #[cfg(not(all(target_pointer_width = "32", not(target_arch = "x86_64"))))]
    // SAFETY: the caller answers for the words; `time` is null or lives until the end of this
    // function.
    checked(|| unsafe { libc::syscall(libc::SYS_futex, word, command, value, pointer(time), second, value3) })
}

/// A call since Linux 5.1, so it has one number on every architecture, but on those that start
/// counting elsewhere. libc lacks it.
#[cfg(all(target_pointer_width = "32", not(target_arch = "x86_64")))]
pub(crate) const SYS_FUTEX_TIME64: libc::c_long =
    if cfg!(any(target_arch = "mips", target_arch = "mips32r6")) { 4422 } else { 422 };

/// The command with its clock: commands that take a deadline measure it on the monotonic clock
/// unless told otherwise.
pub(crate) fn on_clock_of(deadline: Option<Deadline>, command: i32) -> i32 {
    match deadline.map(|deadline| deadline.clock()) {
        Some(Clock::Realtime) => command | libc::FUTEX_CLOCK_REALTIME,
        _ => command,
    }
}

/// The clock for the calls that take it as an argument.
pub(crate) fn clock_id(deadline: Option<Deadline>) -> libc::clockid_t {
    match deadline.map(|deadline| deadline.clock()) {
        Some(Clock::Realtime) => libc::CLOCK_REALTIME,
        _ => libc::CLOCK_MONOTONIC,
    }
}

/// The four ways a wait ends; what remains is an error.
pub(crate) fn waited(answer: Result<u32, Errno>) -> Result<Waited, Errno> {
    match answer {
        Ok(_) => Ok(Waited::Woken),
        Err(Errno(libc::EAGAIN)) => Ok(Waited::Mismatch),
        Err(Errno(libc::ETIMEDOUT)) => Ok(Waited::TimedOut),
        Err(Errno(libc::EINTR)) => Ok(Waited::Interrupted),
        Err(error) => Err(error),
    }
}

/// A count as the kernel takes it: an `int`, and more threads than that do not exist.
pub(crate) fn clamp(count: u32) -> u32 {
    count.min(i32::MAX as u32)
}

/// A key as a pointer. The provenance matters to Miri alone, which has no kernel that goes by the
/// address.
pub(crate) fn name(key: usize) -> *mut u32 {
    core::ptr::with_exposed_provenance_mut(key)
}

/// Null for nothing.
pub(crate) fn pointer<T>(value: Option<&T>) -> *const T {
    value.map_or(core::ptr::null(), core::ptr::from_ref)
}

fn scoped(command: i32, private: bool) -> i32 {
    if private { command | libc::FUTEX_PRIVATE_FLAG } else { command }
}
