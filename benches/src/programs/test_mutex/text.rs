//! The tables on standard output.

use super::{Case, Count, Row, THEN};
use crate::programs::turns;
use crate::report::{Table, units};
use crate::statistics::median;
use std::fmt::Write;

/// What the columns mean.
pub const NOTES: &str = "\
loops/s             loops of all tasks a second: the median of the rounds
CPU                 how much of all CPUs they use, in the kernel and outside
loops/CPU s         loops of a second of CPU time
by the first row    the same figure by that of the first lock, in the median of the rounds [least, most]
2005                the same ratio in Molnar's mail, of the kernel with mutexes to the one with semaphores, which
                    handed over: on 8 CPUs, and on 2 CPUs of two threads";

/// The table of a case.
pub fn table(case: Case, rows: &[Row]) -> String {
    let mut out = String::new();
    writeln!(out, "\n{case}").unwrap();
    let by = "by the first row";
    let header = ["lock", "loops/s", by, "2005", "CPU", by, "2005", "loops/CPU s", by, "2005"];
    let mut table = Table::new(&[0], &header);
    for row in rows {
        table.row(fields(case, row, &rows[0]));
    }
    table.print(&mut out);
    out
}

fn fields(case: Case, row: &Row, first: &Row) -> Vec<String> {
    let of = |figure: fn(&Count) -> f64| median(&row.rounds.iter().map(figure).collect::<Vec<_>>());
    let by = |figure: fn(&Count) -> f64| match turns::ratio(&row.rounds, &first.rounds, figure) {
        _ if row.lock == first.lock => "1".into(),
        Some((middle, least, most)) => {
            format!("{} [{} {}]", units::digits(middle), units::digits(least), units::digits(most))
        }
        None => "-".into(),
    };
    // His mutexes stand beside the mutex that is the default here.
    let then = |figure: fn(f64, f64) -> f64| match (case, row.lock.as_str()) {
        (Case::Files, "throughput") => {
            THEN.map(|(_, loops, cpu)| units::digits(figure(loops, cpu))).join(", ")
        }
        _ => "-".into(),
    };
    vec![
        row.lock.clone(),
        units::rate(of(Count::per_s)),
        by(Count::per_s),
        then(|loops, _| loops),
        format!("{:.0} %", 100.0 * of(Count::cpu)),
        by(Count::cpu),
        then(|_, cpu| cpu),
        units::rate(of(Count::per_cpu_s)),
        by(Count::per_cpu_s),
        then(|loops, cpu| loops / cpu),
    ]
}
