//! A lock that no other thread wants: lock and unlock, try and unlock. The length of the code path,
//! nothing else.
//!
//! One other thread is alive, asleep: without it glibc leaves out the atomic instructions. `none`
//! is the cost of the loop.

mod common;

use criterion::Criterion;
use std::hint::black_box;
use ulocks_benches::programs::options;
use ulocks_benches::subjects::locks::{self, Entry, Lock, LockArray, Scope, Visitor};

struct Pair<'a>(&'a mut Criterion);

impl Visitor for Pair<'_> {
    type Output = anyhow::Result<()>;

    fn visit<L: Lock>(self, entry: &'static Entry) -> Self::Output {
        let row = LockArray::<L>::new(Scope::Threads, 1)?;
        let lock = black_box(row.get(0));
        self.0.bench_function(&format!("lock/{}", entry.name), |b| b.iter(|| lock.with(|| ())));
        self.0.bench_function(&format!("try_lock/{}", entry.name), |b| b.iter(|| lock.try_with(|| ())));
        Ok(())
    }
}

fn main() {
    let (mut criterion, options) = common::start("no_contention", |options| 2 * options.locks().len());
    for entry in options.locks() {
        let done = locks::visit(entry, Scope::Threads, Pair(&mut criterion)).and_then(|done| done);
        done.unwrap_or_else(|error| options::refuse(&error));
    }
    criterion.final_summary();
}
