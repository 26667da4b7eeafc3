//! `condvar`: bounded buffers, ping-pong, `notify_all` of a crowd and timed waits, over every
//! condition variable.
//!
//! One round is every pair in every run once, in random order, each in a process of its own
//! ([`harness`]). Ratios are of the same round, to the better of std and parking_lot: the one with
//! the greater rate over all rounds.

use crate::programs::harness::comparison::{Measured, Series, Side};
use crate::programs::harness::plan::Effort;
use crate::programs::harness::{self, Cli, Program, Subject as _};
use crate::programs::shares;
use crate::report::{Mode, Table, units};
use crate::subjects::condvars::{Entry, PEERS};
use crate::subjects::locks;
use crate::workloads::cell::{Cell, Probe, Trial};
use crate::workloads::condvars::{Load, Notify, Place, Run};
use crate::workloads::figure::Figure;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// What a run leaves behind.
pub type Record = harness::Record<Row>;

/// Producers and consumers, and capacities.
pub(crate) const CREWS: [(u32, u32); 4] = [(1, 1), (2, 2), (4, 4), (1, 8)];
pub(crate) const CAPACITIES: [u32; 3] = [1, 2, 64];
/// What is also run with one condition variable for both sides.
const OF_ONE: (u32, Notify) = (2, Notify::After);
const WAITERS: u32 = 100;
const TIMED_WAITERS: u32 = 4;

/// Where so many threads run. What two threads do depends on nothing as much as on whether they
/// share a CPU, and the scheduler keeps to one or the other for as long as a window. So both are
/// run, each by itself.
pub(crate) fn usual_places(threads: u32) -> &'static [Place] {
    if threads == 2 { &[Place::Apart, Place::Together] } else { &[Place::Free] }
}

/// A pair in a run: what will be a row.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    entry: &'static Entry,
    run: Run,
}

/// The runs that are asked for, in the order of the table.
fn runs(cli: &Cli, mode: Mode) -> Vec<Run> {
    let few = mode != Mode::Full && cli.as_ref().only.is_none();
    let crews = if few { &[(1, 1), (4, 4)][..] } else { &CREWS };
    let capacities = if few { &[2][..] } else { &CAPACITIES };
    let orders = if few { &[Notify::After][..] } else { &Notify::ALL };
    let mut runs = Vec::new();
    let mut add = |load, places: &[Place]| runs.extend(places.iter().map(|&place| Run { load, place }));
    for one in [false, true] {
        for &(producers, consumers) in crews {
            for &capacity in capacities {
                for &notify in orders {
                    if one && (capacity, notify) != OF_ONE {
                        continue;
                    }
                    let load = Load::Buffer { producers, consumers, capacity, notify, one };
                    add(load, usual_places(producers + consumers));
                }
            }
        }
    }
    orders.iter().for_each(|&notify| add(Load::PingPong { notify }, usual_places(2)));
    orders.iter().for_each(|&notify| add(Load::Crowd { waiters: WAITERS, notify }, usual_places(WAITERS)));
    add(Load::Timed { waiters: TIMED_WAITERS }, usual_places(TIMED_WAITERS));
    runs
}

impl harness::Subject for Subject {
    type Row = Row;

    /// As `--only` knows it: `buffer/4+4/2/after/unfair`.
    fn name(&self) -> String {
        format!("{}/{}", self.run.name(), self.entry.name)
    }

    fn is_about(&self, lock: &locks::Entry) -> bool {
        lock.name == self.entry.lock
    }

    fn row(&self, trials: &[Trial]) -> Option<Row> {
        Row::new(self, trials)
    }
}

/// The program.
#[derive(Debug)]
pub enum Condvar {}

impl Program for Condvar {
    const NAME: &'static str = "condvar";
    const SCHEMA: &'static str = "ulocks-condvar/1";
    type Cli = Cli;
    type Subject = Subject;

    fn effort(mode: Mode) -> Effort {
        match mode {
            Mode::Full => Effort::new(shares::full(Self::NAME), (3, 9), (30, 300), Some(100)),
            Mode::Quick => Effort::new(shares::quick(Self::NAME), (3, 5), (25, 100), None),
            Mode::Smoke => Effort::new(5, (1, 1), (5, 5), None),
        }
    }

    fn subjects(cli: &Cli, mode: Mode, _: u32) -> Vec<Subject> {
        let takes_part = |entry: &&Entry| match (&cli.as_ref().locks, mode) {
            (Some(_), _) => true,
            (None, Mode::Quick) => entry.family || PEERS.contains(&entry.name),
            (None, _) => !entry.probe,
        };
        let of = |run| Entry::all().iter().filter(takes_part).map(move |entry| Subject { entry, run });
        runs(cli, mode).into_iter().flat_map(of).collect()
    }

