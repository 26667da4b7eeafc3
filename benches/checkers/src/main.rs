//! What checking costs: the pair of an acquisition and a release without contention, beside other
//! checkers of locks.
//!
//! The subjects of a row are measured in turn, in 31 rounds, in CPU time of the thread, and the
//! median of each is printed. Run it with `cargo run --release`. Without optimisation it does one
//! round, which shows that it runs and measures nothing.

use crossbeam_utils::CachePadded;
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use ulocks_core::signal::{Mask, Soft};
use ulocks_debug::Mutex as Checked;
use ulocks_unfair::ThroughputMutex as Plain;

const ROUNDS: usize = if cfg!(debug_assertions) { 1 } else { 31 };
const PAIRS: u32 = 100_000;
/// For subjects that take microseconds.
const FEW: u32 = 500;
/// Of the pairs of a thousand locks, for each round.
const NEW: u32 = 16_000;

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

type Subject = Box<dyn FnMut() -> f64>;

/// The names of the subjects that `rows!` makes.
const ROWS: [&str; 6] = [
    "one lock",
    "one in another that stays held",
    "2 nested, a lock",
    "4 nested, a lock",
    "ordered pairs of 100 of one line, a lock",
    "ordered pairs of 1000, all new, a lock",
];

/// Subjects with four locks of classes of their own, and with many that one line makes.
macro_rules! rows {
    ($pairs:expr, $own:expr, $make:expr $(, $unwrap:ident)?) => {{
        let own: &'static [_; 4] = Box::leak(Box::new($own));
        let many = |count: usize| -> &'static [_] { Vec::from_iter((0..count).map(|_| $make)).leak() };
        let (hundred, thousand) = (many(100), many(1000));
        let (mut known, mut new) = (ordered(100).cycle(), ordered(1000));
        let rows: [Subject; ROWS.len()] = [
            Box::new(move || time($pairs, || *black_box(&own[0]).lock()$(.$unwrap())? += 1)),
            Box::new(move || {
                let _outer = own[0].lock();
                time($pairs, || *black_box(&own[1]).lock()$(.$unwrap())? += 1)
            }),
            Box::new(move || {
                time($pairs, || {
                    let [a, b, ..] = black_box(own);
                    let mut outer = a.lock()$(.$unwrap())?;
                    *b.lock()$(.$unwrap())? += 1;
                    *outer += 1;
                }) / 2.0
            }),
            Box::new(move || {
                time($pairs, || {
                    let [a, b, c, d] = black_box(own);
                    let mut first = a.lock()$(.$unwrap())?;
                    let mut second = b.lock()$(.$unwrap())?;
                    let mut third = c.lock()$(.$unwrap())?;
                    *d.lock()$(.$unwrap())? += 1;
                    *third += 1;
                    *second += 1;
                    *first += 1;
                }) / 4.0
            }),
            Box::new(move || {
                time($pairs, || {
                    let (outer, inner) = known.next().expect("it has no end");
                    let mut outer = hundred[outer].lock()$(.$unwrap())?;
                    *hundred[inner].lock()$(.$unwrap())? += 1;
                    *outer += 1;
                }) / 2.0
            }),
            Box::new(move || {
                time(NEW.min($pairs), || {
                    let (outer, inner) = new.next().expect("there are enough");
                    let mut outer = thousand[outer].lock()$(.$unwrap())?;
                    *thousand[inner].lock()$(.$unwrap())? += 1;
                    *outer += 1;
                }) / 2.0
            }),
        ];
        rows
    }};
}

