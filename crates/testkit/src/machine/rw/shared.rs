//! A reader-writer lock in memory that processes share: forked children over one mapping.

use super::super::shared::{Mapping, forked};
use super::super::stress::{Load, Random};
use super::super::watchdog::watch;
use super::{Counts, Table};
use crate::new_lock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use ulocks_core::raw::RawRwLock;

/// What the processes share.
struct Region<L> {
    table: Table<L>,
    acquired: [AtomicUsize; 32],
}

/// Readers and writers of every kind, with deadlines up to 200 us, in a process each.
///
/// # Panics
/// If a child does, and if there are more than 32.
pub fn mixed<L: RawRwLock>(load: Load) -> Counts {
    assert!(load.threads <= 32, "at most 32 processes");
    let mapping = Mapping::shared();
    let region = mapping.place::<Region<L>>();
    // SAFETY: a fresh page that is large enough.
    let region = unsafe {
        region.write(Region { table: Table::new(), acquired: [const { AtomicUsize::new(0) }; 32] });
        &*region
    };
    let address = std::ptr::from_ref(region).expose_provenance();
    let _watchdog = watch("shared mixed", move || {
        // SAFETY: the mapping outlives the watchdog.
        let region = unsafe { &*std::ptr::with_exposed_provenance::<Region<L>>(address) };
        format!("acquired {:?}, locked {}", region.acquired, region.table.lock.is_locked())
    });
    forked(load.threads, |me| {
        let mut random = Random::new(me);
        for _ in 0..load.operations {
            let hold = random.below(load.hold + 1);
            let had = region.table.read_or_write(&mut random, 200_000, hold);
            region.acquired[me].fetch_add(had.into(), Relaxed);
        }
    });
    let acquired = region.acquired[..load.threads].iter().map(|count| count.load(Relaxed)).collect();
    Counts::new(&region.table, acquired, 0)
}

/// A lock in fresh zeroed memory, never initialised: law 1 of the family.
pub fn zeroed_is_unlocked<L: RawRwLock>() -> bool {
    let mapping = Mapping::shared();
    let _ = new_lock::<L>();
    // SAFETY: the page is zeroed and large enough; that zeroes are an unlocked lock is what the
    // family promises.
    let lock = unsafe { &*mapping.place::<L>() };
    let Some(token) = lock.try_write() else { return false };
    // SAFETY: acquired above.
    unsafe { lock.unlock_write(token) };
    let Some(token) = lock.try_read() else { return false };
    // SAFETY: acquired above.
    unsafe { lock.unlock_read(token) };
    !lock.is_locked()
}
