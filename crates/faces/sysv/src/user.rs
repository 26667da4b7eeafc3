//! The caller's memory: in strict mode, a bad address gives EFAULT, as in the kernel.

use crate::config;
use crate::sys::{self, Answer};
use core::mem::MaybeUninit;

/// No program has anything below this address.
const LOWEST: usize = 4_096;

#[repr(C)]
struct Part {
    start: usize,
    len: usize,
}

/// Copies between the caller's memory at `theirs` and ours.
///
/// # Safety
/// `ours` is valid for that, and so is `theirs` unless the process is in strict mode.
unsafe fn copy(theirs: usize, ours: *mut u8, bytes: usize, out: bool) -> Answer<()> {
    if bytes == 0 {
        return Ok(());
    }
    if theirs < LOWEST {
        return Err(libc::EFAULT);
    }
    if config::is_strict() {
        let (mine, other) = (Part { start: ours as usize, len: bytes }, Part { start: theirs, len: bytes });
        let call = if out { libc::SYS_process_vm_writev } else { libc::SYS_process_vm_readv };
        let a = [sys::process() as usize, &raw const mine as usize, 1, &raw const other as usize, 1, 0];
        // SAFETY: both parts are borrowed; the caller answers for `ours`, the kernel checks the
        // other.
        return match unsafe { sys::call(call, a) } {
            Ok(done) if done == bytes => Ok(()),
            Ok(_) => Err(libc::EFAULT),
            Err(libc::ENOSYS | libc::EPERM) => {
                // SAFETY: without that call, pointers are not checked.
                unsafe { plain(theirs, ours, bytes, out) };
                Ok(())
            }
            Err(_) => Err(libc::EFAULT),
        };
    }
    // SAFETY: the caller's promise.
    unsafe { plain(theirs, ours, bytes, out) };
    Ok(())
}

/// # Safety
/// Both ranges are valid.
unsafe fn plain(theirs: usize, ours: *mut u8, bytes: usize, out: bool) {
    let theirs = core::ptr::with_exposed_provenance_mut::<u8>(theirs);
    let (from, to) = if out { (ours, theirs) } else { (theirs, ours) };
    // SAFETY: the caller's promise; the ranges are of different objects.
    unsafe { core::ptr::copy_nonoverlapping(from, to, bytes) };
}

/// Copies `into.len()` values from the caller.
///
/// # Safety
/// Any bytes are a valid `T`. Unless the process is in strict mode, the memory is readable.
pub unsafe fn read_all<T>(from: *const T, into: &mut [MaybeUninit<T>]) -> Answer<()> {
    let bytes = size_of_val(into);
    // SAFETY: the caller's promise, and `into` is borrowed.
    unsafe { copy(from as usize, into.as_mut_ptr().cast(), bytes, false) }
}

/// Copies a value from the caller.
///
/// # Safety
/// As [`read_all`].
pub unsafe fn read<T: Copy>(from: *const T) -> Answer<T> {
    let mut value = [MaybeUninit::<T>::uninit()];
    // SAFETY: the caller's promise; the value is written before it is read.
    unsafe {
        read_all(from, &mut value)?;
        Ok(value[0].assume_init())
    }
}

/// Copies a value to the caller.
///
/// # Safety
/// Unless the process is in strict mode, the memory is writable.
pub unsafe fn write<T: Copy>(to: *mut T, mut value: T) -> Answer<()> {
    // SAFETY: the caller's promise.
    unsafe { copy(to as usize, (&raw mut value).cast(), size_of::<T>(), true) }
}

/// Copies values to the caller.
///
/// # Safety
/// As [`write`], and all values are there.
pub unsafe fn write_all<T>(to: *mut T, values: &mut [MaybeUninit<T>]) -> Answer<()> {
    let bytes = size_of_val(values);
    // SAFETY: the caller's promise.
    unsafe { copy(to as usize, values.as_mut_ptr().cast(), bytes, true) }
}