/// All pairs of numbers below `count`, the lower one first, in an order as good as random.
fn ordered(count: usize) -> impl Iterator<Item = (usize, usize)> + Clone {
    let all = |low: usize| (low + 1..count).map(move |high| (low, high));
    let mut pairs: Vec<_> = (0..count).flat_map(all).collect();
    let mut seed = 7_u64;
    for index in (1..pairs.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        pairs.swap(index, (seed >> 33) as usize % (index + 1));
    }
    pairs.into_iter()
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

/// A plain lock, and it beside other checkers: by column the subjects of `ROWS`.
fn columns() -> [(&'static str, [Subject; ROWS.len()]); 5] {
    type Tracing = tracing_mutex::stdsync::tracing::Mutex<u64>;
    type Detecting = parking_lot::Mutex<u64>;
    type NoDeadlocks = no_deadlocks::Mutex<u64>;
    let own = || [Checked::new(0), Checked::new(0), Checked::new(0), Checked::new(0)];
    [
        ("plain", rows!(PAIRS, [(); 4].map(|()| Plain::new(0)), Plain::new(0))),
        ("checked", rows!(PAIRS, own(), Checked::new(0))),
        ("tracing-mutex", rows!(PAIRS, [(); 4].map(|()| Tracing::new(0)), Tracing::new(0), unwrap)),
        ("parking_lot", rows!(PAIRS, [(); 4].map(|()| Detecting::new(0)), Detecting::new(0))),
        ("no_deadlocks", rows!(FEW, [(); 4].map(|()| NoDeadlocks::new(0)), NoDeadlocks::new(0), unwrap)),
    ]
}

/// What else a checked lock costs.
fn others() -> Vec<(&'static str, Subject)> {
    let standard: &std::sync::Mutex<u64> = Box::leak(Box::default());
    let checked: &Checked<u64> = Box::leak(Box::new(Checked::new(0)));
    let of_one: &[Checked<u64>; 2] = Box::leak(Box::new([(); 2].map(|()| Checked::new(0))));
    // A handler has acquired one of its class. It was in another subclass, so there is no fault.
    let handled: &Checked<u64> = Box::leak(Box::new(Checked::new(0)));
    Soft::raise();
    let context = ulocks_debug::SignalContext::enter(libc::SIGUSR1);
    *handled.lock_nested(1) += 1;
    drop(context);
    Soft::lower();
    let pair = |lock: &'static Checked<u64>| move || *black_box(lock).lock() += 1;
    vec![
        ("std", Box::new(move || time(PAIRS, || *black_box(standard).lock().unwrap() += 1))),
        (
            "checked, 2 of a class, a lock",
            Box::new(move || {
                time(PAIRS, || {
                    let mut outer = of_one[0].lock();
                    *of_one[1].lock() += 1;
                    *outer += 1;
                }) / 2.0
            }),
        ),
        (
            "checked, profiled",
            Box::new(move || {
                ulocks_debug::profile::start();
                let time = time(PAIRS, pair(checked));
                ulocks_debug::profile::stop();
                time
            }),
        ),
        ("checked, of handlers", Box::new(move || time(PAIRS, pair(handled)))),
        (
            "checked, with stacks",
            Box::new(move || {
                ulocks_debug::set_stacks(true);
                let time = time(FEW, pair(checked));
                ulocks_debug::set_stacks(false);
                time
            }),
        ),
    ]
}

fn main() {
    let (mut columns, mut others) = (columns(), others());
    let mut times = [[(); ROWS.len()]; 5].map(|rows| rows.map(|()| Vec::new()));
    let mut other_times = vec![Vec::new(); others.len()];
    let mut scalings = [const { Vec::new() }; 3];
    // Row by row: what a checker remembers of the new pairs would be in the way of the others.
    for (row, _) in (0..ROWS.len()).flat_map(|row| (0..ROUNDS).map(move |round| (row, round))) {
        for (times, (_, subjects)) in times.iter_mut().zip(&mut columns) {
            times[row].push(subjects[row]());
        }
    }
    for _ in 0..ROUNDS {
        for (times, (_, subject)) in other_times.iter_mut().zip(&mut others) {
            times.push(subject());
        }
        for (all, one) in scalings.iter_mut().zip(scaling()) {
            all.push(one);
        }
    }
    let times = times.map(|rows| rows.map(median));
    let heads = columns.map(|(name, _)| format!("{name:>14}")).concat();
    println!("{:44}{heads}  by plain  by tracing-mutex", "nanoseconds of a pair");
    for (row, name) in ROWS.iter().enumerate() {
        let [plain, checked, tracing, ..] = times.each_ref().map(|times| times[row]);
        let all = times.each_ref().map(|times| format!("{:14.1}", times[row])).concat();
        println!("{name:44}{all} {:9.2} {:17.2}", checked / plain, checked / tracing);
    }
    for (times, (name, _)) in other_times.into_iter().zip(&others) {
        println!("{name:58}{:14.1}", median(times));
    }
    println!("two threads by one, on words or locks of their own, nested:");
    for (name, mut all) in ["atomic words", "plain", "checked"].into_iter().zip(scalings) {
        all.sort_by(f64::total_cmp);
        let [low, middle, high] = [1, 2, 3].map(|quarter| all[all.len() * quarter / 4]);
        println!("{name:28} {middle:.2} [{low:.2} {high:.2}]");
    }
}
