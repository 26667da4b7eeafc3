//! Pages that are zero in every child of fork that gets a copy of them (`MADV_WIPEONFORK`, Linux
//! 4.14).
//!
//! Emulators and filters may answer success to every `madvise` and do nothing. So an advice that
//! does not exist is tried first. If it succeeds, success means nothing. (The test is known from
//! BoringSSL's `fork_detect`, where it is for old versions of QEMU.)

use crate::sys::errno::Guard;
use core::ptr::null_mut;

/// An advice that no kernel has, and that an honest one refuses.
const NO_ADVICE: libc::c_int = -1;

/// Has the kernel wipe the pages of these bytes in the children of forks. Returns whether it does.
/// The caller's `errno` survives.
///
/// # Safety
/// The first byte is the first of a page, of a private mapping that is not of a file. The pages may
/// become zero in a child at any fork.
#[must_use]
pub unsafe fn wipe_on_fork(first: *mut u8, length: usize) -> bool {
    let _errno = Guard::new();
    // SAFETY: the range is empty, and the kernel refuses the advice before it looks at the range.
    if unsafe { libc::madvise(null_mut(), 0, NO_ADVICE) } == 0 {
        return false;
    }
    // SAFETY: the pages are such a mapping, and may be wiped in a child, as the caller promises. In
    // this process they stay as they are.
    unsafe { libc::madvise(first.cast(), length, libc::MADV_WIPEONFORK) == 0 }
}
