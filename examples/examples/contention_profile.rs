//! Which lock of a program is contended? Locks that count say so: a cache under one lock, and the
//! same cache in eight parts.
//!
//! # Which lock, and why
//! Any lock of the family, with the policy `Private<Adaptive, Counted>` in its type. The counters
//! are inside the lock, at one relaxed increment for each event. The default policy has none, and
//! costs nothing. Take them in a build that you profile, and leave them in where the increment does
//! not show.
//!
//! # What would go wrong with another
//! A lock without counters is profiled from the outside: a sampling profiler shows where threads
//! sleep, not how often they found the lock taken.

use std::collections::HashMap;
use std::thread;
use ulocks::Private;
use ulocks::policy::{Adaptive, Counted, Metered, Snapshot};
use ulocks::unfair::ThroughputMutexWith;

/// `ulocks::Mutex` with counters. Write it once for your program, and choose the policy by a
/// feature.
type Mutex<T> = ThroughputMutexWith<T, Private<Adaptive, Counted>>;

const THREADS: u64 = 8;
const LOOKUPS: u64 = 50_000;

struct Cache<const PARTS: usize> {
    parts: [Mutex<HashMap<u64, Vec<u8>>>; PARTS],
}

impl<const PARTS: usize> Cache<PARTS> {
    fn new() -> Self {
        Self { parts: std::array::from_fn(|_| Mutex::default()) }
    }

    /// The sum of the bytes of a page, which is read under the lock.
    fn sum_of(&self, page: u64) -> u64 {
        let mut part = self.parts[(page % PARTS as u64) as usize].lock();
        let bytes = part.entry(page).or_insert_with(|| vec![page as u8; 1_000]);
        bytes.iter().map(|&byte| u64::from(byte)).sum()
    }
}

fn main() {
    println!("{:>9} {:>12} {:>11} {:>7} {:>7} {:>7}", "", "acquired", "contended", "spun", "slept", "woke");
    let whole = profile::<1>("one lock");
    let parts = profile::<8>("in 8");
    println!("contention: {:.1} % with one lock, {:.1} % with eight", 100.0 * whole, 100.0 * parts);
}

/// Uses a cache from many threads, prints what its locks have counted, and returns the share of
/// acquisitions that found the lock taken.
fn profile<const PARTS: usize>(name: &str) -> f64 {
    let cache = Cache::<PARTS>::new();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let cache = &cache;
            scope.spawn(move || {
                for n in 0..LOOKUPS {
                    let page = (n * 31 + thread * 7) % 200;
                    assert_eq!(cache.sum_of(page), page * 1_000);
                }
            });
        }
    });
    let mut sum = Snapshot::default();
    for counts in cache.parts.iter().map(Metered::counts) {
        sum.acquired += counts.acquired;
        sum.contended += counts.contended;
        sum.spun += counts.spun;
        sum.slept += counts.slept;
        sum.woke += counts.woke;
    }
    let Snapshot { acquired, contended, spun, slept, woke, .. } = sum;
    println!("{name:>9} {acquired:>12} {contended:>11} {spun:>7} {slept:>7} {woke:>7}");
    assert_eq!(acquired, THREADS * LOOKUPS, "an acquisition was not counted");
    assert!(contended <= acquired && spun <= contended);
    sum.contention().expect("the cache was used")
}
