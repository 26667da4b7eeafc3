//! Reader-writer locks: each class uncontended, several readers, and a mixed load.
//!
//! What criterion can compare from day to day; delays, fairness and the tails are the business of
//! `psrw`. In the mixed load the kind of each acquisition is drawn, and 3 us are worked inside and
//! 7 us outside.

mod common;

use criterion::Criterion;
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};
use ulocks_benches::programs::options::{self, CriterionOptions};
use ulocks_benches::run::busy_work::{self, Span};
use ulocks_benches::run::pinning::{self, Pin};
use ulocks_benches::statistics::random::Rng;
use ulocks_benches::subjects::rwlocks::{self, Bulk, Class, Entry, Nested, Placed, RwLock, Urgent, Visitor};

/// Threads of the loads with several.
const THREADS: [usize; 2] = [2, 4];
/// Percentages of reads in the mixed load.
const READS: [u64; 2] = [20, 80];

struct Bench<'a> {
    criterion: &'a mut Criterion,
    cpus: &'a [usize],
    iterations_per_us: f64,
    quick: bool,
}

impl Bench<'_> {
    fn class<L: RwLock, C: Class>(&mut self, lock: &L, class: &str, name: &str) {
        self.criterion.bench_function(&format!("readers/uncontended/{class}/{name}"), |b| {
            b.iter(|| drop(black_box(lock).read::<C>()));
        });
    }

    /// The time `threads` take for so many operations, each with its share.
    fn several<L: RwLock>(
        &mut self,
        lock: &L,
        name: &str,
        threads: usize,
        work: impl Fn(&L, u64, u64) + Sync,
    ) {
        let cpus = self.cpus;
        self.criterion.bench_function(name, |b| {
            b.iter_custom(|operations| {
                let gate = Barrier::new(threads);
                let share = operations.div_ceil(threads as u64);
                let ends = thread::scope(|s| {
                    let workers: Vec<_> = (0..threads)
                        .map(|index| {
                            let (gate, work) = (&gate, &work);
                            s.spawn(move || {
                                pinning::bind(cpus[index % cpus.len()])
                                    .unwrap_or_else(|e| options::refuse(&e));
                                gate.wait();
                                let start = Instant::now();
                                work(lock, index as u64, share);
                                (start, Instant::now())
                            })
                        })
                        .collect();
                    let ends =
                        workers.into_iter().map(|worker| worker.join().expect("a lock that can be had"));
                    ends.collect::<Vec<_>>()
                });
                let (start, end) = (ends.iter().map(|e| e.0).min(), ends.iter().map(|e| e.1).max());
                let took = end.zip(start).map_or(Duration::ZERO, |(end, start)| end - start);
                took.mul_f64(operations as f64 / (share * threads as u64) as f64)
            });
        });
    }
}

impl Visitor for Bench<'_> {
    type Output = anyhow::Result<()>;

    fn visit<L: RwLock>(mut self, entry: &'static Entry) -> Self::Output {
        let placed = Placed::<L>::new()?;
        let (lock, name) = (placed.lock(), entry.name);
        self.criterion.bench_function(&format!("readers/uncontended/write/{name}"), |b| {
            b.iter(|| drop(black_box(lock).write()));
        });
        self.class::<L, Bulk>(lock, "bulk", name);
        if entry.urgent {
            self.class::<L, Urgent>(lock, "urgent", name);
        }
        if entry.nested {
            self.class::<L, Nested>(lock, "nested", name);
        }
        let threads = if self.quick { &THREADS[..1] } else { &THREADS };
        for &threads in threads {
            let id = format!("readers/several/{threads}/{name}");
            self.several(lock, &id, threads, |lock, _, share| {
                for _ in 0..share {
                    drop(lock.read::<Bulk>());
                }
            });
        }
        let span = |what, ns| Span::new(what, ns, self.iterations_per_us);
        let (hold, non_hold) = (span("a hold time", 3_000)?, span("a non-hold time", 7_000)?);
        for reads in READS {
            let id = format!("readers/mixed/{reads}%/4/{name}");
            self.several(lock, &id, 4, |lock, index, share| {
                let mut rng = Rng::new(index);
                for _ in 0..share {
                    let (inside, outside) = (hold.draw(&mut rng), non_hold.draw(&mut rng));
                    busy_work::burn(black_box(outside));
                    if rng.below(100) < reads {
                        let _held = lock.read::<Bulk>();
                        busy_work::burn(black_box(inside));
                    } else {
                        let _held = lock.write();
                        busy_work::burn(black_box(inside));
                    }
                }
            });
        }
        Ok(())
    }
}

fn main() {
    // Named locks are those of the other registry; of this one they are reader-writer locks by the
    // same names.
    let locks = |options: &CriterionOptions| {
        let wanted = |entry: &&Entry| options.asked_for(entry.name) && !entry.timed_mask;
        Entry::all().iter().filter(wanted).collect::<Vec<_>>()
    };
    let (mut criterion, options) = common::start("readers", |options| {
        let threads = if options.quick { 1 } else { THREADS.len() };
        let of = |entry: &&Entry| {
            2 + usize::from(entry.urgent) + usize::from(entry.nested) + threads + READS.len()
        };
        locks(options).iter().map(of).sum()
    });
    let cpus = pinning::order(Pin::Scatter).unwrap_or_else(|error| options::refuse(&error));
    let iterations_per_us = busy_work::calibrate();
    for entry in locks(&options) {
        let quick = options.quick;
        let bench = Bench { criterion: &mut criterion, cpus: &cpus, iterations_per_us, quick };
        let done = rwlocks::visit(entry, bench);
        done.unwrap_or_else(|error| options::refuse(&error));
    }
    criterion.final_summary();
}
