//! `sembench` and `semscale`: semaphore arrays in the seed's program of 2010, and in other company.
//!
//! One round is every subject in every run that it can take part in, once, in random order
//! ([`harness`]). What is made of them is a [`Row`] each: a rate, its ratios to others of the same
//! round, and what it cost.

mod row;
pub mod sembench;
pub mod semscale;

pub use row::Row;

use crate::programs::harness;
use crate::subjects::locks;
use crate::subjects::semaphores::Entry;
use crate::workloads::cell::{Cell, Probe, Trial};
use crate::workloads::semaphores::Run;

/// What a run leaves behind.
pub type Record = harness::Record<Row>;

/// Some semaphores in a run: what will be a row.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    entry: &'static Entry,
    run: Run,
}

impl Subject {
    /// All that can take part in these runs.
    fn of(runs: &[Run]) -> Vec<Self> {
        let in_run = |&run: &Run| {
            let entries = Entry::all().iter().filter(move |entry| run.admits(entry));
            entries.map(move |entry| Self { entry, run })
        };
        runs.iter().flat_map(in_run).collect()
    }
}

impl harness::Subject for Subject {
    type Row = Row;

    /// As `--only` knows it: `256/200/fifo/sysv`, `own/4+poster/sem_t`.
    fn name(&self) -> String {
        format!("{}/{}", self.run.name(), self.entry.name)
    }

    fn is_about(&self, lock: &locks::Entry) -> bool {
        lock.name == self.entry.name
    }

    fn row(&self, trials: &[Trial]) -> Option<Row> {
        Row::new(self, trials)
    }
}

/// Each subject in its run, and beside it those that its ratios are taken to.
fn trials(subjects: &[Subject]) -> (Vec<Probe>, Vec<Probe>) {
    let mut probes = Vec::new();
    for Subject { entry, run } in subjects {
        let peers = row::peers(*run).iter().map(|peer| (*run, *peer));
        let fifo = row::fifo(*run).map(|fifo| (fifo, entry.name));
        for (run, name) in [(*run, entry.name)].into_iter().chain(peers).chain(fifo) {
            Probe::add(&mut probes, Cell::Sem(run), name);
        }
    }
    (probes, Vec::new())
}

#[cfg(test)]
mod tests;
