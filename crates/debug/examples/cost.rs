//! What checking costs: the pair of an acquisition and a release without contention.
//!
//! All subjects are measured in turn, in 31 rounds, in CPU time of the thread, and the median of
//! each is printed. Run it with `cargo run --release -p ulocks-debug --example cost`. Without
//! optimisation it does one round, which shows that it runs and measures nothing.

// Model worlds have no checked locks.
#![cfg_attr(any(ulocks_loom, ulocks_vm), no_main)]
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use crossbeam_utils::CachePadded;
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use ulocks_core::signal::{Mask, Soft};

const ROUNDS: usize = if cfg!(debug_assertions) { 1 } else { 31 };
const PAIRS: u32 = 100_000;
/// For subjects that take microseconds.
const FEW: u32 = 500;

/// The CPU time of this thread, in nanoseconds. By the wall clock other programs would count.
fn cpu_time() -> f64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it is a valid place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// Nanoseconds for a pair.
fn time(pairs: u32, mut pair: impl FnMut()) -> f64 {
    let start = cpu_time();
    for _ in 0..pairs {
        pair();
    }
    (cpu_time() - start) / f64::from(pairs)
}

/// Nanoseconds for a pair of each of four locks, nested two and two, and all four.
macro_rules! nested {
    ($locks:expr) => {
        [
            Box::new(|| {
                time(PAIRS, || {
                    let [a, b, ..] = black_box(&$locks);
                    let mut outer = a.lock();
                    *b.lock() += 1;
                    *outer += 1;
                }) / 2.0
            }) as Box<dyn Fn() -> f64>,
            Box::new(|| {
                time(PAIRS, || {
                    let [a, b, c, d] = black_box(&$locks);
                    let mut first = a.lock();
                    let mut second = b.lock();
                    let mut third = c.lock();
                    *d.lock() += 1;
                    *third += 1;
                    *second += 1;
                    *first += 1;
                }) / 4.0
            }),
        ]
    };
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Rounds of all threads in a millisecond. Each thread has a `subject` of its own.
fn rate<T>(threads: usize, make: impl Fn() -> T + Sync, round: impl Fn(&T) + Sync) -> f64 {
    let ready = Barrier::new(threads + 1);
    let window = Duration::from_millis(30);
    let total: u64 = std::thread::scope(|scope| {
        let run = || {
            let subject = CachePadded::new(make());
            ready.wait();
            let (start, mut rounds) = (Instant::now(), 0);
            while start.elapsed() < window {
                for _ in 0..500 {
                    round(&subject);
                }
                rounds += 500;
            }
            rounds
        };
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        ready.wait();
        all.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    total as f64 / window.as_secs_f64() / 1e3
}

/// What two threads do in the time of one: with nothing but two atomic words, with two plain locks,
/// and with two checked ones. Each thread has its own.
fn scaling() -> [f64; 3] {
    let by_one = |rate: &dyn Fn(usize) -> f64| {
        let one = rate(1);
        rate(2) / one
    };
    type Words = [AtomicU64; 2];
    type Plain = (ulocks_unfair::ThroughputMutex<u64>, ulocks_fair::FairMutex<u64>);
    type Checked = (ulocks_debug::Mutex<u64>, ulocks_debug::FairMutex<u64>);
    [
        by_one(&|threads| {
            rate(threads, Words::default, |words| {
                // As many locked instructions as two locks have.
                for word in [0, 1, 1, 0] {
                    black_box(words)[word].fetch_add(1, Relaxed);
                }
            })
        }),
        by_one(&|threads| {
            rate(threads, Plain::default, |locks| {
                let mut first = locks.0.lock();
                *first += 1;
                *locks.1.lock() += 1;
            })
        }),
        by_one(&|threads| {
            rate(threads, Checked::default, |locks| {
                let mut first = locks.0.lock();
                *first += 1;
                *locks.1.lock() += 1;
            })
        }),
    ]
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

    use ulocks_debug::Mutex as Checked;
    use ulocks_unfair::ThroughputMutex as Plain;
    let plain_locks = [(); 4].map(|()| Plain::new(0_u64));
    // Of a class each.
    let checked_locks = [Checked::new(0_u64), Checked::new(0_u64), Checked::new(0_u64), Checked::new(0_u64)];
    let locks_of_one = [(); 4].map(|()| Checked::new(0_u64));
    let [plain_two, plain_four] = nested!(plain_locks);
    let [checked_two, checked_four] = nested!(checked_locks);
    let [one_two, one_four] = nested!(locks_of_one);

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
        ("plain, 2 nested, a lock", plain_two),
        ("checked, 2 nested, a lock", checked_two),
        ("checked, 2 of a class", one_two),
        ("plain, 4 nested, a lock", plain_four),
        ("checked, 4 nested, a lock", checked_four),
        ("checked, 4 of a class", one_four),
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
    let mut scalings = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        for (times, (_, subject)) in times.iter_mut().zip(&subjects) {
            times.push(subject());
        }
        for (all, one) in scalings.iter_mut().zip(scaling()) {
            all.push(one);
        }
    }
    let medians: Vec<f64> = times.into_iter().map(median).collect();
    for (time, (name, _)) in medians.iter().zip(&subjects) {
        println!("{name:28} {time:9.1} ns  {:7.2} of plain", time / medians[0]);
    }
    println!("two threads by one, on words or locks of their own, nested:");
    for (name, mut all) in ["atomic words", "plain", "checked"].into_iter().zip(scalings) {
        all.sort_by(f64::total_cmp);
        let [low, middle, high] = [1, 2, 3].map(|quarter| all[all.len() * quarter / 4]);
        println!("{name:28} {middle:.2} [{low:.2} {high:.2}]");
    }
}
