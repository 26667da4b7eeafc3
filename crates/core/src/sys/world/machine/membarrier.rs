//! The barrier on other CPUs, by the kernel: `membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)`.

use super::atomic::{AtomicU32, Ordering, compiler_fence};
use super::syscall::checked;
use crate::sys::errno::Errno;
use crate::sys::world::capabilities::{Capability, missing, note_missing};

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

/// What the first answer to a registration was, for good. Of two threads that share a lock each
/// asks for itself which fence its side is, so neither answer may ever be taken back. A thread
/// whose filter refuses the call hears `MISSING` beside one that hears `REGISTERED`: the first to
/// note it decides for both.
struct Registration(AtomicU32);

const UNKNOWN: u32 = 0;
const REGISTERED: u32 = 1;
const MISSING: u32 = 2;

static REGISTRATION: Registration = Registration(AtomicU32::new(UNKNOWN));

impl Registration {
    /// Whether the process is registered. Asks by `register` if no answer is noted yet. An answer
    /// counts before [`missing`]: a capability may be called missing later, too.
    #[inline(always)]
    fn settle(&self, register: impl FnOnce() -> bool) -> bool {
        // Relaxed: the kernel orders the registration before what a later call does.
        match self.0.load(Ordering::Relaxed) {
            UNKNOWN => self.note(register()),
            known => known == REGISTERED,
        }
    }

    #[cold]
    fn note(&self, is_registered: bool) -> bool {
        let answer = if is_registered { REGISTERED } else { MISSING };
        match self.0.compare_exchange(UNKNOWN, answer, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => is_registered,
            Err(first) => first == REGISTERED,
        }
    }
}

pub(crate) fn ready() -> bool {
    let is_registered = REGISTRATION.settle(|| !missing(Capability::Membarrier) && register());
    if !is_registered {
        note_missing(Capability::Membarrier);
    }
    is_registered
}

pub(crate) fn heavy() -> bool {
    if missing(Capability::Membarrier) {
        return false;
    }
    match call(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED) {
        Ok(_) => true,
        // Not registered: no thread asked whether it is ready, or this is a child whose kernel does
        // not inherit that.
        Err(Errno(libc::EPERM)) => register() && call(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED).is_ok(),
        Err(_) => false,
    }
}

fn register() -> bool {
    call(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED).is_ok()
}

fn call(command: libc::c_int) -> Result<u32, Errno> {
    // SAFETY: the commands take no memory and change nothing but the order of other CPUs' accesses.
    checked(|| unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another thread's question is answered while this one's is on its way.
    #[test]
    fn the_first_answer_is_never_taken_back() {
        for first in [true, false] {
            let registration = Registration(AtomicU32::new(UNKNOWN));
            let second = registration.settle(|| {
                assert_eq!(registration.settle(|| first), first);
                !first
            });
            assert_eq!(second, first, "the second thread has another answer than the first");
            assert_eq!(registration.settle(|| !first), first, "the answer has changed");
        }
    }
}
