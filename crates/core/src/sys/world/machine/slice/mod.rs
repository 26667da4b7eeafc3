//! Time slice extensions by the kernel: the word it shares with a thread, and the two calls.
//!
//! The thread finds the word by what glibc says of its area. It believes that only if the kernel,
//! asked to enable the extensions, shows in the same area that it did. An area that the kernel does
//! not know is never written.
//!
//! Sizes: glibc 2.35 to 2.39 say 32 where 20 bytes are in use; later ones say what is in use. The
//! kernel never says 32 (M. Desnoyers, "rseq: slice ext: Ensure rseq feature size differs from
//! original rseq size", LKML 2026), so more than that is asked for.

#[cfg(test)]
mod tests;
mod thread;

pub use thread::Control;

use super::syscall::{FIRST, checked};
use crate::sys::errno::Errno;
use crate::sys::types::futex::Unexpected;
use crate::sys::types::slice::SliceError;
use crate::sys::world::capabilities::{
    Capability, PR_RSEQ_SLICE_EXTENSION, PR_RSEQ_SLICE_EXTENSION_GET, missing, note_missing,
};
use core::ffi::CStr;
use core::mem::offset_of;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use thread::Thread;

// linux/prctl.h
const PR_RSEQ_SLICE_EXTENSION_SET: usize = 2;
const PR_RSEQ_SLICE_EXT_ENABLE: usize = 1;
/// The kernel's own `ENOTSUPP`, which libc does not know.
const ENOTSUPP: i32 = 524;
const SYS_RSEQ_SLICE_YIELD: libc::c_long = FIRST + 471;

/// `struct rseq` of linux/rseq.h, as far as it concerns us. The kernel and glibc write the rest.
#[repr(C, align(32))]
struct Area {
    cpu_id_start: AtomicU32,
    cpu_id: AtomicU32,
    critical_section: [u32; 2],
    flags: AtomicU32,
    node_id: AtomicU32,
    mm_cid: AtomicU32,
    control: Control,
}

const _: () =
    assert!(offset_of!(Area, flags) == 16 && offset_of!(Area, control) == 28 && size_of::<Area>() == 32);

/// In `flags`: the kernel has enabled the extensions for this thread.
const ENABLED: u32 = 1 << 5;
/// What an area has at least that has the control word in it; see the header.
const ENOUGH: u32 = 33;

// Without a destructor and with a constant for a value, as in `signal`.
thread_local! {
    static THREAD: Thread = const { Thread::new() };
}

#[inline(always)]
pub(crate) fn enter() {
    THREAD.with(Thread::enter);
}

#[inline(always)]
pub(crate) fn leave() {
    THREAD.with(Thread::leave);
}

pub(crate) fn is_enabled() -> bool {
    THREAD.with(Thread::is_enabled)
}

pub(crate) fn enable() -> Result<(), SliceError> {
    if is_enabled() {
        return Ok(());
    }
    if missing(Capability::SliceExtension) {
        return Err(SliceError::Unsupported);
    }
    if prctl(PR_RSEQ_SLICE_EXTENSION_GET, 0).is_err() {
        note_missing(Capability::SliceExtension);
        return Err(SliceError::Unsupported);
    }
    let area = area(ENOUGH).ok_or(SliceError::NoArea)?;
    prctl(PR_RSEQ_SLICE_EXTENSION_SET, PR_RSEQ_SLICE_EXT_ENABLE).map_err(refusal)?;
    // SAFETY: glibc's area for this thread, which is in the thread's control block: memory of that
    // size until the thread ends.
    let area = unsafe { area.as_ref() };
    if area.flags.load(Relaxed) & ENABLED == 0 {
        // The kernel knows another area than glibc.
        _ = prctl(PR_RSEQ_SLICE_EXTENSION_SET, 0);
        return Err(SliceError::NoArea);
    }
    // SAFETY: as above; and `THREAD` is used by this thread alone, so no longer than it lives.
    THREAD.with(|thread| unsafe { thread.enable(NonNull::from(&area.control), give_back) });
    Ok(())
}

