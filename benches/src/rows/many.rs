//! `many`: the grid of many cores. Short sections and long ones, from two threads to four times
//! the CPUs, with a spinlock that never sleeps among the subjects: what can be had at most where
//! each thread has a CPU.

use super::{Row, Wish, by_peer, chosen, grid, in_order, no_claims, of, scores, turns};
use crate::engine::cell::Job;
use crate::engine::record::{Mode, Record};
use crate::workloads::{Times, Workers};

pub const ROW: Row = Row {
    name: "many",
    about: "mutexes on many cores: sections of 0 to 10 us, an MCS spinlock beside them",
    share_s: (90, 0),
    jobs,
    drop_first: &["mcs-park", "byte", "usync"],
    columns: &[of("rate"), by_peer("rate"), of("cpu"), of("starved"), of("cov")],
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
            let mut counts = in_order(vec![2, cpus.div_ceil(2), cpus, 4 * cpus]);
            counts.retain(|&n| n > 1);
            counts
        }
    };
    let times = GRID_NS.map(|(hold_ns, think_ns)| Times { hold_ns, think_ns });
    grid(&times[..if wish.mode == Mode::Smoke { 1 } else { 10 }], &counts, |times, n| {
        let mut subjects = chosen(wish, &SUBJECTS);
        if n <= cpus && wish.subjects.is_none() {
            subjects.push(SPINLOCK.into());
        }
        (turns(times, Workers::Threads(n)), subjects)
    })
}

fn sentences(record: &Record) -> Vec<String> {
    scores("many", record)
}
