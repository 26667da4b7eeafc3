//! The PID namespace of the calling thread, kept at hand: by its number in `/proc`, which no other
//! namespace has at the same time.

use super::process_generation;
use crate::sys::errno;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What is told of a thread whose namespace cannot be found out.
const UNKNOWN: u32 = 1;

/// The generation of the process that has asked, and its namespace. A process has one namespace
/// for all of its life, and a child of fork may have another.
static KNOWN: AtomicU64 = AtomicU64::new(0);

/// The number of the namespace; never 0.
pub(crate) fn current() -> u32 {
    let Some(generation) = process_generation().filter(|&generation| generation != 0) else {
        return ask();
    };
    let known = KNOWN.load(Relaxed);
    if (known >> 32) as u32 == generation {
        return known as u32;
    }
    let namespace = ask();
    KNOWN.store(u64::from(generation) << 32 | u64::from(namespace), Relaxed);
    namespace
}

/// By a system call, not through the C library: libraries that replace functions of files may call
/// the one that asks.
#[cold]
fn ask() -> u32 {
    const LINK: usize = 32; // "pid:[4026531836]"
    let mut link = [0_u8; LINK];
    let _errno = errno::Guard::new();
    // SAFETY: the path ends in zero, and `link` is a place for the answer, with its length.
    let length = unsafe {
        let path = c"/proc/self/ns/pid".as_ptr();
        libc::syscall(libc::SYS_readlinkat, libc::AT_FDCWD, path, link.as_mut_ptr(), LINK)
    };
    let link = usize::try_from(length).ok().and_then(|length| link.get(..length)).unwrap_or_default();
    let digits = link.iter().filter(|byte| byte.is_ascii_digit());
    // The numbers of namespaces have 32 bits.
    digits
        .fold(0_u32, |number, digit| number.wrapping_mul(10).wrapping_add(u32::from(digit - b'0')))
        .max(UNKNOWN)
}

#[cfg(all(test, not(miri)))]
mod tests {
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn the_number_is_that_of_the_file() {
        let Ok(file) = std::fs::metadata("/proc/self/ns/pid") else { return };
        assert_eq!(u64::from(super::ask()), file.ino());
        assert_eq!(super::current(), super::ask());
    }
}