    /// Each subject in its run, and beside it the peers.
    fn trials(subjects: &[Subject]) -> (Vec<Probe>, Vec<Probe>) {
        let mut probes = Vec::new();
        for subject in subjects {
            for name in [subject.entry.name].into_iter().chain(PEERS) {
                Probe::add(&mut probes, Cell::Condvar(subject.run), name);
            }
        }
        (probes, Vec::new())
    }

    fn tables(record: &Record) -> String {
        let mut out = String::from("\nCondition variables\n");
        let header = [
            "run",
            "subject",
            "items/s",
            "by peer's",
            "CPU/item",
            "by peer's",
            "switches/item",
            "COV",
            "peer",
        ];
        let mut table = Table::new(&[0, 1, 3, 5, 8], &header);
        let mut last = None;
        for row in &record.rows {
            let first = last != Some(row.run);
            if first && last.is_some() {
                table.gap();
            }
            last = Some(row.run);
            let best = row.by_best.as_ref().and_then(|by| by.other.as_ref());
            table.row(vec![
                if first { row.run.to_string() } else { String::new() },
                row.subject.clone(),
                row.per_s.rate(),
                ratio(&row.by_best),
                units::time(row.cpu_ns),
                ratio(&row.cpu_by_best),
                units::digits(row.switches),
                units::digits(row.cov),
                best.map_or(String::new(), |best| best.lock.clone()),
            ]);
        }
        table.print(&mut out);
        out.push('\n');
        for entry in
            Entry::all().iter().filter(|entry| record.rows.iter().any(|row| row.subject == entry.name))
        {
            writeln!(out, "{:<18} {}", entry.name, entry.about).unwrap();
        }
        out + &record.notes(NOTES)
    }
}

/// A pair in a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub subject: String,
    /// The run.
    pub run: Run,
    /// As `--only` knows it.
    pub name: String,
    /// Items, turns, or threads back from a wait, a second.
    pub per_s: Side,
    /// CPU time of the process for one of them, nanoseconds, median over rounds.
    pub cpu_ns: f64,
    /// Context switches of the process for one of them, median over rounds.
    pub switches: f64,
    /// Coefficient of variation of the threads that are counted, median over rounds.
    pub cov: f64,
    /// The rate by that of the better of the peers, itself left out.
    pub by_best: Option<Measured>,
    /// The CPU time by that of the same peer.
    pub cpu_by_best: Option<Measured>,
}

impl Row {
    /// Sums up the trials there are; nothing if there are none.
    fn new(subject: &Subject, trials: &[Trial]) -> Option<Self> {
        let &Subject { entry, run } = subject;
        let series = |name, figure| Series::new(trials, name, Cell::Condvar(run), figure);
        let rate = series(entry.name, Figure::PerSecond);
        if rate.is_empty() {
            return None;
        }
        let median = |figure| series(entry.name, figure).measured().map(|measured| measured.value);
        let peers = PEERS.iter().filter(|&&peer| peer != entry.name);
        let peers: Vec<Series<'_>> = peers.map(|&peer| series(peer, Figure::PerSecond)).collect();
        let best = Series::best(&peers);
        let cpu = best.and_then(|best| {
            let [mine, other] = [entry.name, best.lock()].map(|name| series(name, Figure::CpuPerOp));
            mine.by(&other)
        });
        Some(Self {
            subject: entry.name.to_owned(),
            run,
            name: subject.name(),
            cpu_ns: median(Figure::CpuPerOp)?,
            switches: median(Figure::SwitchesPerOp)?,
            cov: median(Figure::Cov)?,
            by_best: best.and_then(|best| rate.by(best)),
            cpu_by_best: cpu,
            per_s: rate.side(),
        })
    }
}

fn ratio(measured: &Option<Measured>) -> String {
    measured.as_ref().map_or("-".into(), Measured::ratio)
}

const NOTES: &str = "\
items/s        items taken out, turns passed, or waiters that came back, geometric mean over rounds; a|b are two modes
peer           std or parking_lot, whichever has more items/s over all rounds
by peer's      the figure before it by that of the peer in the same round; [95 % interval], {range} over two modes
CPU/item       CPU time of the whole process for an item, median over rounds
switches/item  context switches of the whole process for an item, voluntary and involuntary, median over rounds
COV            coefficient of variation of the consumers' items (of all threads' turns): 0 is fair";

#[cfg(test)]
mod tests;
