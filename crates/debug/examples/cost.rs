//! What checking costs: the pair of an acquisition and a release without contention.
//!
//! All subjects are measured in turn, in 21 rounds, and the median of each is printed. Run it with
//! `cargo run --release -p ulocks-debug --example cost`.

// Model worlds have no checked locks.
#![cfg_attr(any(ulocks_loom, ulocks_vm), no_main)]
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};
use ulocks_core::signal::{Mask, Soft};

const ROUNDS: usize = 21;
const PAIRS: u32 = 100_000;
/// For subjects that take microseconds.
const FEW: u32 = 500;

/// Nanoseconds for a pair.
fn time(pairs: u32, mut pair: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..pairs {
        pair();
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(pairs)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Pairs of all threads in a millisecond, on locks of their own.
fn rate(threads: usize) -> f64 {
    let ready = Barrier::new(threads + 1);
    let window = Duration::from_millis(30);
    let total: u64 = std::thread::scope(|scope| {
        let run = || {
            let lock = ulocks_debug::Mutex::new(0_u64);
            let second = ulocks_debug::FairMutex::new(0_u64);
            ready.wait();
            let (start, mut pairs) = (Instant::now(), 0);
            while start.elapsed() < window {
                for _ in 0..500 {
                    let mut guard = lock.lock();
                    *guard += 1;
                    *second.lock() += 1;
                }
                pairs += 1000;
            }
            pairs
        };
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        ready.wait();
        all.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    total as f64 / window.as_secs_f64() / 1e3
}

fn main() {
    let plain = ulocks_unfair::ThroughputMutex::new(0_u64);
    let checked = ulocks_debug::Mutex::new(0_u64);
    let outer = ulocks_debug::FairMutex::new(());
    // A handler has acquired one of its class. It was in another subclass, so there is no fault.
    let handled = ulocks_debug::Mutex::new(0_u64);
    Soft::raise();
    let context = ulocks_debug::SignalContext::enter(libc::SIGUSR1);
    *handled.lock_nested(1) += 1;
    drop(context);
    Soft::lower();
    let tracing = tracing_mutex::stdsync::tracing::Mutex::new(0_u64);
    let tracing_outer = tracing_mutex::stdsync::tracing::Mutex::new(());
    let no_deadlocks = no_deadlocks::Mutex::new(0_u64);
    let no_deadlocks_outer = no_deadlocks::Mutex::new(());
    let standard = std::sync::Mutex::new(0_u64);

    type Subject<'a> = (&'static str, Box<dyn Fn() -> f64 + 'a>);
    let subjects: Vec<Subject> = vec![
        ("plain", Box::new(|| time(PAIRS, || *black_box(&plain).lock() += 1))),
        ("std", Box::new(|| time(PAIRS, || *black_box(&standard).lock().unwrap() += 1))),
        ("checked", Box::new(|| time(PAIRS, || *black_box(&checked).lock() += 1))),
        (
            "checked, in another",
            Box::new(|| {
                let _outer = outer.lock();
                time(PAIRS, || *black_box(&checked).lock() += 1)
            }),
        ),
        (
            "checked, profiled",
            Box::new(|| {
                ulocks_debug::profile::start();
                let time = time(PAIRS, || *black_box(&checked).lock() += 1);
                ulocks_debug::profile::stop();
                time
            }),
        ),
        ("checked, of handlers", Box::new(|| time(PAIRS, || *black_box(&handled).lock() += 1))),
        (
            "checked, with stacks",
            Box::new(|| {
                ulocks_debug::set_stacks(true);
                let time = time(FEW, || *black_box(&checked).lock() += 1);
                ulocks_debug::set_stacks(false);
                time
            }),
        ),
        ("tracing-mutex", Box::new(|| time(PAIRS, || *black_box(&tracing).lock().unwrap() += 1))),
        (
            "tracing-mutex, in another",
            Box::new(|| {
                let _outer = tracing_outer.lock().unwrap();
                time(PAIRS, || *black_box(&tracing).lock().unwrap() += 1)
            }),
        ),
        ("no_deadlocks", Box::new(|| time(FEW, || *black_box(&no_deadlocks).lock().unwrap() += 1))),
        (
            "no_deadlocks, in another",
            Box::new(|| {
                let _outer = no_deadlocks_outer.lock().unwrap();
                time(FEW, || *black_box(&no_deadlocks).lock().unwrap() += 1)
            }),
        ),
    ];
    let mut times = vec![Vec::new(); subjects.len()];
    let mut rates = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (times, (_, subject)) in times.iter_mut().zip(&subjects) {
            times.push(subject());
        }
        for threads in [1, 2] {
            rates[threads - 1].push(rate(threads));
        }
    }
    let medians: Vec<f64> = times.into_iter().map(median).collect();
    for (time, (name, _)) in medians.iter().zip(&subjects) {
        println!("{name:28} {time:9.1} ns  {:7.2} of plain", time / medians[0]);
    }
    let scaling = rates[1].iter().zip(&rates[0]).map(|(two, one)| two / one).collect();
    println!("two threads by one, own locks, nested: {:.2}", median(scaling));
}
