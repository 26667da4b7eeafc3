//! `condvar`: bounded buffers, ping-pong, `notify_all` of a crowd and timed waits, over every
//! condition variable.
//!
//! One round is every pair in every run once, in random order, each in a process of its own
//! ([`harness`]). Ratios are of the same round, to the better of std and parking_lot: the one with
//! the greater rate over all rounds.

use crate::programs::harness;
use crate::programs::harness::comparison::{Measured, Series, Side};
use crate::programs::harness::plan::{Effort, Plan};
use crate::programs::options::{BenchOptions, List};
use crate::report::{Mode, Table, units};
use crate::run::{busy_work, machine};
use crate::subjects::condvars::{Entry, PEERS};
use crate::workloads::cell::{Cell, Probe, Trial};
use crate::workloads::condvars::{Load, Notify, Place, Run};
use crate::workloads::figure::Figure;
use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

const NAME: &str = "condvar";
const SCHEMA: &str = "ulocks-condvar/1";

/// What a run leaves behind.
pub type Record = harness::Record<Row>;

/// Producers and consumers, and capacities.
pub(crate) const CREWS: [(u32, u32); 4] = [(1, 1), (2, 2), (4, 4), (1, 8)];
pub(crate) const CAPACITIES: [u32; 3] = [1, 2, 64];
/// What is also run with one condition variable for both sides, unless options say what to run.
const OF_ONE: (u32, Notify) = (2, Notify::After);
const WAITERS: u32 = 100;
const TIMED_WAITERS: u32 = 4;

/// Where so many threads run, if nobody says where. What two threads do depends on nothing as much
/// as on whether they share a CPU, and the scheduler keeps to one or the other for as long as a
/// window. So both are run, each by itself.
pub(crate) fn usual_places(threads: u32) -> &'static [Place] {
    if threads == 2 { &[Place::Apart, Place::Together] } else { &[Place::Free] }
}

/// The command line.
#[derive(Parser)]
#[command(name = "condvar")]
struct Cli {
    #[command(flatten)]
    options: BenchOptions,
    /// Producers and consumers of the bounded buffers, such as 1+1,1+8
    #[arg(long, value_name = "LIST", value_parser = crews)]
    crews: Option<List<(u32, u32)>>,
    /// Capacities of the bounded buffers
    #[arg(long, value_name = "LIST", value_parser = capacities)]
    capacity: Option<List<u32>>,
    /// Where threads run: free, apart, together
    #[arg(long, value_name = "LIST", value_parser = places)]
    place: Option<List<Place>>,
    /// When threads notify: under, after
    #[arg(long, value_name = "LIST", value_parser = orders)]
    notify: Option<List<Notify>>,
}

impl Cli {
    /// Whether options say which buffers are to be run.
    fn asks(&self) -> bool {
        self.crews.is_some() || self.capacity.is_some()
    }
}

fn crews(text: &str) -> Result<List<(u32, u32)>> {
    let allowed = "allowed: 1+1 to 1000+1000, as in 1+1,1+8";
    let side = |text: &str| text.parse().ok().filter(|side| (1..=1000).contains(side));
    let one = |text: &str| {
        let sides = text.split_once('+').and_then(|(p, c)| Some((side(p)?, side(c)?)));
        sides.with_context(|| format!("'{text}' is not a number of producers and of consumers; {allowed}"))
    };
    text.split(',').map(one).collect::<Result<_>>().map(List)
}

fn capacities(text: &str) -> Result<List<u32>> {
    let one = |text: &str| -> Result<u32> {
        let allowed = "allowed: 1 to 1000000";
        let capacity = text.parse().ok().with_context(|| format!("'{text}' is not a capacity; {allowed}"))?;
        ensure!((1..=1_000_000).contains(&capacity), "a capacity of {capacity} is out of range; {allowed}");
        Ok(capacity)
    };
    text.split(',').map(one).collect::<Result<_>>().map(List)
}

fn orders(text: &str) -> Result<List<Notify>> {
    named(text, "order", &Notify::ALL.map(|order| (order.name(), order)))
}

fn places(text: &str) -> Result<List<Place>> {
    named(text, "place", &Place::ALL.map(|place| (place.name(), place)))
}

fn named<T: Copy>(text: &str, what: &str, known: &[(&str, T)]) -> Result<List<T>> {
    let one = |name: &str| match known.iter().find(|(known, _)| *known == name) {
        Some((_, value)) => Ok(*value),
        None => {
            let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
            bail!("unknown {what} '{name}'; allowed: {}", names.join(", "))
        }
    };
    text.split(',').map(one).collect::<Result<_>>().map(List)
}

/// The whole program.
pub fn main() -> ExitCode {
    harness::main_with(NAME, |cli: &Cli| &cli.options, measure)
}

/// The share of this harness in `cargo bench`, in `cargo bench -- --quick`, or in `cargo test`.
fn share(mode: Mode) -> Effort {
    let of = |seconds, rounds: (u32, u32), windows_ms: (u64, u64), usual_window_ms| Effort {
        budget: Duration::from_secs(seconds),
        rounds: rounds.0,
        max_rounds: rounds.1,
        min_window_ms: windows_ms.0,
        max_window_ms: windows_ms.1,
        usual_window_ms,
    };
    match mode {
        Mode::Full => of(130, (3, 9), (40, 300), Some(100)),
        Mode::Quick => of(18, (3, 5), (25, 100), None),
        Mode::Smoke => of(5, (1, 1), (5, 5), None),
    }
}

