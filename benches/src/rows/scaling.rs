//! `scaling`: mutexes over thread counts and workloads, the row that the answer is made of.

use super::{Row, Turns, Wish, by, by_peer, chosen, grid, no_claims, of, thread_counts, turns};
use crate::engine::cell::Job;
use crate::engine::record::{Mode, Record};
use crate::workloads::{Times, Workers};

pub const ROW: Row = Row {
    name: "scaling",
    about: "mutexes over thread counts: rate, CPU time, fairness and waits",
    share_s: (185, 73),
    jobs,
    // The last are dropped last: std, parking_lot and usync are what people use today.
    drop_first: &["usync"],
    columns: &[
        of("rate"),
        by_peer("rate"),
        by("rate", "std"),
        of("cpu"),
        by("cpu", "std"),
        of("starved"),
        of("cov"),
        of("wait-p50"),
        of("wait-p99.9"),
        of("wait-now"),
        of("wait-max"),
    ],
    claims: no_claims,
    sentences: |_: &Record| Vec::new(),
    notes: "With nothing inside or outside, the best rate is one thread that runs alone while the \
            others wait: look at `hardly ran` and at the waits. Rates of (0, 0) are of a loop that \
            reads no clock.",
};

/// Nothing, and the three workloads of 2002, (inside, outside).
pub const WORKLOADS: [Times; 4] = [Times::us(0, 0), Times::us(1, 9), Times::us(3, 7), Times::us(10, 0)];

/// What runs when the command line names no locks.
const SUBJECTS: [&str; 9] =
    ["none", "std", "parking_lot", "usync", "throughput", "unfair", "byte", "calock", "fair"];

fn jobs(wish: &Wish) -> Vec<Job> {
    let workloads = match wish.times {
        Some(times) => vec![times],
        None if wish.mode == Mode::Smoke => WORKLOADS[..2].to_vec(),
        None => WORKLOADS.to_vec(),
    };
    let subjects = chosen(wish, &SUBJECTS);
    grid(&workloads, &thread_counts(wish), |times, n| {
        (Turns { timed: true, ..turns(times, Workers::Threads(n)) }, subjects.clone())
    })
}
