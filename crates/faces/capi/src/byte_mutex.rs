//! What `ulocks_byte_mutex_t` has beside the functions of every mutex: the program's bits.

use crate::ulocks_byte_mutex::{of, ulocks_byte_mutex_t};
use ulocks_core::sync::Ordering::{AcqRel, Acquire};
use ulocks_unfair::UserBits;

/// The bits of a ulocks_byte_mutex_t that are the program's.
pub const ULOCKS_BYTE_MUTEX_BITS: u8 = 0b1111_1100;

const _: () = assert!(ULOCKS_BYTE_MUTEX_BITS == <UserBits<'_>>::MASK);

/// The program's bits of the byte at this moment. The calling thread need not hold the mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_byte_mutex_bits(mutex: *const ulocks_byte_mutex_t) -> u8 {
    // SAFETY: the caller's promise. The lock is only read.
    unsafe { of(mutex) }.raw.bits().load(Acquire)
}

/// Sets those of the program's bits that `bits` has, and leaves the others and the lock as they
/// are. Bits outside of ULOCKS_BYTE_MUTEX_BITS are ignored. It never waits.
///
/// Returns the program's bits as they were before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_byte_mutex_set_bits(mutex: *mut ulocks_byte_mutex_t, bits: u8) -> u8 {
    // SAFETY: the caller's promise.
    unsafe { of(mutex) }.raw.bits().fetch_or(bits & ULOCKS_BYTE_MUTEX_BITS, AcqRel)
}

/// Clears those of the program's bits that `bits` has, and leaves the others and the lock as they
/// are. It never waits.
///
/// Returns the program's bits as they were before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ulocks_byte_mutex_clear_bits(mutex: *mut ulocks_byte_mutex_t, bits: u8) -> u8 {
    // SAFETY: the caller's promise.
    unsafe { of(mutex) }.raw.bits().fetch_and(!bits & ULOCKS_BYTE_MUTEX_BITS, AcqRel)
}
