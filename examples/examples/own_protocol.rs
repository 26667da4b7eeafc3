//! A protocol of one's own, model-checked: a latch on which one thread waits until all workers are
//! done. The model finds two planted bugs, and tells how they come about.
//!
//! # Which lock, and why
//! None: a latch is one word and a futex. The virtual machine ([`ulocks_vm`]) runs the code with
//! its own atomics, and tries the orders of the threads, the old values that a load may still see,
//! and each sleep and wake-up.
//!
//! # What would go wrong without
//! Tests on the machine pass with both bugs for years: one needs a decrement between two
//! instructions of another thread, the other needs a processor that reorders stores.
//!
//! In a crate of your own, take the atomics and the futex from `ulocks_core`.
//! Then the source that you ship is the source that is checked. `examples/downstream` is such a
//! crate, and the README of `ulocks-vm` has the steps.

use std::sync::Arc;
use ulocks_vm::explore::{Config, Verdict, explore, finds_bug};
use ulocks_vm::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_vm::sync::{AtomicU32, UnsafeCell};
use ulocks_vm::{futex, thread};

/// The word is the number of workers that are not done. The highest bit, `WAITING`, says that the
/// waiter may sleep.
///
/// A worker subtracts one (Release: pairs with the load of the waiter). If it was the last one and
/// the bit is set, it wakes the waiter. The waiter sets the bit before it sleeps, and the kernel
/// compares the word again. So the waiter does not sleep on a word that has changed.
struct Latch<const BUG: u8>(AtomicU32);

const WAITING: u32 = 1 << 31;

const NO_BUG: u8 = 0;
/// A worker looks for a waiter before it subtracts: the bit may be set between the two.
const LOOKS_FIRST: u8 = 1;
/// A worker subtracts with `Relaxed`: what it has done is not published.
const PUBLISHES_NOTHING: u8 = 2;

impl<const BUG: u8> Latch<BUG> {
    fn count_down(&self) {
        let key = std::ptr::from_ref(&self.0).addr();
        let before = match BUG {
            LOOKS_FIRST => {
                let before = self.0.load(Relaxed);
                self.0.fetch_sub(1, Release);
                before
            }
            PUBLISHES_NOTHING => self.0.fetch_sub(1, Relaxed),
            _ => self.0.fetch_sub(1, Release),
        };
        if before == WAITING | 1 {
            futex::wake(key, 1, u32::MAX, true);
        }
    }

    fn wait(&self) {
        loop {
            let seen = self.0.load(Acquire);
            if seen & !WAITING == 0 {
                return;
            }
            let asleep = seen | WAITING;
            if seen == asleep || self.0.compare_exchange(seen, asleep, Relaxed, Relaxed).is_ok() {
                futex::wait(&self.0, asleep, u32::MAX, None, true);
            }
        }
    }
}

/// What the latch announces: each worker writes one result.
struct Shared<const BUG: u8, const WORKERS: usize> {
    latch: Latch<BUG>,
    results: [UnsafeCell<u32>; WORKERS],
}

// SAFETY: a worker writes its own result before it counts down. The waiter reads after `wait`. The
// virtual machine reports a race if the latch does not order the two.
unsafe impl<const BUG: u8, const WORKERS: usize> Sync for Shared<BUG, WORKERS> {}
// SAFETY: as above.
unsafe impl<const BUG: u8, const WORKERS: usize> Send for Shared<BUG, WORKERS> {}

/// The model: what the latch is for, and what must hold.
fn model<const BUG: u8, const WORKERS: usize>() {
    let shared = Arc::new(Shared::<BUG, WORKERS> {
        latch: Latch(AtomicU32::new(WORKERS as u32)),
        results: std::array::from_fn(|_| UnsafeCell::new(0)),
    });
    let workers: Vec<_> = (0..WORKERS)
        .map(|me| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                // SAFETY: no other thread accesses this result before the latch opens.
                shared.results[me].with_mut(|result| unsafe { *result = 1 });
                shared.latch.count_down();
            })
        })
        .collect();
    shared.latch.wait();
    // SAFETY: the latch is open, so all workers have written.
    let sum: u32 = shared.results.iter().map(|result| result.with(|result| unsafe { *result })).sum();
    assert_eq!(sum, WORKERS as u32);
    for worker in workers {
        worker.join().expect("a panic ends the exploration");
    }
}

fn main() {
    println!("Two threads, all executions:");
    assert!(explore(Config::exhaustive(), model::<NO_BUG, 1>).complete);
    println!("\nFive threads, a sample of the executions:");
    explore(Config::sampled(2_000), model::<NO_BUG, 4>);

    println!("\nWith the first bug:");
    let failure = finds_bug(Config::exhaustive(), model::<LOOKS_FIRST, 1>);
    println!("{failure}");
    assert!(matches!(failure.verdict, Verdict::LostWakeUp(_)));

    println!("\nWith the second bug:");
    let failure = finds_bug(Config::exhaustive(), model::<PUBLISHES_NOTHING, 1>);
    println!("{failure}");
    assert!(matches!(failure.verdict, Verdict::Race(_)));
}
