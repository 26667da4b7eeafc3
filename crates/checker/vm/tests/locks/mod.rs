//! Small locks and structures, each sound in one form and broken in several, and the programs that
//! use them.
//!
//! They show that the explorer finds what it is there to find, and that it finds nothing where
//! there is nothing. Each takes the bug it is to have, or `None`. A program that ends has shown
//! exclusion, publication (the machine reports unordered accesses to plain data) and that no thread
//! was left asleep (it reports threads that cannot go on).

pub mod dekker;
pub mod mcs;
pub mod mcs_on_stack;
pub mod psrwlock;
pub mod ring;
pub mod three_state;

use std::sync::Arc;
use ulocks_vm::sync::UnsafeCell;
use ulocks_vm::thread;

/// A lock with one holder.
pub trait Exclusive: Send + Sync + 'static {
    /// Runs `section` while the lock is held. `thread` is the number of the calling thread in this
    /// program, from 0.
    fn hold(&self, thread: usize, section: impl FnOnce());
}

/// `threads` threads, of which the model's own is one, call `body` with their numbers.
pub fn together(threads: usize, body: impl Fn(usize) + Clone + Send + 'static) {
    let others: Vec<_> = (1..threads)
        .map(|thread| {
            let body = body.clone();
            thread::spawn(move || body(thread))
        })
        .collect();
    body(0);
    for other in others {
        other.join().expect("nobody dies here");
    }
}

struct Counter<L> {
    lock: L,
    count: UnsafeCell<u32>,
}

// SAFETY: `count` is accessed under the lock. Where the lock is broken, the machine ends the run
// before the access.
unsafe impl<L: Sync> Sync for Counter<L> {}

/// Exclusion, and that no thread sleeps for ever: each of `threads` threads counts under the lock,
/// `rounds` times.
pub fn counting<L: Exclusive>(
    threads: usize,
    rounds: u32,
    new: impl Fn() -> L + 'static,
) -> impl Fn() + 'static {
    move || {
        let counter = Arc::new(Counter { lock: new(), count: UnsafeCell::new(0) });
        let shared = Arc::clone(&counter);
        together(threads, move |thread| {
            for _ in 0..rounds {
                // SAFETY: the lock is held.
                shared.lock.hold(thread, || shared.count.with_mut(|count| unsafe { *count += 1 }));
            }
        });
        // SAFETY: the other threads have been joined.
        let count = counter.count.with(|count| unsafe { *count });
        assert_eq!(count, threads as u32 * rounds, "a section was lost");
    }
}
