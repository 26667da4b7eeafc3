//! The time of one operation, with all threads together, at a few points of the load the scaling
//! bench covers.
//!
//! Threads share a number of operations and stop when it is reached; the count is what the lock
//! protects. This is what criterion can compare from day to day; how fair a lock was, how long
//! a thread waited and what it cost in CPU time is in the report of `scaling`.

mod common;

use criterion::Criterion;
use crossbeam_utils::CachePadded;
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};
use ulocks_benches::programs::options::{self, CriterionOptions};
use ulocks_benches::run::busy_work::{self, Span};
use ulocks_benches::run::pinning::{self, Pin};
use ulocks_benches::statistics::random::Rng;
use ulocks_benches::subjects::locks::{self, Entry, Lock, LockArray, Scope, Visitor};

/// A point: threads, hold and non-hold time in microseconds.
type Point = (usize, u64, u64);

const POINTS: [Point; 6] = [(2, 0, 0), (2, 3, 7), (2, 10, 0), (4, 0, 0), (4, 3, 7), (4, 10, 0)];
const QUICK: [Point; 2] = [(4, 0, 0), (4, 3, 7)];

struct Contended<'a> {
    criterion: &'a mut Criterion,
    points: &'a [Point],
    cpus: &'a [usize],
    iterations_per_us: f64,
}

impl Visitor for Contended<'_> {
    type Output = anyhow::Result<()>;

    fn visit<L: Lock>(self, entry: &'static Entry) -> Self::Output {
        for &(threads, hold, non_hold) in self.points {
            let row = LockArray::<L>::new(Scope::Threads, 1)?;
            let load = Load {
                threads,
                hold: Span::new("a hold time", hold * 1000, self.iterations_per_us)?,
                non_hold: Span::new("a non-hold time", non_hold * 1000, self.iterations_per_us)?,
                cpus: self.cpus,
            };
            let name = format!("contended/{hold}us-{non_hold}us/{threads}/{}", entry.name);
            self.criterion
                .bench_function(&name, |b| b.iter_custom(|operations| load.measure(row.get(0), operations)));
        }
        Ok(())
    }
}

struct Load<'a> {
    threads: usize,
    hold: Span,
    non_hold: Span,
    cpus: &'a [usize],
}

impl Load<'_> {
    /// The time all threads together take for `operations`.
    fn measure<L: Lock>(&self, lock: &L, operations: u64) -> Duration {
        let done = CachePadded::new(AtomicU64::new(0));
        let gate = Barrier::new(self.threads);
        thread::scope(|s| {
            let workers: Vec<_> = (0..self.threads)
                .map(|index| {
                    let (gate, done) = (&gate, &*done);
                    s.spawn(move || {
                        let cpu = self.cpus[index % self.cpus.len()];
                        pinning::bind(cpu).unwrap_or_else(|error| options::refuse(&error));
                        gate.wait();
                        let start = Instant::now();
                        self.work(lock, done, operations, Rng::new(index as u64));
                        (start, Instant::now())
                    })
                })
                .collect();
            let times = workers.into_iter().map(|worker| worker.join().expect("a lock that can be acquired"));
            let (starts, ends): (Vec<_>, Vec<_>) = times.unzip();
            // From the first to start until the first to see the number reached; the others may
            // still be on their way.
            let (Some(start), Some(end)) = (starts.into_iter().min(), ends.into_iter().min()) else {
                unreachable!()
            };
            end - start
        })
    }

    fn work<L: Lock>(&self, lock: &L, done: &AtomicU64, operations: u64, mut rng: Rng) {
        let idle = self.hold.is_zero() && self.non_hold.is_zero();
        loop {
            let (inside, outside) = match idle {
                true => (0, 0),
                false => (self.hold.draw(&mut rng), self.non_hold.draw(&mut rng)),
            };
            busy_work::burn(black_box(outside));
            let all = lock.with(|| {
                let all = done.load(Relaxed);
                busy_work::burn(black_box(inside));
                if all < operations {
                    done.store(all + 1, Relaxed);
                }
                all
            });
            if all >= operations {
                return;
            }
        }
    }
}

fn main() {
    // Without exclusion the count would be wrong.
    let locks = |options: &CriterionOptions| options.locks().into_iter().filter(|entry| entry.excludes);
    let points = |quick: bool| if quick { &QUICK[..] } else { &POINTS };
    let (mut criterion, options) =
        common::start("contended", |options| locks(options).count() * points(options.quick).len());
    let cpus = pinning::order(Pin::Scatter).unwrap_or_else(|error| options::refuse(&error));
    let iterations_per_us = busy_work::calibrate();
    for entry in locks(&options) {
        let points = points(options.quick);
        let bench = Contended { criterion: &mut criterion, points, cpus: &cpus, iterations_per_us };
        let done = locks::visit(entry, Scope::Threads, bench).and_then(|done| done);
        done.unwrap_or_else(|error| options::refuse(&error));
    }
    criterion.final_summary();
}
