//! `convoy`: the loops of Franke's mail of 2002, with his numbers of children, as threads.
//!
//! What is compared is not a throughput of 2002 with one of today but the ratio of two locks then
//! with the ratio of the same two locks now; [`mails::ulockflex`](crate::mails) has his whole
//! table.

use super::{Row, Turns, Wish, by, chosen, grid, no_claims, of, turns};
use crate::engine::cell::{Job, Kind};
use crate::engine::record::{Mode, Record};
use crate::report::units;
use crate::workloads::{Times, Workers};

pub const ROW: Row = Row {
    name: "convoy",
    about: "threads on one lock: the loops of 2002, by System V's semaphore",
    share_s: (75, 14),
    jobs,
    drop_first: &["semaphore-3us", "calock-3us", "fair", "none"],
    columns: &[of("rate"), by("rate", "sysv"), of("cpu"), of("contended"), of("reentries"), of("cov")],
    claims: no_claims,
    sentences,
    notes: "His children were processes; these are threads, since the calock and the semaphore are \
            locks of one process. `calock-0` sleeps at once, as his c; `calock` spins first, as his C; \
            `semaphore` is today's usema.",
};

const CHILDREN: [u32; 6] = [1, 2, 3, 4, 100, 1000];
const WORKLOADS: [Times; 3] = [Times::us(10, 0), Times::us(3, 7), Times::us(1, 9)];
const SUBJECTS: [&str; 8] =
    ["none", "sysv", "semaphore", "semaphore-3us", "calock-0", "calock", "calock-3us", "fair"];

fn jobs(wish: &Wish) -> Vec<Job> {
    let (workloads, children): (&[_], &[u32]) = match wish.mode {
        Mode::Full => (&WORKLOADS, &CHILDREN),
        Mode::Quick => (&WORKLOADS[1..], &[2, 4, 100]),
        Mode::Smoke => (&WORKLOADS[2..], &[2]),
    };
    let children = wish.threads.as_deref().unwrap_or(children);
    let workloads = wish.times.map_or(workloads.to_vec(), |times| vec![times]);
    grid(&workloads, children, |times, n| {
        (Turns { counted: true, ..turns(times, Workers::Threads(n)) }, chosen(wish, &SUBJECTS))
    })
}

/// In each workload the best lock of the family by System V's semaphore, with the most children.
fn sentences(record: &Record) -> Vec<String> {
    let sentence = |section: &str| {
        let cell = record.cells_of(section).last()?;
        let best = record.best(cell, "rate", |kind| kind == Kind::Family)?;
        let ratio = record.ratio((cell, best), (cell, "sysv"), "rate")?;
        let (children, ratio) = (&record.cells[cell].label, units::ratio(Some(ratio)));
        Some(format!("convoy: {section}, {children}: {best} has {ratio} of sysv's rate."))
    };
    record.sections().into_iter().filter_map(sentence).collect()
}
