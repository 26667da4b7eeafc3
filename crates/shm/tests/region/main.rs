//! Regions in files and without: creating, attaching, resetting, and what is refused.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

mod attaching;
mod corrupt;
mod creating;
mod resetting;
mod scratch;

use ulocks_core::Shared;
use ulocks_core::sync::AtomicU64;
use ulocks_shm::{SharedSafe, layout};
use ulocks_unfair::MutexWith;

/// What the tests put into a region.
#[repr(C)]
struct Root {
    total: MutexWith<u64, Shared>,
    plain: AtomicU64,
}

// SAFETY: two fields that are `SharedSafe`, in a `repr(C)` struct without `Drop`; both are in the
// hash, and the locks of both are reset.
unsafe impl SharedSafe for Root {
    const LAYOUT: u64 = layout(&[<MutexWith<u64, Shared>>::LAYOUT, AtomicU64::LAYOUT]);

    unsafe fn reset_locks(this: *mut Self) {
        // SAFETY: a field of `this`, for which the caller has promised.
        unsafe { SharedSafe::reset_locks(&raw mut (*this).total) };
    }
}
