//! Sets of semaphore operations that no other thread stands in the way of: one operation and its
//! opposite, a wait for zero, and sets of 2, 8, 64 and 500 taken and given back; the kernel's,
//! ours, and where there is one operation `sem_t`.
//!
//! What criterion can compare from day to day; sleepers are the business of `sembench` and
//! `semscale`.

mod common;

use criterion::{Criterion, Throughput};
use std::hint::black_box;
use ulocks_benches::programs::options;
use ulocks_benches::subjects::semaphores::arrays::{Array, Kernel, Ours, Posix, Singles};
use ulocks_benches::subjects::semaphores::{KERNEL, POSIX, SEMARRAY};
use ulocks_semarray::Fairness;

/// Operations of a set.
const SETS: [usize; 4] = [2, 8, 64, 500];

fn single(criterion: &mut Criterion, name: &str, semaphores: &impl Singles) {
    criterion.bench_function(&format!("sets/1/{name}"), |b| {
        let semaphores = black_box(semaphores);
        b.iter(|| {
            semaphores.down(0);
            semaphores.up(0);
        });
    });
}

fn array<A: Array>(criterion: &mut Criterion, name: &str, array: &A) {
    let array = black_box(array);
    // The last one is zero.
    let zero = [A::wait_zero(SETS[SETS.len() - 1])];
    criterion.bench_function(&format!("sets/wait_zero/{name}"), |b| b.iter(|| array.apply(black_box(&zero))));
    let mut group = criterion.benchmark_group("sets");
    for ops in SETS {
        let take: Vec<A::Op> = (0..ops).map(|index| A::sub(index, 1)).collect();
        let give: Vec<A::Op> = (0..ops).map(|index| A::add(index, 1)).collect();
        group.throughput(Throughput::Elements(2 * ops as u64));
        group.bench_function(format!("{ops}/{name}"), |b| {
            b.iter(|| {
                array.apply(black_box(&take));
                array.apply(black_box(&give));
            });
        });
    }
    group.finish();
}

fn run(criterion: &mut Criterion, asked_for: impl Fn(&str) -> bool) -> anyhow::Result<()> {
    let mut values = vec![1; SETS[SETS.len() - 1]];
    values.push(0);
    if asked_for(POSIX) {
        single(criterion, POSIX, &Posix::new(&values)?);
    }
    if asked_for(KERNEL) {
        let kernel = Kernel::new(&values)?;
        single(criterion, KERNEL, &kernel);
        array(criterion, KERNEL, &kernel);
    }
    if asked_for(SEMARRAY) {
        let ours = Ours::new(&values, Fairness::Barging)?;
        single(criterion, SEMARRAY, &ours);
        array(criterion, SEMARRAY, &ours);
    }
    Ok(())
}

fn main() {
    let (mut criterion, options) = common::start("sets", |options| {
        let arrays = [KERNEL, SEMARRAY].into_iter().filter(|name| options.asked_for(name)).count();
        usize::from(options.asked_for(POSIX)) + arrays * (2 + SETS.len())
    });
    run(&mut criterion, |name| options.asked_for(name)).unwrap_or_else(|error| options::refuse(&error));
    criterion.final_summary();
}
