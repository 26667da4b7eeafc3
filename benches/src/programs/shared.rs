//! `shared`: locks between processes, against their peers, and what the death of a holder costs.
//!
//! The rows are promises, judged as those of [`promises`](super::promises). Contenders are forked
//! processes. Uncontended pairs of all locks run in one process, in turn. The robust locks of
//! `ulocks-shm` lie in regions, which the processes inherit.

use crate::programs::harness::plan::Effort;
use crate::programs::harness::{Cli, Program};
use crate::programs::promises::promise::{Bound, Promise, Subject, at_most, versus, workload};
use crate::programs::promises::{Promises, Record, text};
use crate::programs::shares;
use crate::report::Mode;
use crate::workloads::cell::{Cell, Probe};
use crate::workloads::figure::Figure;
use crate::workloads::recovery::Recovery;
use crate::workloads::trial::Workers;

/// glibc's mutex, process-shared.
const PLAIN: &str = "pthread";
/// The same, robust.
const ROBUST: &str = "pthread-robust";
/// The robust locks of the family.
const OURS: [&str; 3] = ["robust", "robust-fair", "robust-rw"];
/// System V's semaphore and set, with SEM_UNDO.
const UNDO: [&str; 2] = ["sysv-undo", "semop-undo"];

/// Contenders.
const PROCESSES: [u32; 2] = [2, 32];
const WORKLOADS_US: [(u64, u64); 2] = [(1, 9), (10, 0)];

/// Processes that sleep for the lock when its holder is killed.
const SLEEPERS: u32 = 5;
/// The median time until one of them has it.
const RECOVERY_NS: f64 = 2e6;
/// The longest such time. A waiter that no event wakes looks again after 200 ms.
const SLOWEST_RECOVERY_NS: f64 = 300e6;

/// Every row.
pub fn all() -> Vec<Promise> {
    [pairs(), loops(), recoveries()].into_iter().flatten().collect()
}

/// Lock and unlock with no other process about.
fn pairs() -> Vec<Promise> {
    let row = |lock, mine, other, bound, what: &str| {
        let of = |lock| Subject { lock, cell: Cell::ProcessPairs };
        let what = format!("uncontended {what}: time by that of {other}");
        let name = format!("uncontended/{other}");
        let row = versus(of(mine), of(other), Figure::PairNs, bound, &name, what);
        Promise { lock, ..row }
    };
    let most = Bound::AtMost;
    vec![
        row("unfair", "unfair", "unfair-private", most(1.1), "pair, process-shared"),
        row("unfair", "unfair", PLAIN, Bound::Shown, "pair, process-shared"),
        row("robust", "robust", ROBUST, most(1.0), "pair"),
        row("robust-fair", "robust-fair", ROBUST, most(1.1), "pair"),
        row("robust-rw", "robust-rw", ROBUST, Bound::Shown, "pair of a writer"),
        row("robust-rw", "robust-rw-read", ROBUST, Bound::Shown, "pair of a reader"),
        row("robust-semaphore", "robust-set", UNDO[1], most(0.1), "set of two with undo, and its return"),
        row("robust-semaphore", "robust-semaphore", UNDO[0], Bound::Shown, "permit, and its return"),
        row("robust-semaphore", "robust-semaphore", "sem_t", Bound::Shown, "permit, and its return"),
    ]
}

/// Processes that contend.
fn loops() -> Vec<Promise> {
    let rows = [
        ("unfair", PLAIN, Bound::Shown),
        ("robust", ROBUST, Bound::AtLeast(1.0)),
        ("robust-fair", ROBUST, Bound::Shown),
        ("robust-rw", ROBUST, Bound::Shown),
        ("robust-semaphore", UNDO[0], Bound::Shown),
        ("robust-semaphore", "sem_t", Bound::Shown),
    ];
    let mut list = Vec::new();
    for (lock, peer, bound) in rows {
        for n in PROCESSES {
            for us in WORKLOADS_US {
                let (hold, non_hold) = us;
                let workers = Workers::Processes(n);
                let cell = Cell::Loop { workload: workload(us), workers, second: false };
                let of = |lock| Subject { lock, cell };
                let what = format!("({hold}, {non_hold}) us, {n} processes: rate by that of {peer}");
                let name = format!("({hold},{non_hold})x{n}/{peer}");
                list.push(versus(of(lock), of(peer), Figure::PerSecond, bound, &name, what));
            }
        }
    }
    list
}

/// Holders that are killed.
fn recoveries() -> Vec<Promise> {
    let cell = Cell::Recovery(Recovery { sleepers: SLEEPERS });
    let rows = |lock| {
        let of = |figure, bound, name, which: &str| {
            let what =
                format!("SIGKILL of a holder with {SLEEPERS} sleepers: {which} until one has the lock");
            at_most(Subject { lock, cell }, figure, bound, name, what)
        };
        [
            of(Figure::Recovery, RECOVERY_NS, "recovery/median", "median time"),
            of(Figure::SlowestRecovery, SLOWEST_RECOVERY_NS, "recovery/slowest", "longest time"),
        ]
    };
    let peer = rows(ROBUST).map(|row| Promise { bound: Bound::Shown, ..row });
    OURS.into_iter().flat_map(rows).chain(peer).collect()
}

/// The program.
#[derive(Debug)]
pub enum Shared {}

impl Program for Shared {
    const NAME: &'static str = "shared";
    const SCHEMA: &'static str = "ulocks-shared/1";
    type Cli = Cli;
    type Subject = Promise;

    fn effort(mode: Mode) -> Effort {
        match mode {
            Mode::Full => Effort::new(shares::full(Self::NAME), (6, 9), (60, 300), Some(200)),
            Mode::Quick => Effort::new(shares::quick(Self::NAME), (3, 5), (30, 100), None),
            Mode::Smoke => Effort::new(2, (1, 1), (5, 5), None),
        }
    }

    fn subjects(_: &Cli, _: Mode, _: u32) -> Vec<Promise> {
        all()
    }

    fn trials(promises: &[Promise]) -> (Vec<Probe>, Vec<Probe>) {
        Promises::trials(promises)
    }

    fn tables(record: &Record) -> String {
        text::tables(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::harness::keeps_the_time;

    #[test]
    fn names_are_unique() {
        let names: std::collections::HashSet<String> = all().into_iter().map(|row| row.name).collect();
        assert_eq!(names.len(), all().len());
    }

    #[test]
    fn the_time_there_is_is_kept() {
        keeps_the_time::<Shared>(3.0, 3);
    }
}
