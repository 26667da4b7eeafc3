//! Regions in files and without: creating, attaching, resetting, and what is refused.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

mod attaching;
mod corrupt;
mod creating;
#[path = "../common/joined.rs"]
mod joined;
mod killed;
mod preparing;
mod resetting;
mod scratch;
#[path = "../stress/traced.rs"]
mod traced;
mod unfinished;

use ulocks_core::Shared;
use ulocks_core::sync::AtomicU64;
use ulocks_shm::SharedSafe;
use ulocks_unfair::BargingMutexWith;

/// What the tests put into a region.
#[derive(SharedSafe)]
#[repr(C)]
struct Root {
    total: BargingMutexWith<u64, Shared>,
    plain: AtomicU64,
}
