//! The tables on standard output.

use super::{Record, Row};
use crate::programs::harness::comparison::Measured as Compared;
use crate::report::{Table, describe, distinct, units};
use std::fmt::Write;

/// A table a workload, and what its columns mean.
pub fn tables(record: &Record) -> String {
    let mut out = String::new();
    for workload in distinct(record.rows.iter().map(|row| row.workload)) {
        writeln!(out, "\n{}, children are processes", describe(workload)).unwrap();
        table(record.rows.iter().filter(|row| row.workload == workload)).print(&mut out);
    }
    writeln!(out, "\n{NOTES}").unwrap();
    for line in record.caveats() {
        writeln!(out, "{line}").unwrap();
    }
    out
}

const NOTES: &str = "\
2002      the same figure in Franke's table: calock-0 is his c, calock C with patience 0, calock-3us C with patience 3,
          fair and semaphore f, sysv k, none e; - where he has none
loops/s   all children together, geometric mean over rounds; a|b are two modes
by        loops/s by those of sysv and of the semaphore in the same round, [95 % interval], {range} over two modes;
          his by k and by f
WC        acquisitions that found the lock taken, percent; R: entries into the kernel to sleep per contended acquisition.
          Counted by a twin of the lock in one further trial
COV       coefficient of variation of the children's loops, 0 is fair; a window holds fewer time slices than there are
          children in a crowd, and COV there says more about the scheduler than about the lock
cpu       CPU time of a loop, the work inside and outside included";

fn table<'a>(rows: impl Iterator<Item = &'a Row>) -> Table {
    let header = [
        "c",
        "lock",
        "loops/s",
        "2002",
        "by sysv",
        "2002",
        "by semaphore",
        "2002",
        "WC",
        "2002",
        "R",
        "2002",
        "COV",
        "2002",
        "cpu",
    ];
    let mut table = Table::new(&[1, 4, 6], &header);
    let mut children = None;
    for row in rows {
        if children.is_some_and(|children| children != row.children) {
            table.gap();
        }
        children = Some(row.children);
        table.row(fields(row));
    }
    table
}

fn fields(row: &Row) -> Vec<String> {
    let known = |value: Option<f64>, show: fn(f64) -> String| value.map_or("-".into(), show);
    let (now, then) = (row.now.as_ref(), row.then.as_ref());
    let by = |compared: Option<&Compared>| compared.map_or("-".into(), Compared::ratio);
    vec![
        row.children.to_string(),
        row.lock.clone(),
        now.map_or("no data".into(), |now| now.per_s.rate()),
        known(then.map(|then| then.per_s), units::rate),
        by(now.and_then(|now| now.by_sysv.as_ref())),
        known(row.then_by_sysv, units::fixed),
        by(now.and_then(|now| now.by_semaphore.as_ref())),
        known(row.then_by_usema, units::fixed),
        known(now.and_then(|now| now.contended), percent),
        known(then.map(|then| then.contended), percent),
        known(now.and_then(|now| now.reentries), units::fixed),
        known(then.and_then(|then| then.reentries), units::fixed),
        known(now.map(|now| now.cov), units::digits),
        known(then.map(|then| then.cov), units::digits),
        known(now.and_then(|now| now.cpu_ns), units::time),
    ]
}

fn percent(value: f64) -> String {
    format!("{value:.1}")
}
