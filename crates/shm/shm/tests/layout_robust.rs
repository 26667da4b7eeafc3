//! The layouts of the robust locks: a file keeps them, and programs of other builds find them.
#![cfg(all(target_pointer_width = "64", not(any(ulocks_loom, ulocks_vm))))]

use ulocks_core::Shared;
use ulocks_shm::SemArray;
use ulocks_shm::robust::fair_mutex::RawFairMutex;
use ulocks_shm::robust::mutex::raw::RawMutex;
use ulocks_shm::robust::rwlock::raw::RawRwLock;
use ulocks_testkit as _;

const _: () = assert!(size_of::<RawMutex>() == 8);
const _: () = assert!(size_of::<RawFairMutex>() == 24);
const _: () = assert!(size_of::<RawRwLock>() == 32 + 4 * 64);
const _: () = assert!(size_of::<RawRwLock<Shared, 8>>() == 32 + 4 * 8);
const _: () = assert!(size_of::<SemArray<1>>() == 5_784);
const _: () = assert!(size_of::<SemArray<2>>() == 6_048);

/// The bytes of a lock without padding.
fn bytes<L>(lock: &L) -> &[u8] {
    // SAFETY: the bytes of an initialised value, whose fields are words side by side.
    unsafe { std::slice::from_raw_parts((&raw const *lock).cast(), size_of::<L>()) }
}

#[test]
fn a_new_lock_is_all_zero() {
    let zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    assert!(zero(bytes(&RawMutex::<Shared>::new())));
    assert!(zero(bytes(&RawFairMutex::<Shared>::new())));
    assert!(zero(bytes(&RawRwLock::<Shared, 8>::new())));
}
