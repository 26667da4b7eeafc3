//! Published measurements of locks on other machines, and what the model predicts for them.
//!
//! A file of `published` holds one table as its source prints it, the machine, and the load. The
//! source gives the load only in part; `fitted` says which of its cells the rest was fitted on. All
//! other cells are predictions.
//!
//! Shapes are compared, not nanoseconds: each lock's rate over its own rate at one thread, and each
//! lock's rate over the first lock's at the same number of threads.

mod page;
mod report;

pub use report::{BEGIN, END, markdown, replace};

use crate::{Lock, select};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use ulocks_vm_cost::{Machine, Placement, Run};

/// A published table, and how its load is modelled.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    title: String,
    source: String,
    unit: String,
    /// A file of `crates/checker/cost/machines`, without its ending.
    machine: String,
    load: Load,
    fitted: String,
    /// How many of the locks, from the first one, were fitted on.
    fitted_locks: usize,
    /// At which numbers of threads.
    fitted_threads: Vec<usize>,
    /// Virtual time of each run, in microseconds.
    time_us: f64,
    locks: Vec<String>,
    rows: Vec<Row>,
}

/// What the threads do.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Load {
    placement: Placed,
    /// In nanoseconds, for each section.
    hold: f64,
    /// In nanoseconds, for each operation.
    think: f64,
    data_lines: usize,
    /// How many sections an operation has.
    sections: usize,
    /// Whether sections have the random delays of Linux's locktorture.
    #[serde(default)]
    locktorture: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Placed {
    Compact,
    Spread,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    threads: usize,
    /// By lock.
    rates: Vec<f64>,
    deviations: Vec<f64>,
}

/// A published table, and the predicted rates of its rows.
#[derive(Debug, PartialEq)]
pub struct Curve<'a> {
    published: &'a Published,
    /// By row, then by lock; operations per microsecond.
    predicted: Vec<Vec<f64>>,
}

macro_rules! files {
    ($folder:literal: $($name:literal)*) => {
        &[$(($name, include_str!(concat!($folder, $name, ".json")))),*]
    };
}

const PUBLISHED: &[(&str, &str)] = files!("../../published/":
    "cna-v15-lock2" "cna-v15-open1" "cna-v15-locktorture" "cna-map-2" "cna-map-4");
const MACHINES: &[(&str, &str)] =
    files!("../../../../crates/checker/cost/machines/": "xeon-e5-2699v3-x2" "xeon-e7-8895v3-x4");

/// All published tables.
///
/// # Errors
/// If a file is none.
pub fn published() -> Result<Vec<Published>> {
    let read = |(name, text): &(&str, &str)| {
        let table: Published =
            serde_json::from_str(text).with_context(|| format!("published/{name}.json"))?;
        for row in &table.rows {
            let locks = table.locks.len();
            ensure!(
                row.rates.len() == locks && row.deviations.len() == locks,
                "published/{name}.json: {} threads: not {locks} locks",
                row.threads
            );
        }
        ensure!(
            table.rows.first().is_some_and(|row| row.threads == 1),
            "published/{name}.json: one thread is missing"
        );
        Ok(table)
    };
    PUBLISHED.iter().map(read).collect()
}

/// What the model says of the published tables.
pub struct Comparison {
    /// As Markdown, with all errors.
    pub tables: String,
    /// As a page of plots.
    pub page: String,
}

/// Holds the model against all published tables. Each is predicted in a thread of its own.
///
/// # Errors
/// If a file is wrong, or a run fails.
pub fn compare() -> Result<Comparison> {
    let tables = published()?;
    let predicted: Result<Vec<_>> = std::thread::scope(|scope| {
        let running: Vec<_> = tables.iter().map(|table| scope.spawn(|| table.predict())).collect();
        running.into_iter().map(|thread| thread.join().expect("a run of the model")).collect()
    });
    let predicted = predicted?;
    Ok(Comparison { tables: markdown(&predicted), page: page::html(&predicted) })
}

impl Published {
    /// Runs the model for every cell.
    ///
    /// # Errors
    /// If a lock or the machine is not known, or a run fails.
    pub fn predict(&self) -> Result<Curve<'_>> {
        let text = MACHINES.iter().find(|(name, _)| *name == self.machine);
        let (_, text) = text.with_context(|| format!("there is no machine {}", self.machine))?;
        let machine = Machine::from_json(text)?;
        let locks = select(&self.locks)?;
        let row = |row: &Row| locks.iter().map(|lock| self.rate(&machine, lock, row.threads)).collect();
        let predicted = self.rows.iter().map(row).collect::<Result<_>>()?;
        Ok(Curve { published: self, predicted })
    }

    fn rate(&self, machine: &Machine, lock: &Lock, threads: usize) -> Result<f64> {
        let Load { placement, hold, think, data_lines, sections, locktorture } = self.load;
        let (cpus, placement) = match placement {
            Placed::Compact => (threads, Placement::Compact),
            Placed::Spread => (machine.topology.total(), Placement::Spread),
        };
        let run = Run {
            cpus,
            placement,
            time_ns: self.time_us * 1e3,
            warm_up_ns: self.time_us * 250.0,
            hold_ns: hold,
            think_ns: think / sections as f64,
            data_lines,
            // Long enough that the first ones do not queue by their distance.
            stagger_ns: 1e3 * threads as f64,
            stalls: if locktorture { stalls(threads) } else { Vec::new() },
            ..Run::new(machine.clone(), threads)
        };
        let outcome = (lock.run)(&run).with_context(|| format!("{}, {threads} threads", lock.name))?;
        Ok(outcome.per_us / sections as f64)
    }
}

/// The delays inside a section of `torture_spin_lock_write_delay` (Linux 5.12): 2 us once in 4
/// sections a thread, and 100 ms once in 200,000. The latter is a thousandth as long here and a
/// thousand times as frequent, since a run is shorter.
fn stalls(threads: usize) -> Vec<(f64, f64)> {
    let threads = threads as f64;
    vec![(1.0 / (4.0 * threads), 2e3), (1.0 / (200.0 * threads), 1e5)]
}
