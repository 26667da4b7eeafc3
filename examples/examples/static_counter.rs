//! A lock in a static, with counters of acquisitions, contention and sleeps.

use std::thread;
use ulocks::Private;
use ulocks::meter::Counted;
use ulocks::spin::Adaptive;
use ulocks::unfair::MutexWith;

ulocks::sync_static! {
    /// Without the model worlds a plain `static HITS: .. = MutexWith::new(0);` does the same.
    static HITS: MutexWith<u64, Private<Adaptive, Counted>> = MutexWith::new(0);
}

const THREADS: u64 = 4;
const ROUNDS: u64 = 50_000;

fn main() {
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| (0..ROUNDS).for_each(|_| *HITS.lock() += 1));
        }
    });

    let hits = *HITS.lock();
    assert_eq!(hits, THREADS * ROUNDS);
    println!("{hits} hits by {THREADS} threads: none lost");
    // SAFETY: reading the meter does not change the lock.
    println!("{:?}", unsafe { HITS.raw() }.inner().meter());
}
