//! The clocks of the checker: one that is cheap, and one that is exact.
//!
//! Both tell the time of `CLOCK_MONOTONIC` in nanoseconds. Bit 0 says whether a part of the checker
//! wants to know of the acquisition of that time: such a time is odd, and so never 0. The stacks
//! want exact times. The profile has a clock of its own.
//!
//! Each acquisition reads one of them, and the C library's function is a third of what the checker
//! does then. So the kernel's own function, which the C library calls, is called directly. If it is
//! not found, that of the C library is called.

use crate::seen::thread::Record;
use core::mem::{self, MaybeUninit};
use core::ptr;
use ulocks_core::sync::{AtomicPtr, Ordering::Relaxed};
pub(crate) use ulocks_profile::counting::{PROFILE, is_wanted, want, wanted};

type Read = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> libc::c_int;

/// The kernel's function, or that of the C library.
static READ: AtomicPtr<()> = AtomicPtr::new(libc::clock_gettime as *mut ());

/// Looks for the kernel's function. The first thread does so, and other threads do not wait for it:
/// the search takes a lock of the dynamic linker.
pub(crate) fn find() {
    use ulocks_core::sync::AtomicBool;
    static BEGUN: AtomicBool = AtomicBool::new(false);
    if cfg!(miri) || BEGUN.swap(true, Relaxed) {
        return;
    }
    let name = match () {
        () if cfg!(target_arch = "aarch64") => c"__kernel_clock_gettime",
        () => c"__vdso_clock_gettime",
    };
    // SAFETY: the two names are strings. The object is there already, if it is there at all, so no
    // code of it runs. It stays as long as the process.
    let read = unsafe {
        let object = libc::dlopen(c"linux-vdso.so.1".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if object.is_null() { ptr::null_mut() } else { libc::dlsym(object, name.as_ptr()) }
    };
    if !read.is_null() {
        READ.store(read.cast(), Relaxed);
    }
}

#[inline(always)]
fn read(clock: libc::clockid_t) -> u64 {
    let mut now = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: both functions have this type.
    let read = unsafe { mem::transmute::<*mut (), Read>(READ.load(Relaxed)) };
    // SAFETY: it is a valid place for the answer.
    unsafe { read(clock, now.as_mut_ptr()) };
    // SAFETY: both functions write the answer: every kernel has the two clocks.
    let now = unsafe { now.assume_init() };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The time by a clock that is cheap and steps every few milliseconds.
#[inline(always)]
pub(crate) fn coarse_now() -> u64 {
    read(libc::CLOCK_MONOTONIC_COARSE) & !1
}

/// The exact time.
#[cold]
#[inline(never)]
pub(crate) fn now() -> u64 {
    read(libc::CLOCK_MONOTONIC) | 1
}

/// Of those that want to know of acquisitions: the stacks.
pub(crate) const STACKS: u32 = 2;
// It is bit 0 of a time, too.
const _: () = assert!(PROFILE == 1);

/// The time of an acquisition by `me`. Nothing wants to know of those of a signal handler.
#[inline(always)]
pub(crate) fn since(me: &Record) -> u64 {
    match wanted() {
        wanted if wanted & STACKS != 0 && !me.is_handler() => now(),
        wanted => coarse_now() | u64::from(wanted & PROFILE & !me.is_handler() as u32),
    }
}

/// Whether a part of the checker wants to know of the acquisition of that time.
#[inline]
pub(crate) fn is_noted(time: u64) -> bool {
    time & 1 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_says_which_clock_told_it() {
        let (coarse, exact) = (coarse_now(), now());
        assert!(!is_noted(coarse) && is_noted(exact));
        // The coarse clock is behind.
        assert!(coarse <= exact);
    }

    #[test]
    fn the_kernels_function_reads_the_same_clock() {
        let before = coarse_now();
        find();
        assert!(before > 0);
        let between = coarse_now();
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` is a valid place for the answer.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut now) };
        let after = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        assert!((before..=after).contains(&between), "{before} {between} {after}");
    }
}
