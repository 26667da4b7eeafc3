//! The derive, and a region with it, in a crate that forbids `unsafe`: such a crate wants a safe
//! interface.
#![forbid(unsafe_code)]
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use ulocks_core::Shared;
use ulocks_core::sync::{AtomicU64, Ordering::Relaxed};
use ulocks_shm::{Mutex, Region, SharedSafe};
use ulocks_testkit as _;
use ulocks_unfair::BargingMutexWith;

#[derive(SharedSafe)]
#[repr(C)]
struct Named {
    robust: Mutex<u64>,
    plain: BargingMutexWith<[u8; 3], Shared>,
}

#[derive(SharedSafe)]
#[repr(C)]
struct Table<T, const N: usize>([T; N], AtomicU64);

#[test]
fn the_derive_compiles_where_unsafe_is_forbidden() {
    let region = Region::<Table<Named, 3>>::options().anonymous().expect("a region");
    region.0[2].plain.lock()[1] = 7;
    region.1.store(9, Relaxed);
    assert!(!region.0[2].robust.is_locked() && !region.0[2].plain.is_locked());
    assert_eq!((region.0[2].plain.lock()[1], region.1.load(Relaxed)), (7, 9));
}
