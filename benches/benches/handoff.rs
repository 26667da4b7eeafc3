//! Locks passed to and fro between two threads: see `ulocks_benches::workloads::handoff`.

mod common;

use criterion::Criterion;
use ulocks_benches::programs::options::{self, CriterionOptions};
use ulocks_benches::run::pinning::{self, Pin};
use ulocks_benches::subjects::locks::{self, Entry, Lock, LockArray, Scope, Visitor};
use ulocks_benches::workloads::handoff::{LOCKS, measure};

struct PingPong<'a> {
    criterion: &'a mut Criterion,
    cpus: &'a [usize],
}

impl Visitor for PingPong<'_> {
    type Output = anyhow::Result<()>;

    fn visit<L: Lock>(self, entry: &'static Entry) -> Self::Output {
        let row = LockArray::<L>::new(Scope::Threads, LOCKS)?;
        let name = format!("handoff/{}", entry.name);
        self.criterion.bench_function(&name, |b| {
            b.iter_custom(|round_trips| {
                measure(&row, self.cpus, round_trips).unwrap_or_else(|error| options::refuse(&error))
            });
        });
        Ok(())
    }
}

fn main() {
    // Without exclusion no thread waits for another.
    let locks = |options: &CriterionOptions| options.locks().into_iter().filter(|entry| entry.excludes);
    let (mut criterion, options) = common::start("handoff", |options| locks(options).count());
    let cpus = pinning::order(Pin::Scatter).unwrap_or_else(|error| options::refuse(&error));
    for entry in locks(&options) {
        let bench = PingPong { criterion: &mut criterion, cpus: &cpus };
        let done = locks::visit(entry, Scope::Threads, bench).and_then(|done| done);
        done.unwrap_or_else(|error| options::refuse(&error));
    }
    criterion.final_summary();
}
