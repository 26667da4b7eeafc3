//! What a `BiasedMutex` costs those who are not its owner: the first lock of another thread, which
//! takes the bias away, and the locks of that thread from then on.
//!
//! ```sh
//! cargo run --release -p ulocks-unfair --example revocation
//! ```
//!
//! Each mutex is new. One thread locks it until it is the owner, and then works on something else.
//! A second thread locks it, which is timed, and then goes on locking it. Beside them are an
//! `AsymMutex` and std's mutex with the same history. All figures are medians.

use std::hint::black_box;
use std::sync::Mutex;
use std::time::Instant;
use ulocks_unfair::{AsymMutex, BiasedMutex};

/// Mutexes of each kind.
const ROUNDS: usize = 201;
/// Locks by which a thread becomes the owner, with a margin.
const BIASES: u32 = 20_000;
/// Locks of the second thread, timed together.
const AFTERWARDS: u32 = 20_000;

/// Figures of one mutex, in nanoseconds.
struct Figures {
    owner: f64,
    first: f64,
    afterwards: f64,
}

/// The mutex that `lock` locks and unlocks has an owner, and then another client.
fn measure(lock: impl Fn() + Sync) -> Figures {
    let lock = &lock;
    let pairs = move |count: u32| {
        let start = Instant::now();
        (0..count).for_each(|_| lock());
        start.elapsed().as_nanos() as f64 / f64::from(count)
    };
    std::thread::scope(|scope| {
        let (done, other) = std::sync::mpsc::channel();
        let second = scope.spawn(move || {
            other.recv().expect("the owner says when it is done");
            let start = Instant::now();
            lock();
            let first = start.elapsed().as_nanos() as f64;
            pairs(AFTERWARDS); // until the mutex has settled with its new client
            (first, pairs(AFTERWARDS))
        });
        pairs(BIASES);
        let owner = pairs(BIASES);
        done.send(()).expect("the second thread waits");
        let (first, afterwards) = second.join().expect("the second thread does not panic");
        Figures { owner, first, afterwards }
    })
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let mut all: [(&str, Vec<Figures>); 3] =
        [("BiasedMutex", Vec::new()), ("AsymMutex", Vec::new()), ("std", Vec::new())];
    for _ in 0..ROUNDS {
        let (biased, asym, std) = (BiasedMutex::new(0_u64), AsymMutex::new(0_u64), Mutex::new(0_u64));
        all[0].1.push(measure(|| *black_box(&biased).lock() += 1));
        all[1].1.push(measure(|| *black_box(&asym).lock() += 1));
        all[2].1.push(measure(|| *black_box(&std).lock().expect("no holder panics") += 1));
    }
    println!(
        "{:<12} {:>14} {:>22} {:>22}",
        "ns", "a pair, owner", "first lock of another", "a pair, afterwards"
    );
    for (name, figures) in &all {
        let of = |figure: fn(&Figures) -> f64| median(&mut figures.iter().map(figure).collect::<Vec<_>>());
        println!(
            "{name:<12} {:>14.2} {:>22.0} {:>22.2}",
            of(|figures| figures.owner),
            of(|figures| figures.first),
            of(|figures| figures.afterwards)
        );
    }
}
