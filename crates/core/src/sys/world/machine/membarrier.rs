//! The barrier on other CPUs, by the kernel: `membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)`.

use super::atomic::{AtomicU32, Ordering, compiler_fence};
use super::syscall::checked;
use crate::sys::errno::Errno;
use crate::sys::world::capabilities::{Capability, missing, note_missing};
use core::sync::atomic::AtomicBool;

/// A few dozen cache lines: a table of this size has room for the locks that are in use at a time.
pub(crate) const SLOTS: usize = 64;
/// Whether a read-modify-write is a full fence. Not to Miri, which goes by the language.
pub(crate) const RMW_IS_FENCE: bool = cfg!(all(any(target_arch = "x86", target_arch = "x86_64"), not(miri)));

pub(crate) fn worth() -> u32 {
    2_000
}

#[inline(always)]
pub(crate) fn light() {
    compiler_fence(Ordering::SeqCst);
}

#[inline(always)]
pub(crate) fn store(word: &AtomicU32, value: u32, order: Ordering) {
    word.store(value, order);
}

pub(crate) fn ready() -> bool {
    static REGISTERED: AtomicBool = AtomicBool::new(false);

    if missing(Capability::Membarrier) {
        return false;
    }
    if !REGISTERED.load(Ordering::Relaxed) {
        if call(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED).is_err() {
            note_missing(Capability::Membarrier);
            return false;
        }
        REGISTERED.store(true, Ordering::Relaxed);
    }
    true
}

pub(crate) fn heavy() -> bool {
    if missing(Capability::Membarrier) {
        return false;
    }
    match call(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED) {
        Ok(_) => true,
        // Not registered: no thread asked whether it is ready, or this is a child whose kernel does
        // not inherit that.
        Err(Errno(libc::EPERM)) => {
            call(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED).is_ok()
                && call(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED).is_ok()
        }
        Err(_) => false,
    }
}

fn call(command: libc::c_int) -> Result<u32, Errno> {
    // SAFETY: the commands take no memory and change nothing but the order of other CPUs' accesses.
    checked(|| unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) })
}
