//! What criterion can compare from day to day: single calls, and whole loads across core counts.
//!
//! | group | what |
//! |---|---|
//! | `no_contention` | a lock that no other thread wants: lock and unlock, try and unlock |
//! | `contended` | an operation of one lock, by the number of threads that share it |
//! | `readers` | an operation of a reader-writer lock, by the number of threads |
//! | `handoff` | a turn passed between two threads, by the number of threads that do so in pairs |
//!
//! Threads run from 1, 2, 4 .. to twice the CPUs, or as `--threads` says. How fair a lock was, how
//! long a thread waited and what it cost in CPU time is in the row `scaling`.

use anyhow::Result;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion};
use std::hint::black_box;
use std::time::{Duration, Instant};
use ulocks_benches::engine::options::{self, Options};
use ulocks_benches::engine::plan::CRITERION_S;
use ulocks_benches::rows;
use ulocks_benches::run::busy_work::{self, Span};
use ulocks_benches::run::crew::together;
use ulocks_benches::run::pinning::{self, Pin};
use ulocks_benches::run::threads::keep_a_thread_asleep;
use ulocks_benches::statistics::random::Rng;
use ulocks_benches::subjects::locks::{Entry, Form, Locks, Mutex, Scope};
use ulocks_benches::workloads::handoff;
use ulocks_testkit as _;

/// Locks that run if none are named, and reader-writer locks.
const LOCKS: [&str; 7] = ["std", "parking_lot", "throughput", "unfair", "calock", "fair", "byte"];
const RW_LOCKS: [&str; 4] = ["std-rw", "parking_lot-rw", "psrw", "psrw-central"];

/// What a benchmark is judged and drawn in, beside warm-up and samples.
const OVERHEAD: Duration = Duration::from_millis(500);
const WARM_UP: Duration = Duration::from_millis(100);
/// Samples of a shorter or a longer time say nothing, or no more.
const SAMPLING: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];

/// What all threads do with one lock.
#[derive(Clone, Copy)]
struct Load {
    /// What is worked inside and outside; none at all, or both.
    work: Option<(Span, Span)>,
    /// Percentage of shared acquisitions: 0, 100, or with work anything between.
    reads: u8,
}

impl Load {
    fn new(hold_us: u64, think_us: u64, reads: u8) -> Result<Self> {
        let rate = busy_work::calibrate();
        let span = |us| (us > 0).then(|| Span::new("a time", 1000 * us, rate)).transpose();
        Ok(Self { work: span(hold_us)?.zip(span(think_us)?), reads })
    }

    /// So many operations.
    fn run(self, lock: &dyn Mutex, operations: u64, seed: u64) {
        let Some((inside, outside)) = self.work else {
            pairs(lock, operations, self.reads == 100);
            return;
        };
        let mut rng = Rng::new(seed + 1);
        for _ in 0..operations {
            let (inside, outside) = (inside.draw(&mut rng), outside.draw(&mut rng));
            busy_work::burn(black_box(outside));
            let mut work = || busy_work::burn(black_box(inside));
            match rng.below(100) < u64::from(self.reads) {
                true => lock.with_shared(&mut work),
                false => lock.with(&mut work),
            }
        }
    }

    /// The time that `threads` threads take for so many operations, each with its share.
    fn time(self, lock: &dyn Mutex, threads: usize, operations: u64, cpus: &[usize]) -> Result<Duration> {
        let share = operations.div_ceil(threads as u64);
        let run = |index| {
            let start = Instant::now();
            self.run(lock, share, index as u64);
            Ok((start, Instant::now()))
        };
        let (ends, ()) = together(threads, cpus, &run, || ())?;
        let (start, end) = (ends.iter().map(|end| end.0).min(), ends.iter().map(|end| end.1).max());
        let took = end.zip(start).map_or(Duration::ZERO, |(end, start)| end - start);
        Ok(took.mul_f64(operations as f64 / (share * threads as u64) as f64))
    }
}

/// The time of so many acquisitions and releases.
fn pairs(lock: &dyn Mutex, times: u64, reads: bool) -> Duration {
    const BATCH: u64 = 1 << 20;
    let rest = lock.pairs((times % BATCH) as u32, reads);
    (0..times / BATCH).fold(rest, |sum, _| sum + lock.pairs(BATCH as u32, reads))
}

/// What the groups need.
struct Bench {
    options: Options,
    cpus: Vec<usize>,
    threads: Vec<usize>,
}

