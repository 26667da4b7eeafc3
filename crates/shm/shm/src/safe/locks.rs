//! The locks of the family in a region: with the policy `Shared` only.
//!
//! A raw lock is fields that are atomics, and numbers behind the lock. All-zero memory is an
//! unlocked lock: law 1 of the family. A raw lock is reset to that, with its counters and with what
//! it has learned.
//!
//! A typed lock is one of lock_api's, a Rust struct: the compiler may place the data first or last.
//! So its layout hash has the offset of the data.

use super::{SharedSafe, least_slots, named};
use crate::inspect;
use crate::robust::RawRobust;
use crate::robust::condvar::Condvar;
use crate::robust::mutex::Mutex;
use crate::robust::rwlock::RwLock;
use crate::robust::semarray::{SemArray, Semaphore};
use std::mem::MaybeUninit;
use ulocks_core::api::{Condvar as PlainCondvar, Mutex as PlainMutex, Raw, RwLock as PlainRwLock};
use ulocks_core::meter::{Counted, Off};
use ulocks_core::raw::{RawMutex, RawRwLock};
use ulocks_core::signal::Mask;
use ulocks_core::spin::Spin;
use ulocks_core::{Shared, meter::Meter};
use ulocks_psrwlock::{BULK, Fairness, NESTED, Nesting, RawPsRwLock, Readers, Sifted, URGENT};
use ulocks_unfair::RawAsymMutex;

// SAFETY: no bytes.
unsafe impl SharedSafe for Off {
    const LAYOUT: u64 = named("Off", &[]);
}

// SAFETY: atomic counters, `repr(C)`. They are as wide as a pointer: the hash has their size.
unsafe impl SharedSafe for Counted {
    const LAYOUT: u64 = named("Counted", &[size_of::<Self>() as u64]);
}

/// What the hash of a raw lock has: which lock it is, its size, its counters, and `parts`.
const fn raw<L, M: SharedSafe>(name: &str, parts: &[u64]) -> u64 {
    named(name, &[size_of::<L>() as u64, align_of::<L>() as u64, M::LAYOUT, super::layout(parts)])
}

/// Sets each byte of a raw lock to zero.
///
/// # Safety
/// As [`SharedSafe::reset_locks`]; all-zero bytes are an unlocked `L`.
unsafe fn zero<L>(this: *mut L) {
    // SAFETY: a valid place for an `L`, which no other thread accesses.
    unsafe { this.write_bytes(0, 1) };
}

