//! The layouts of the robust locks: a file keeps them, and programs of other builds find them.
#![cfg(all(target_pointer_width = "64", not(any(ulocks_loom, ulocks_vm))))]

use ulocks_core::Shared;
use ulocks_shm::robust::fair_mutex::RawRobustFairMutex;
use ulocks_shm::robust::mutex::raw::RawRobustMutex;
use ulocks_shm::robust::rwlock::raw::RawRobustPsRwLock;
use ulocks_shm::robust::semarray::RobustSemArray;
use ulocks_testkit as _;

const _: () = assert!(size_of::<RawRobustMutex>() == 4);
const _: () = assert!(size_of::<RawRobustFairMutex>() == 24);
const _: () = assert!(size_of::<RawRobustPsRwLock>() == 32 + 4 * 64);
const _: () = assert!(size_of::<RawRobustPsRwLock<Shared, 8>>() == 32 + 4 * 8);
const _: () = assert!(size_of::<RobustSemArray<1>>() == 5_784);
const _: () = assert!(size_of::<RobustSemArray<2>>() == 6_048);

/// The bytes of a lock without padding.
fn bytes<L>(lock: &L) -> &[u8] {
    // SAFETY: the bytes of an initialised value, whose fields are words side by side.
    unsafe { std::slice::from_raw_parts((&raw const *lock).cast(), size_of::<L>()) }
}

#[test]
fn a_new_lock_is_all_zero() {
    let zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    assert!(zero(bytes(&RawRobustMutex::<Shared>::new())));
    assert!(zero(bytes(&RawRobustFairMutex::<Shared>::new())));
    assert!(zero(bytes(&RawRobustPsRwLock::<Shared, 8>::new())));
}