impl Bench {
    /// The subjects of a group: those named, or these.
    fn subjects(&self, usual: &[&'static str], wanted: impl Fn(&Entry) -> bool) -> Vec<&'static Entry> {
        match &self.options.locks {
            Some(names) => {
                names.0.iter().filter_map(|name| Entry::find(name).ok()).filter(|of| wanted(of)).collect()
            }
            None => Entry::all().iter().filter(|entry| usual.contains(&entry.name)).collect(),
        }
    }

    fn locks(&self) -> Vec<&'static Entry> {
        self.subjects(&LOCKS, |entry| entry.excludes && !entry.shared_mode)
    }

    fn rw_locks(&self) -> Vec<&'static Entry> {
        self.subjects(&RW_LOCKS, |entry| entry.shared_mode)
    }

    /// A benchmark for each lock and number of threads, drawn over the threads.
    fn across(
        &self,
        mut group: BenchmarkGroup<'_, WallTime>,
        locks: &[&'static Entry],
        len: usize,
        time: impl Fn(&Locks, usize, u64) -> Result<Duration>,
    ) -> Result<()> {
        // A turn is passed between two: an odd thread would do nothing.
        let counts = self.threads.iter().filter(|&&threads| threads % 2 == 0 || len == 1);
        for (entry, &threads) in locks.iter().flat_map(|entry| counts.clone().map(move |n| (entry, n))) {
            let row = Locks::new(entry, Form::plain(Scope::Threads), len * threads.div_ceil(2))?;
            group.bench_with_input(BenchmarkId::new(entry.name, threads), &threads, |bench, &threads| {
                bench.iter_custom(|n| time(&row, threads, n).unwrap_or_else(|error| options::refuse(&error)));
            });
        }
        group.finish();
        Ok(())
    }

    fn no_contention(&self, criterion: &mut Criterion) -> Result<()> {
        let mut group = criterion.benchmark_group("no_contention");
        for entry in self.subjects(&LOCKS, |_| true) {
            let row = Locks::new(entry, Form::plain(Scope::Threads), 1)?;
            let lock = row.get(0);
            group.bench_function(BenchmarkId::new("lock", entry.name), |bench| {
                bench.iter_custom(|times| pairs(lock, times, false));
            });
            group.bench_function(BenchmarkId::new("try_lock", entry.name), |bench| {
                bench.iter(|| black_box(lock).try_with(&mut || ()));
            });
        }
        group.finish();
        Ok(())
    }

    /// The groups that were asked for.
    fn run(&self, criterion: &mut Criterion) -> Result<()> {
        if self.options.runs("no_contention") {
            self.no_contention(criterion)?;
        }
        let (locks, rw_locks) = (self.locks(), self.rw_locks());
        for (name, locks, (hold_us, think_us, reads)) in [
            ("contended/nothing inside", &locks, (0, 0, 0)),
            ("contended/3 us of 10 inside", &locks, (3, 7, 0)),
            ("readers/100 % reads", &rw_locks, (0, 0, 100)),
            ("readers/80 % reads, 3 us of 10 inside", &rw_locks, (3, 7, 80)),
        ] {
            if options::group_of(name).is_some_and(|group| self.options.runs(group)) {
                let load = Load::new(hold_us, think_us, reads)?;
                let time = |row: &Locks, threads: usize, n| load.time(row.get(0), threads, n, &self.cpus);
                self.across(criterion.benchmark_group(name), locks, 1, time)?;
            }
        }
        if self.options.runs("handoff") {
            let time = |row: &Locks, threads: usize, n| handoff::measure(row, &self.cpus, threads / 2, n);
            self.across(criterion.benchmark_group("handoff"), &locks, handoff::LOCKS, time)?;
        }
        Ok(())
    }

    /// How many benchmarks there are, all groups together.
    fn count(&self) -> usize {
        let (locks, rw, points) = (self.locks().len(), self.rw_locks().len(), self.threads.len());
        2 * locks + (3 * locks + 2 * rw) * points
    }
}

fn main() {
    let options = options::for_criterion(rows::ALL);
    keep_a_thread_asleep();
    let wish = options.wish();
    let cpus = pinning::order(Pin::Scatter).unwrap_or_else(|error| options::refuse(&error));
    let mut threads: Vec<usize> = rows::thread_counts(&wish).into_iter().map(|n| n as usize).collect();
    threads.retain(|&n| options.threads.is_some() || n <= 2 * wish.cpus as usize);
    let share = Duration::from_secs(if options.quick { CRITERION_S.1 } else { CRITERION_S.0 });
    let bench = Bench { options, cpus, threads };
    let each = share / bench.count().max(1) as u32;
    let sampling = if wish.full { SAMPLING[1] } else { each.saturating_sub(WARM_UP + OVERHEAD) };
    let mut criterion = Criterion::default()
        .sample_size(10)
        .nresamples(10_000)
        .warm_up_time(WARM_UP)
        .measurement_time(sampling.clamp(SAMPLING[0], SAMPLING[1]))
        .configure_from_args();
    bench.run(&mut criterion).unwrap_or_else(|error| options::refuse(&error));
    criterion.final_summary();
}
