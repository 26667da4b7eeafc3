//! The PID namespace of the calling thread, kept at hand: by its number in `/proc`, which no other
//! namespace has at the same time.

use super::process_generation;
use core::mem::MaybeUninit;
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

#[cold]
fn ask() -> u32 {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the path ends in zero, and `status` is a place for the answer.
    if unsafe { libc::stat(c"/proc/self/ns/pid".as_ptr(), status.as_mut_ptr()) } != 0 {
        return UNKNOWN;
    }
    // SAFETY: the call has succeeded, and so has filled it.
    let number = unsafe { status.assume_init() }.st_ino;
    // The numbers of namespaces have 32 bits.
    (number as u32).max(UNKNOWN)
}
