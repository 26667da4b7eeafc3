//! Threads that initialise, and threads that wait for it.

use ulocks_core::sync::UnsafeCell;
use ulocks_parking_lot::{Once, OnceState};
use ulocks_testkit::thread::{Arc, spawn};

struct Lazy {
    once: Once,
    value: UnsafeCell<u32>,
}

// SAFETY: `value` is written by the one closure, and read after that.
unsafe impl Sync for Lazy {}
// SAFETY: its parts are `Send`.
unsafe impl Send for Lazy {}

impl Lazy {
    /// It does not look at `once`: that would order what the caller's own look did not.
    fn read(&self) {
        // SAFETY: the closure has returned.
        assert_eq!(self.value.with(|value| unsafe { *value }), 1, "a closure ran twice, or none did");
    }
}

/// One closure of several runs, and all callers and waiters see what it did.
pub fn one_of_several_runs(callers: usize, waiters: usize) {
    let lazy = Arc::new(Lazy { once: Once::new(), value: UnsafeCell::new(0) });
    let threads: Vec<_> = (0..callers + waiters)
        .map(|me| {
            let lazy = Arc::clone(&lazy);
            spawn(move || {
                if me < callers {
                    // SAFETY: one closure runs.
                    lazy.once.call_once(|| lazy.value.with_mut(|value| unsafe { *value += 1 }));
                } else if me % 2 == 0 {
                    lazy.once.wait();
                } else {
                    lazy.once.wait_force();
                }
                lazy.read();
            })
        })
        .collect();
    if lazy.once.state() == OnceState::Done {
        lazy.read();
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