/// Raw locks: the parameters, the type, its name, what its protocol depends on.
macro_rules! raw_locks {
    ($($(#[$why:meta])* [$($parameters:tt)*] $lock:ty, $name:literal, [$($part:expr),*];)+) => {$(
        // SAFETY: fields that are atomics, or numbers that the lock protects: each bit pattern is
        // valid. All zero is unlocked, by law 1. The lock stores no address, by law 7, and has
        // `repr(C)`. No `Drop` does anything. The hash has all that the protocol depends on.
        unsafe impl<W: Spin, M: Meter + SharedSafe, $($parameters)*> SharedSafe for $lock {
            const LAYOUT: u64 = raw::<$lock, M>($name, &[$($part),*]);

            unsafe fn reset_locks(this: *mut Self) {
                // SAFETY: the caller's promise, and law 1.
                unsafe { zero(this) };
            }
        }
    )+};
}

raw_locks! {
    [] ulocks_unfair::RawBargingMutex<Shared<W, M>>, "RawMutex", [];
    [] RawAsymMutex<Shared<W, M>>, "RawAsymMutex", [];
    [const CLASSES: u8, F: Fairness, R: Readers, K: Mask, N: Nesting]
        RawPsRwLock<Sifted<CLASSES, Shared<W, M>, F, R, K, N>>, "RawPsRwLock", [CLASSES as u64, !F::READERS_FIRST as u64];
    [] RawPsRwLock<Shared<W, M>>, "RawPsRwLock", [{ BULK | URGENT | NESTED } as u64, 1];
}

/// How far `part`, an address inside of `whole`, is from its beginning.
const fn distance<W, P>(whole: &MaybeUninit<W>, part: *const P) -> usize {
    // SAFETY: both are of one object, the offset of a field of it.
    unsafe { part.cast::<u8>().offset_from_unsigned(whole.as_ptr().cast()) }
}

/// A typed lock: where its data is, and how it is reset.
macro_rules! typed_locks {
    ($($lock:ident, $raw_trait:ident, [$($data_bound:tt)*], $name:literal;)+) => {$(
        // SAFETY: the raw lock and the data, each of which promises all of it; the hash has the
        // place of the data. The data changes behind a guard of the lock, which is in the same
        // value.
        unsafe impl<L: $raw_trait + SharedSafe, T: SharedSafe + $($data_bound)*> SharedSafe for $lock<L, T> {
            const LAYOUT: u64 = {
                let lock = MaybeUninit::<Self>::zeroed();
                // SAFETY: all-zero bytes are a lock and its data, by their promises.
                let data = distance(&lock, unsafe { lock.assume_init_ref() }.data_ptr());
                let size = size_of::<Self>() as u64;
                named($name, &[L::LAYOUT, T::LAYOUT, size_of::<T>() as u64, data as u64, size])
            };
            const LEAST_SLOTS: usize = T::LEAST_SLOTS;

            unsafe fn reset_locks(this: *mut Self) {
                // SAFETY: the place is valid, and so is each bit pattern; no other thread accesses
                // it. Of the reference only addresses are kept.
                let (lock, data) = unsafe { ((*this).raw() as *const Raw<L>, (*this).data_ptr()) };
                // SAFETY: both are in `this`.
                let (lock, data) = unsafe {
                    (lock.byte_offset_from_unsigned(this), data.byte_offset_from_unsigned(this))
                };
                // SAFETY: `Raw` is `repr(transparent)`; the rest is the caller's promise.
                unsafe { L::reset_locks(this.byte_add(lock).cast()) };
                // SAFETY: the caller's promise.
                unsafe { T::reset_locks(this.byte_add(data).cast()) };
            }
        }
    )+};
}

typed_locks! {
    PlainMutex, RawMutex, [Send], "Mutex";
    PlainRwLock, RawRwLock, [Send], "RwLock";
}

// SAFETY: the raw lock promises it of itself. A word and the data follow, `repr(C)`. Each value of
// the word is handled, and all zero is an unlocked mutex. The data changes behind its guard.
unsafe impl<T: SharedSafe + Send, L: RawRobust> SharedSafe for Mutex<T, L> {
    const LAYOUT: u64 = named(L::NAME, &[T::LAYOUT, align_of::<T>() as u64, size_of::<Self>() as u64]);
    const LEAST_SLOTS: usize = T::LEAST_SLOTS;
    const SHOWN_AS: u32 = inspect::shown_mutex::<L>();

    unsafe fn reset_locks(this: *mut Self) {
        // SAFETY: the caller's promise.
        unsafe { Self::reset_lock(this) };
        // SAFETY: the caller's promise; the data is in `this`.
        unsafe { T::reset_locks(Self::data_of(this)) };
    }
}

// SAFETY: the raw lock is atomics, and the data follows, `repr(C)`. Each value of the words is
// handled, and all zero is an unlocked lock. The data changes behind a guard of a writer.
unsafe impl<T: SharedSafe + Send, W: Spin, const N: usize> SharedSafe for RwLock<T, N, Shared<W>> {
    const LAYOUT: u64 = {
        let parts = [T::LAYOUT, align_of::<T>() as u64, size_of::<Self>() as u64, N as u64];
        named("shm::RwLock", &parts)
    };
    const LEAST_SLOTS: usize = least_slots(&[N, T::LEAST_SLOTS]);
    const SHOWN_AS: u32 = inspect::shown_parameter(inspect::RWLOCK, N);

    unsafe fn reset_locks(this: *mut Self) {
        // SAFETY: the caller's promise.
        unsafe { Self::reset_lock(this) };
        // SAFETY: the caller's promise; the data is in `this`.
        unsafe { T::reset_locks(Self::data_of(this)) };
    }
}

// SAFETY: atomics, `repr(C)`. Each value of the words is handled, and all zero is an array of zeros
// that no thread uses.
unsafe impl<const SEMS: usize, const SLOTS: usize, const OPS: usize, W: Spin> SharedSafe
    for SemArray<SEMS, SLOTS, OPS, Shared<W>>
{
    // With the number of its layout.
    const LAYOUT: u64 = {
        assert!(OPS > 0, "a `SemArray` has room for a set of one operation at least");
        named("shm::SemArray 2", &[SEMS as u64, SLOTS as u64, OPS as u64])
    };
    const LEAST_SLOTS: usize = SLOTS;
    const SHOWN_AS: u32 = inspect::shown_array(SEMS, OPS);

    unsafe fn reset_locks(this: *mut Self) {
        // SAFETY: the caller's promise.
        unsafe { Self::reset_array(this) };
    }
}

// SAFETY: the array inside, `repr(transparent)`.
unsafe impl<const SLOTS: usize, W: Spin> SharedSafe for Semaphore<SLOTS, Shared<W>> {
    const LAYOUT: u64 = <SemArray<1, SLOTS, 1, Shared<W>>>::LAYOUT;
    const LEAST_SLOTS: usize = SLOTS;
    const SHOWN_AS: u32 = <SemArray<1, SLOTS, 1, Shared<W>>>::SHOWN_AS;

    unsafe fn reset_locks(this: *mut Self) {
        // SAFETY: the caller's promise; the array is at the same place.
        unsafe { <SemArray<1, SLOTS, 1, Shared<W>>>::reset_locks(this.cast()) };
    }
}

// SAFETY: atomics, `repr(transparent)`. Each value of the words is handled, and all zero has no
// waiters.
unsafe impl<W: Spin> SharedSafe for Condvar<Shared<W>> {
    const LAYOUT: u64 = named("shm::Condvar", &[size_of::<Self>() as u64]);
    const SHOWN_AS: u32 = inspect::CONDVAR;

    unsafe fn reset_locks(this: *mut Self) {
        // SAFETY: the caller's promise.
        unsafe { &*this }.reset();
    }
}

// SAFETY: the words of a condition variable are atomics, 16 bytes; all zero is one without waiters.
unsafe impl<L: RawMutex + SharedSafe> SharedSafe for PlainCondvar<L> {
    const LAYOUT: u64 = named("Condvar", &[L::LAYOUT, size_of::<Self>() as u64]);

    unsafe fn reset_locks(this: *mut Self) {
        // SAFETY: the caller's promise; all zero is a condition variable without waiters.
        unsafe { zero(this) };
    }
}