/// A pair in a run: what will be a row.
#[derive(Clone, Copy, Debug)]
struct Subject {
    entry: &'static Entry,
    run: Run,
}

impl Subject {
    /// As `--only` knows it: `buffer/4+4/2/after/unfair`.
    fn name(&self) -> String {
        format!("{}/{}", self.run.name(), self.entry.name)
    }
}

/// The runs that are asked for, in the order of the table.
fn runs(cli: &Cli, mode: Mode) -> Vec<Run> {
    let few = mode != Mode::Full && cli.options.only.is_none();
    let usual_crews = if few { &[(1, 1), (4, 4)][..] } else { &CREWS };
    let usual_capacities = if few { &[2][..] } else { &CAPACITIES };
    let crews = cli.crews.as_ref().map_or(usual_crews, |crews| &crews.0);
    let capacities = cli.capacity.as_ref().map_or(usual_capacities, |capacities| &capacities.0);
    let usual_orders = if few { &[Notify::After][..] } else { &Notify::ALL };
    let orders = cli.notify.as_ref().map_or(usual_orders, |orders| &orders.0);
    let places = |threads| cli.place.as_ref().map_or(usual_places(threads), |places| &places.0);
    let mut runs = Vec::new();
    let mut add = |load, places: &[Place]| runs.extend(places.iter().map(|&place| Run { load, place }));
    for one in [false, true] {
        for &(producers, consumers) in crews {
            for &capacity in capacities {
                for &notify in orders {
                    if one && !cli.asks() && (capacity, notify) != OF_ONE {
                        continue;
                    }
                    let load = Load::Buffer { producers, consumers, capacity, notify, one };
                    add(load, places(producers + consumers));
                }
            }
        }
    }
    if !cli.asks() {
        orders.iter().for_each(|&notify| add(Load::PingPong { notify }, places(2)));
        orders.iter().for_each(|&notify| add(Load::Crowd { waiters: WAITERS, notify }, places(WAITERS)));
        add(Load::Timed { waiters: TIMED_WAITERS }, places(TIMED_WAITERS));
    }
    runs
}

/// The rows that are asked for, in the order of the table.
fn selected(cli: &Cli, mode: Mode) -> Vec<Subject> {
    let options = &cli.options;
    let takes_part = |entry: &&Entry| match (&options.locks, mode) {
        (Some(named), _) => named.0.iter().any(|lock| lock.name == entry.lock),
        (None, Mode::Quick) => entry.family || PEERS.contains(&entry.name),
        (None, _) => !entry.probe,
    };
    let entries: Vec<_> = Entry::all().iter().filter(takes_part).collect();
    let mut subjects: Vec<Subject> = runs(cli, mode)
        .into_iter()
        .flat_map(|run| entries.iter().map(move |&entry| Subject { entry, run }))
        .collect();
    if let Some(part) = &options.only {
        subjects.retain(|subject| subject.name().contains(part.as_str()));
    }
    subjects
}

/// Each subject in its run, and beside it the peers.
fn probes(subjects: &[Subject]) -> Vec<Probe> {
    let mut probes: Vec<Probe> = Vec::new();
    for subject in subjects {
        for name in [subject.entry.name].into_iter().chain(PEERS) {
            let probe = Probe { cell: Cell::Condvar(subject.run), locks: vec![name.to_owned()] };
            if !probes.contains(&probe) {
                probes.push(probe);
            }
        }
    }
    probes
}

/// Measures, and writes table and record; returns the signal that came in between.
fn measure(cli: &Cli) -> Result<Option<i32>> {
    let (options, mode) = (&cli.options, cli.options.mode());
    let subjects = selected(cli, mode);
    if subjects.is_empty() {
        eprintln!("{NAME}: no row of the table is called so");
        return Ok(None);
    }
    let window_ms = options.seconds.map(|window| (window.as_millis() as u64).max(1));
    let probes = probes(&subjects);
    let plan = Plan::new(share(mode), probes, Vec::new(), window_ms, options.rounds, busy_work::calibrate());
    let (mut record, signal) = Record::measure(NAME, SCHEMA, mode, machine::describe(), &plan)?;
    record.rows = subjects.iter().filter_map(|subject| Row::new(subject, &record.trials)).collect();
    // A reader that closes the pipe has seen enough; the file is written all the same.
    let _ = std::io::stdout().lock().write_all(table(&record).as_bytes());
    record.write(NAME)?;
    Ok(signal)
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

fn table(record: &Record) -> String {
    let mut out = String::from("\nCondition variables\n");
    let header =
        ["run", "subject", "items/s", "by the better", "CPU/item", "by its", "switches", "COV", "the better"];
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
    for entry in Entry::all().iter().filter(|entry| record.rows.iter().any(|row| row.subject == entry.name)) {
        writeln!(out, "{:<18} {}", entry.name, entry.about).unwrap();
    }
    writeln!(out, "{NOTES}").unwrap();
    for caveat in record.caveats() {
        writeln!(out, "{caveat}").unwrap();
    }
    out
}

const NOTES: &str = "\
items/s        items taken out, turns passed, or waiters that came back, geometric mean over rounds; a|b are two modes
by the better  that by the same of std or parking_lot, whichever has more items/s over all rounds, in the same round;
               [95 % interval], {range} over two modes
CPU/item       CPU time of the whole process, median over rounds; beside it by that of the same peer
switches       context switches of the whole process for an item, voluntary and involuntary, median over rounds
COV            coefficient of variation of the consumers' items (of all threads' turns): 0 is fair";

#[cfg(test)]
mod tests;
