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

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion};
use std::hint::black_box;
use std::time::{Duration, Instant};
use ulocks_benches::engine::options::{self, GROUPS, Options};
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
const RW_LOCKS: [&str; 4] = ["std-rw", "parking_lot-rw", "psrw", "psrw-distributed"];

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
    fn new(hold_us: u64, think_us: u64, reads: u8) -> anyhow::Result<Self> {
        let rate = busy_work::calibrate();
        let span = |us| Span::new("a time", 1000 * us, rate);
        let work = if hold_us + think_us == 0 { None } else { Some((span(hold_us)?, span(think_us)?)) };
        Ok(Self { work, reads })
    }

    /// So many operations.
    fn run(self, lock: &dyn Mutex, operations: u64, seed: u64) {
        let Some((inside, outside)) = self.work else {
            let mut left = operations;
            while left > 0 {
                let times = left.min(1 << 20) as u32;
                lock.pairs(times, self.reads == 100);
                left -= u64::from(times);
            }
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
    fn time(self, lock: &dyn Mutex, threads: usize, operations: u64, cpus: &[usize]) -> Duration {
        let share = operations.div_ceil(threads as u64);
        let run = |index| {
            let start = Instant::now();
            self.run(lock, share, index as u64);
            Ok((start, Instant::now()))
        };
        let (ends, ()) = together(threads, cpus, &run, || ()).unwrap_or_else(|error| options::refuse(&error));
        let (start, end) = (ends.iter().map(|end| end.0).min(), ends.iter().map(|end| end.1).max());
        let took = end.zip(start).map_or(Duration::ZERO, |(end, start)| end - start);
        took.mul_f64(operations as f64 / (share * threads as u64) as f64)
    }
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
        let is_in = |entry: &&Entry| match &self.options.locks {
            Some(names) => names.0.iter().any(|name| name == entry.name) && wanted(entry),
            None => usual.contains(&entry.name),
        };
        Entry::all().iter().filter(is_in).collect()
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
        counts: &[usize],
        len: usize,
        time: impl Fn(&Locks, usize, u64) -> Duration,
    ) {
        for entry in locks {
            for &threads in counts {
                let row = Locks::new(entry, Form::plain(Scope::Threads), len * threads.div_ceil(2))
                    .unwrap_or_else(|error| options::refuse(&error));
                group.bench_with_input(BenchmarkId::new(entry.name, threads), &threads, |bench, &threads| {
                    bench.iter_custom(|operations| time(&row, threads, operations));
                });
            }
        }
        group.finish();
    }

    fn no_contention(&self, criterion: &mut Criterion) {
        let mut group = criterion.benchmark_group("no_contention");
        for entry in self.subjects(&LOCKS, |_| true) {
            let row = Locks::new(entry, Form::plain(Scope::Threads), 1)
                .unwrap_or_else(|error| options::refuse(&error));
            let lock = row.get(0);
            group.bench_function(BenchmarkId::new("lock", entry.name), |bench| {
                bench.iter_custom(|times| lock.pairs(times.min(1 << 30) as u32, false));
            });
            group.bench_function(BenchmarkId::new("try_lock", entry.name), |bench| {
                bench.iter(|| black_box(lock).try_with(&mut || ()));
            });
        }
        group.finish();
    }

    fn load(&self, criterion: &mut Criterion, name: &str, locks: &[&'static Entry], load: Load) {
        let time = |row: &Locks, threads: usize, n| load.time(row.get(0), threads, n, &self.cpus);
        self.across(criterion.benchmark_group(name), locks, &self.threads, 1, time);
    }

    fn handoff(&self, criterion: &mut Criterion) {
        let counts: Vec<usize> = self.threads.iter().copied().filter(|&n| n > 1).collect();
        let time = |row: &Locks, threads: usize, n| {
            handoff::measure(row, &self.cpus, threads / 2, n).unwrap_or_else(|error| options::refuse(&error))
        };
        self.across(criterion.benchmark_group("handoff"), &self.locks(), &counts, handoff::LOCKS, time);
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
    if options.threads.is_none() {
        threads.retain(|&n| n <= 2 * wish.cpus as usize);
    }
    let full = options.full;
    let share = Duration::from_secs(if options.quick { CRITERION_S.1 } else { CRITERION_S.0 });
    let bench = Bench { options, cpus, threads };
    let each = share / bench.count().max(1) as u32;
    let sampling = if full { SAMPLING[1] } else { each.saturating_sub(WARM_UP + OVERHEAD) };
    let mut criterion = Criterion::default()
        .sample_size(10)
        .nresamples(10_000)
        .warm_up_time(WARM_UP)
        .measurement_time(sampling.clamp(SAMPLING[0], SAMPLING[1]))
        .configure_from_args();
    let load =
        |hold, think, reads| Load::new(hold, think, reads).unwrap_or_else(|error| options::refuse(&error));
    for group in GROUPS.into_iter().filter(|group| bench.options.runs(group)) {
        match group {
            "no_contention" => bench.no_contention(&mut criterion),
            "contended" => {
                bench.load(&mut criterion, "contended/nothing inside", &bench.locks(), load(0, 0, 0));
                bench.load(&mut criterion, "contended/3 us of 10 inside", &bench.locks(), load(3, 7, 0));
            }
            "readers" => {
                bench.load(&mut criterion, "readers/100 % reads", &bench.rw_locks(), load(0, 0, 100));
                bench.load(
                    &mut criterion,
                    "readers/80 % reads, 3 us of 10 inside",
                    &bench.rw_locks(),
                    load(3, 7, 80),
                );
            }
            "handoff" => bench.handoff(&mut criterion),
            other => unreachable!("{other} is a group without a function"),
        }
    }
    criterion.final_summary();
}
