//! The word that becomes a lock, on the virtual machine. The bugs that it must find are in
//! `mutants/inflated.toml`.
#![cfg(world = "vm")]

use ulocks_core::futex::Local;
use ulocks_core::inflated::{Inflated, Memory};
use ulocks_core::model::Config;
use ulocks_testkit::plain::ThreeState;

type Plain = ThreeState<Local>;
type Lock = Inflated<Plain, Heap>;

/// Each lock in a box.
struct Heap;

// SAFETY: a box has room for what it is made for, and is its owner's alone.
unsafe impl Memory<Plain> for Heap {
    fn allocate() -> Option<*mut Plain> {
        Some(Box::into_raw(Box::<Plain>::new_uninit()).cast())
    }

    unsafe fn free(lock: *mut Plain) {
        // SAFETY: it is initialised, and from `allocate`.
        drop(unsafe { Box::from_raw(lock) });
    }
}

fn sampled(threads: usize, seed: u64) -> Config {
    Config { spurious: 2, seed, ..Config::sampled(8_000 / threads as u64) }
}

ulocks_testkit::vm_models! {
    sampled: sampled,
    locks: [Lock = 1],
    exhaustive: {
        exclusion: [Lock],
        no_lost_wake: [Lock],
        timeout_vs_unlock: [],
        last_unlocker_frees: [Lock],
    },
    try_lock: [Lock],
}

/// A thread that releases what it has taken by the word, while another makes that a lock.
#[test]
fn what_is_held_looks_held() {
    use ulocks_core::model::explore;
    use ulocks_core::raw::RawMutex;
    use ulocks_testkit::thread::{Arc, spawn};
    explore(Config::exhaustive(), || {
        let lock = Arc::new(ulocks_core::initial!(Lock));
        lock.lock();
        let other = {
            let lock = Arc::clone(&lock);
            spawn(move || {
                lock.lock();
                // SAFETY: locked above.
                unsafe { lock.unlock(()) };
            })
        };
        assert!(lock.is_locked(), "the holder finds its mutex free");
        // SAFETY: locked above.
        unsafe { lock.unlock(()) };
        other.join().unwrap();
    });
}
