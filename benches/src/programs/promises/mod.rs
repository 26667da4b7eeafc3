//! `promises`: what the locks of the family are said to do, against what they do on this machine.
//!
//! One row a promise ([`list`]): what, the measured ratio with its interval, the bound, and a
//! verdict ([`judge`]). One round is every trial that the promises need once ([`harness`]). A
//! promise that could not be measured says why. A promise that falls short is a result, not a
//! failure.

pub mod judge;
pub mod list;
pub mod promise;
pub(super) mod text;

use crate::programs::harness::plan::Effort;
use crate::programs::harness::{self, Cli, Program, Subject};
use crate::programs::shares;
use crate::report::Mode;
use crate::subjects::locks;
use crate::workloads::cell::{Probe, Trial};
use judge::Row;
use promise::Promise;

/// What a run leaves behind: the promises, what became of them, and the trials.
pub type Record = harness::Record<Row>;

impl Subject for Promise {
    type Row = Row;

    fn name(&self) -> String {
        self.name.clone()
    }

    fn is_about(&self, lock: &locks::Entry) -> bool {
        lock.lock == self.lock
    }

    fn row(&self, trials: &[Trial]) -> Option<Row> {
        Some(judge::judge(self, trials))
    }
}

/// The program.
#[derive(Debug)]
pub enum Promises {}

impl Program for Promises {
    const NAME: &'static str = "promises";
    const SCHEMA: &'static str = "ulocks-promises/1";
    type Cli = Cli;
    type Subject = Promise;

    fn effort(mode: Mode) -> Effort {
        match mode {
            Mode::Full => Effort::new(shares::full(Self::NAME), (3, 9), (50, 300), Some(200)),
            Mode::Quick => Effort::new(shares::quick(Self::NAME), (3, 5), (30, 100), None),
            Mode::Smoke => Effort::new(2, (1, 1), (5, 5), None),
        }
    }

    /// The few of a quick look, unless part of a name is given.
    fn subjects(cli: &Cli, mode: Mode, cpus: u32) -> Vec<Promise> {
        let asked = cli.as_ref().only.is_some();
        let usual = |promise: &Promise| match mode {
            Mode::Full => true,
            Mode::Quick | Mode::Smoke => promise.quick,
        };
        list::all(cpus).into_iter().filter(|promise| asked || usual(promise)).collect()
    }

    /// Each lock in each cell once; uncontended pairs of all locks together.
    fn trials(promises: &[Promise]) -> (Vec<Probe>, Vec<Probe>) {
        let mut probes: Vec<Probe> = Vec::new();
        let can = |promise: &&Promise| promise.obstacle.is_none();
        for subject in promises.iter().filter(can).flat_map(|promise| promise.claim.subjects()) {
            let lock = subject.lock.to_owned();
            let cell = subject.cell;
            match probes.iter_mut().find(|probe| probe.cell == cell && cell.is_pairs()) {
                Some(pairs) if pairs.locks.contains(&lock) => {}
                Some(pairs) => pairs.locks.push(lock),
                None => Probe::add(&mut probes, cell, &lock),
            }
        }
        (probes, Vec::new())
    }

    fn tables(record: &Record) -> String {
        text::tables(record)
    }
}

#[cfg(test)]
mod tests;
