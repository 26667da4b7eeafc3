//! `many`: the grid of many cores. Short sections and long ones, from two threads to four times
//! the CPUs, with a spinlock that never sleeps among the subjects: what can be had at most where
//! each thread has a CPU.

use super::{By, Column, Row, Wish, cell, chosen, no_claims, turns};
use crate::engine::cell::{Job, Kind};
use crate::engine::record::{Mode, Record};
use crate::report::units;
use crate::statistics::geometric_mean;
use crate::workloads::{Times, Workers};

pub const ROW: Row = Row {
    name: "many",
    about: "mutexes on many cores: sections of 0 to 10 us, an MCS spinlock beside them",
    mail: None,
    share_s: (90, 0),
    jobs,
    drop_first: &["mcs-park", "asym", "byte", "usync"],
    columns: &[
        Column { figure: "rate", by: By::Nothing },
        Column { figure: "rate", by: By::BestPeer },
        Column { figure: "cpu", by: By::Nothing },
        Column { figure: "starved", by: By::Nothing },
        Column { figure: "cov", by: By::Nothing },
    ],
    claims: no_claims,
    sentences,
    notes: "The MCS spinlock never sleeps and runs only where each thread has a CPU.",
};

/// Inside and outside, in nanoseconds.
const GRID_NS: [(u64, u64); 10] = [
    (0, 0),
    (20, 20),
    (100, 100),
    (200, 200),
    (500, 500),
    (100, 2_000),
    (500, 10_000),
    (1_000, 9_000),
    (3_000, 7_000),
    (10_000, 0),
];

const SUBJECTS: [&str; 9] =
    ["std", "parking_lot", "usync", "mcs-park", "throughput", "unfair", "byte", "calock", "fair"];

/// The spinlock.
const SPINLOCK: &str = "mcs";

fn jobs(wish: &Wish) -> Vec<Job> {
    // A quick look has `scaling`.
    if wish.mode == Mode::Quick && wish.threads.is_none() {
        return Vec::new();
    }
    let cpus = wish.cpus;
    let counts = match &wish.threads {
        Some(threads) => threads.clone(),
        None if wish.mode == Mode::Smoke => vec![2],
        None => {
            let mut counts = vec![2, cpus.div_ceil(2), cpus, 4 * cpus];
            counts.retain(|&n| n > 1);
            counts.sort_unstable();
            counts.dedup();
            counts
        }
    };
    let grid = if wish.mode == Mode::Smoke { &GRID_NS[..1] } else { &GRID_NS };
    let mut jobs = Vec::new();
    for &(hold_ns, think_ns) in grid {
        for &threads in &counts {
            let times = Times { hold_ns, think_ns };
            let mut subjects = chosen(wish, &SUBJECTS);
            if threads <= cpus && wish.subjects.is_none() {
                subjects.push(SPINLOCK.into());
            }
            jobs.push(Job {
                cell: cell(units::times(times), turns(times, Workers::Threads(threads))),
                subjects,
            });
        }
    }
    jobs
}

/// Each lock of the family by the best peer of each cell: the geometric mean and the worst cell.
fn sentences(record: &Record) -> Vec<String> {
    let family = record.subjects.iter().filter(|subject| subject.kind == Kind::Family);
    let scores = family.filter_map(|subject| {
        let ratios: Vec<(f64, usize)> = (0..record.cells.len())
            .filter_map(|cell| {
                let peer = record.best_peer(cell, "rate")?;
                Some((record.ratio((cell, &subject.name), (cell, peer), "rate")?.value, cell))
            })
            .collect();
        let worst = ratios.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
        let all: Vec<f64> = ratios.iter().map(|ratio| ratio.0).collect();
        let cell = &record.cells[worst.1];
        Some((
            geometric_mean(&all),
            subject.name.clone(),
            worst.0,
            format!("{} x {}", cell.section, cell.label),
        ))
    });
    let mut scores: Vec<_> = scores.collect();
    scores.sort_by(|a, b| b.0.total_cmp(&a.0));
    scores
        .into_iter()
        .map(|(mean, name, worst, cell)| {
            let [mean, worst] = [mean, worst].map(units::fixed);
            format!("many: {name} has {mean} of the best peer of each cell, {worst} in the worst: {cell}.")
        })
        .collect()
}
