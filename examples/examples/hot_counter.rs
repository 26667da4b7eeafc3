//! Many more threads than CPUs want one lock all the time: a hot counter, with a histogram.
//!
//! # Which lock, and why
//! [`Calock`](ulocks::calock::Calock) keeps most of the waiters asleep. A few threads go round, as
//! many as can use the CPUs, and every ten milliseconds the oldest sleeper joins them. So the rate
//! hardly depends on the number of threads, and each thread gets its turn.
//!
//! # What would go wrong with another
//! A lock that is first come, first served (`ulocks::fair::FairMutex`) switches threads at each
//! release: right where order counts, slow here. A lock without a bound on the wait
//! (`ulocks::unfair::BargingMutex`) may leave a thread behind. With fewer threads than CPUs take
//! `ulocks::Mutex`, whose bound is shorter.
//!
//! The ratios are those of one short run on this machine, and the program asserts none of them.
//! `cargo bench` measures.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use ulocks::calock::Calock;

const ROUNDS: usize = 3;
const TRIAL: Duration = Duration::from_millis(300);

/// What the lock protects: a count of events, and a histogram of their sizes.
#[derive(Default)]
struct Events {
    count: u64,
    by_size: [u64; 16],
}

impl Events {
    fn record(&mut self, size: u64) {
        self.count += 1;
        compute(); // Something that takes a while, such as a look-up.
        self.by_size[(size % 16) as usize] += 1;
    }
}

fn main() {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let threads = 16 * cpus;
    println!("{threads} threads on {cpus} CPUs, {ROUNDS} rounds of {TRIAL:?} for each lock.");
    println!("{:<8}{:>34}{:>34}", "", "millions a second", "longest wait");
    println!("{:<8}{:>14}{:>12}{:>8}{:>18}{:>16}", "round", "calock", "std", "ratio", "calock", "std");
    for round in 1..=ROUNDS {
        let calock = Calock::new(Events::default());
        let ours = trial(threads, |size| calock.lock().record(size));
        check(&calock.into_inner(), &ours);

        let mutex = std::sync::Mutex::new(Events::default());
        let theirs = trial(threads, |size| mutex.lock().expect("no thread panics").record(size));
        check(&mutex.into_inner().expect("no thread panics"), &theirs);

        let (rate, of_std) = (ours.rate(), theirs.rate());
        print!("{round:<8}{rate:>14.3}{of_std:>12.3}{:>8.2}", rate / of_std);
        println!("{:>15} ms{:>13} ms", ours.longest_wait.as_millis(), theirs.longest_wait.as_millis());
    }
}

struct Outcome {
    /// How many events each thread has recorded.
    recorded: Vec<u64>,
    longest_wait: Duration,
    took: Duration,
}

impl Outcome {
    /// In millions a second.
    fn rate(&self) -> f64 {
        self.recorded.iter().sum::<u64>() as f64 / self.took.as_secs_f64() / 1e6
    }
}

/// Nothing is lost, whichever thread records it.
fn check(events: &Events, outcome: &Outcome) {
    assert_eq!(events.count, outcome.recorded.iter().sum::<u64>());
    assert_eq!(events.count, events.by_size.iter().sum::<u64>());
}

/// Lets all threads record events until the time is up.
fn trial(threads: usize, record: impl Fn(u64) + Sync) -> Outcome {
    let stop = AtomicBool::new(false);
    let start = Instant::now();
    let work = || {
        let (mut recorded, mut longest_wait) = (0, Duration::ZERO);
        while !stop.load(Relaxed) {
            compute(); // Work of the thread's own, between two events.
            let before = Instant::now();
            record(recorded);
            longest_wait = longest_wait.max(before.elapsed());
            recorded += 1;
        }
        (recorded, longest_wait)
    };
    let outcomes: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        thread::sleep(TRIAL);
        stop.store(true, Relaxed);
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
    });
    let took = start.elapsed();
    let longest_wait = outcomes.iter().map(|outcome| outcome.1).max().unwrap_or_default();
    Outcome { recorded: outcomes.into_iter().map(|outcome| outcome.0).collect(), longest_wait, took }
}

fn compute() {
    (0..1_000).for_each(|step| _ = black_box(step));
}
