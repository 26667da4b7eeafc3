//! The table on stdout: Franke's legend and columns, and two more.

use super::plan::{Cell, Plan, Variant, children_are};
use super::row::{Row, letter};
use crate::run::machine::Machine;
use crate::subjects::locks::Entry;
use std::fmt::Write as _;

/// Headings and widths, in order.
const COLUMNS: [(&str, usize); 15] = [
    ("c", 5),
    ("a", 3),
    ("t", 5),
    ("i", 4),
    ("L", 5),
    ("p", 5),
    ("r", 6),
    ("x", 6),
    ("WC", 7),
    ("RC", 7),
    ("R", 8),
    ("COV", 10),
    ("ThPut", 11),
    ("p99.9", 10),
    ("CPU", 9),
];

/// What each column means.
pub const COLUMN_LEGEND: &str = "\
c      number of children
a      number of locks; child i uses lock i modulo a
t      seconds of each run
i      counted runs (after one warm-up run) until the 95 % interval of ThPut was within 5 % of its mean;
       with a *: that was not reached, the row is not statistically significant
L      lock, by the letter below: a capital spins or yields for a while before it sleeps, a small letter does
       not; a number behind it is the percentage of shared acquisitions
p      patience of spinning in us, if it is fixed; - if it is not, or if there is none
r, x   mean time outside and inside the lock in us, each uniform in [0.5, 1.5] of it
WC, RC exclusive and shared acquisitions that found the lock taken, percent
R      entries into the kernel to sleep per contended acquisition (of Franke's two definitions the one for
       calocks, not the share of contended acquisitions that spinning resolved)
COV    coefficient of variation of the children's loops: 0 is fair
ThPut  loops per second of all children, mean of the runs; LOW..HIGH if the runs lie a factor of two apart,
       so that a mean would mean nothing
p99.9  99.9th percentile of the wait for the lock in us, median of the runs
CPU    processor time of a loop in us, user and system, of all children
-      not known: WC, RC and R need a lock that counts, RC needs readers
WC, RC and R are counted inside the lock. Counting costs an increment an acquisition; so they come from one
further run of a twin that counts, unless the lock named counts itself. Likewise p99.9 where r + x is below
1 us: from one further run, since two looks at the clock would cost as much as a loop.";

/// One line a lock: letter, name, what it is.
pub fn lock_legend<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> String {
    let mut named = Vec::new();
    let mut text = String::new();
    for entry in entries {
        if !named.contains(&entry.name) {
            named.push(entry.name);
            let _ = writeln!(text, "{:<6} {}: {}", letter(entry, "<share>"), entry.name, entry.about);
        }
    }
    text
}

/// Everything above the rows: where and how it was measured, the legend, the headings.
pub fn opening(plan: &Plan, machine: &Machine) -> String {
    let children = children_are(plan.cells[0].workers);
    let headings = line(COLUMNS.map(|(name, _)| name.to_owned()));
    let locks = lock_legend(plan.variants.iter().map(|variant| variant.entry));
    format!(
        "{machine}\n\
         children are {children}, pinned: {}; calibrated at {:.0} iterations/us\n\n\
         {COLUMN_LEGEND}\n\n{locks}\n{headings}",
        plan.pin, plan.iterations_per_us,
    )
}

/// What stands in place of a row that came to nothing.
pub fn failure(plan: &Plan, cell: &Cell, variant: &Variant, reason: &str) -> String {
    let mut fields = [const { String::new() }; COLUMNS.len()];
    let known = [
        cell.workers.count().to_string(),
        plan.lock_count.to_string(),
        short(plan.window_ms as f64 / 1e3),
        "-".into(),
        letter(variant.entry, variant.read_share),
        variant.entry.patience_ns.map_or("-".into(), |ns| short(f64::from(ns) / 1e3)),
        short(cell.non_hold_ns as f64 / 1e3),
        short(cell.hold_ns as f64 / 1e3),
    ];
    for (field, known) in fields.iter_mut().zip(known) {
        *field = known;
    }
    format!("{} failed: {reason}", line(fields))
}

/// One row.
pub fn row(row: &Row) -> String {
    let us = |ns: u64| short(ns as f64 / 1e3);
    let known =
        |value: Option<f64>, digits: usize| value.map_or("-".into(), |value| format!("{value:.digits$}"));
    line([
        row.children.to_string(),
        row.lock_count.to_string(),
        short(row.seconds),
        format!("{}{}", row.runs, if row.settled { "" } else { "*" }),
        row.letter.clone(),
        row.patience_ns.map_or("-".into(), |ns| us(ns.into())),
        us(row.non_hold_ns),
        us(row.hold_ns),
        known(row.write_contention, 2),
        known(row.read_contention, 2),
        known(row.reentries, 2),
        format!("{:.6}", row.cov),
        match row.bimodal {
            true => format!("{:.0}..{:.0}", row.throughput_min, row.throughput_max),
            false => format!("{:.0}", row.throughput),
        },
        known(row.wait_p999_ns.map(|ns| ns / 1e3), 1),
        known(row.cpu_ns_per_loop.map(|ns| ns / 1e3), 3),
    ])
}

/// The fields, right-aligned in their columns.
fn line(fields: [String; COLUMNS.len()]) -> String {
    let mut line = String::new();
    for (field, (_, width)) in fields.iter().zip(COLUMNS) {
        let _ = write!(line, "{field:>width$} ");
    }
    line.trim_end().to_owned()
}

/// A number without needless digits.
fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