fn refusal(errno: Errno) -> SliceError {
    match errno {
        Errno(ENOTSUPP | libc::EOPNOTSUPP) => SliceError::Disabled,
        Errno(libc::ENXIO) => SliceError::NoArea,
        Errno(libc::EINVAL) => SliceError::Unsupported,
        errno => SliceError::Refused(Unexpected { call: "prctl(PR_RSEQ_SLICE_EXTENSION)", errno }),
    }
}

/// For tests: the calling thread asks by `control`, which the test answers instead of the kernel.
///
/// Returns false if the thread asks by another one already.
pub fn pretend(control: &'static Control, give_back: fn()) -> bool {
    // SAFETY: it lives for ever.
    let enable = |thread: &Thread| unsafe { thread.enable(NonNull::from(control), give_back) };
    !is_enabled() && {
        THREAD.with(enable);
        true
    }
}

/// Gives the CPU back.
#[cold]
fn give_back() {
    // SAFETY: the call takes nothing. If the grant is gone by now it does nothing; and should a
    // filter forbid it, the kernel has taken the CPU before it asks the filter.
    _ = checked(|| unsafe { libc::syscall(SYS_RSEQ_SLICE_YIELD) });
}

fn prctl(operation: usize, value: usize) -> Result<u32, Errno> {
    // SAFETY: the arguments are numbers; what the call changes is how the kernel schedules this
    // thread, and a flag in the area that was registered for that.
    checked(|| unsafe {
        libc::syscall(libc::SYS_prctl, PR_RSEQ_SLICE_EXTENSION, operation, value, 0usize, 0usize)
    })
}

/// Where glibc keeps the area of this thread, if at least so many bytes of it are in use.
#[cfg(not(miri))]
fn area(enough: u32) -> Option<NonNull<Area>> {
    let size = symbol::<u32>(c"__rseq_size")?;
    let offset = symbol::<isize>(c"__rseq_offset")?;
    // SAFETY: glibc has defined both (`sys/rseq.h`) with these types, and does not change them
    // after the program has started.
    let (size, offset) = unsafe { (size.read(), offset.read()) };
    let area = thread_pointer()?.wrapping_offset(offset).cast::<Area>();
    (size >= enough && area.is_aligned()).then(|| NonNull::new(area)).flatten()
}

#[cfg(miri)] // It has no kernel.
fn area(_: u32) -> Option<NonNull<Area>> {
    None
}

#[cfg(not(miri))]
fn symbol<T>(name: &CStr) -> Option<NonNull<T>> {
    // SAFETY: the name ends with a zero; what is returned is not used here.
    let found = NonNull::new(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) })?.cast::<T>();
    found.as_ptr().is_aligned().then_some(found)
}

/// `__builtin_thread_pointer` of C.
#[cfg(not(miri))]
fn thread_pointer() -> Option<*mut u8> {
    #[allow(unused_mut, unused_assignments)]
    let mut pointer = None;
    #[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
    {
        let first: *mut u8;
        // SAFETY: reads the first word of the thread's control block, which is its own address, by
        // the x86-64 ABI of thread-local storage.
        unsafe {
            core::arch::asm!("mov {}, fs:0", out(reg) first, options(nostack, preserves_flags, readonly, pure));
        }
        pointer = Some(first);
    }
    #[cfg(target_arch = "aarch64")]
    {
        let register: *mut u8;
        // SAFETY: reads a register that user space may read.
        unsafe {
            core::arch::asm!("mrs {}, tpidr_el0", out(reg) register, options(nostack, preserves_flags, nomem, pure));
        }
        pointer = Some(register);
    }
    #[cfg(target_arch = "riscv64")]
    {
        let register: *mut u8;
        // SAFETY: reads the register that the ABI keeps the thread pointer in.
        unsafe {
            core::arch::asm!("mv {}, tp", out(reg) register, options(nostack, preserves_flags, nomem, pure));
        }
        pointer = Some(register);
    }
    pointer
}
