//! A client whose holders stay inside for several steps. A heavy fence orders what a thread has
//! done before it. So an owner that is inside while its bias is revoked must do something there
//! afterwards, or a model sees no race.

use ulocks_core::raw::RawMutex;
use ulocks_core::sync::{AtomicU32, Ordering::Relaxed, UnsafeCell};
use ulocks_testkit::new_lock;
use ulocks_testkit::thread::{Arc, together};

struct Shared<L> {
    lock: L,
    count: UnsafeCell<usize>,
    step: AtomicU32,
}

// SAFETY: `count` is accessed by the holder of `lock` only. That the lock admits one holder at a
// time is what the client tests; the model reports where it does not.
unsafe impl<L: Sync> Sync for Shared<L> {}
// SAFETY: owning a `Shared` is owning its parts.
unsafe impl<L: Send> Send for Shared<L> {}

impl<L> Shared<L> {
    /// For the holder of the lock.
    fn add(&self) {
        // SAFETY: the caller holds the lock.
        self.count.with_mut(|count| unsafe { *count += 1 });
    }
}

/// Each of `threads` adds twice to a count, `rounds` times, and makes a step in between.
pub fn stay<L: RawMutex + Send + Sync + 'static>(threads: usize, rounds: usize) {
    let (lock, count) = (new_lock::<L>(), UnsafeCell::new(0));
    let shared = Arc::new(Shared { lock, count, step: AtomicU32::new(0) });
    let all = Arc::clone(&shared);
    together(threads, move |_| {
        for _ in 0..rounds {
            let token = all.lock.lock();
            all.add();
            all.step.load(Relaxed);
            all.add();
            // SAFETY: locked above.
            unsafe { all.lock.unlock(token) };
        }
    });
    // SAFETY: the other threads were joined.
    let count = shared.count.with(|count| unsafe { *count });
    assert_eq!(count, 2 * threads * rounds, "updates were lost");
}
