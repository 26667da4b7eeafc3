//! Franke's figures of 2002, and the ratios they come to.

use crate::workloads::Workload;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// The lines of his mail that are compared with, and where they stand.
const TEXT: &str = include_str!("franke-2002.txt");

/// SysV's letter in his table.
pub const SYSV: Letter = Letter('k', 0);
/// The letter of usema, his semaphore.
pub const USEMA: Letter = Letter('f', 0);

/// A lock as his table has it: columns L and p.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Letter(pub char, pub u32);

/// A row of his table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Column c.
    pub children: u32,
    /// Column L.
    pub letter: char,
    /// Column p, microseconds.
    pub patience_us: u32,
    /// Columns x and r.
    pub workload: Workload,
    /// Column WC: contended acquisitions, percent.
    pub contended: f64,
    /// Column R where it counts entries into the kernel, that is for calocks.
    pub reentries: Option<f64>,
    /// Column COV.
    pub cov: f64,
    /// Column ThPut: loops per second of all children.
    pub per_s: f64,
}

/// All rows.
pub fn rows() -> &'static [Figures] {
    static ROWS: LazyLock<Vec<Figures>> =
        LazyLock::new(|| parse(TEXT).expect("the file was checked when it was written"));
    &ROWS
}

/// The row of a lock in a cell, if he measured it.
pub fn find(lock: Letter, workload: Workload, children: u32) -> Option<&'static Figures> {
    rows().iter().find(|row| {
        (Letter(row.letter, row.patience_us), row.workload, row.children) == (lock, workload, children)
    })
}

/// The throughput of a lock by that of another in the same cell, if he measured both.
pub fn ratio(lock: Letter, other: Letter, workload: Workload, children: u32) -> Option<f64> {
    Some(find(lock, workload, children)?.per_s / find(other, workload, children)?.per_s)
}

fn parse(text: &str) -> Result<Vec<Figures>> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    lines.map(|(number, line)| row(line).with_context(|| format!("line {number}, '{line}'"))).collect()
}

/// One line; what follows the last column is a remark in brackets.
fn row(line: &str) -> Result<Figures> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let remark = fields.get(13);
    ensure!(
        fields.len() >= 13 && remark.is_none_or(|remark| remark.starts_with('(')),
        "thirteen columns and a remark in brackets are wanted"
    );
    fn number<T: std::str::FromStr>(field: &str) -> Result<T> {
        field.parse().ok().with_context(|| format!("'{field}' is not such a number"))
    }
    let mut letters = fields[4].chars();
    let letter = letters.next().filter(|_| letters.next().is_none()).context("column L is one letter")?;
    let us = |field| -> Result<u64> { Ok(1000 * number::<u64>(field)?) };
    Ok(Figures {
        children: number(fields[0])?,
        letter,
        patience_us: number(fields[5])?,
        workload: Workload { hold_ns: us(fields[7])?, non_hold_ns: us(fields[6])? },
        contended: number(fields[8])?,
        reentries: if letter.eq_ignore_ascii_case(&'c') { Some(number(fields[10])?) } else { None },
        cov: number(fields[11])?,
        per_s: number(fields[12])?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const ONE_NINE: Workload = Workload { hold_ns: 1_000, non_hold_ns: 9_000 };
    const CALOCK: Letter = Letter('c', 0);

    #[test]
    fn columns_are_read_as_the_legend_says() {
        let row = row("100 1 10 5 f 0 9 1 100.00 0.00 0.00 0.079500 67188 (E1)").unwrap();
        assert_eq!((row.children, row.letter, row.patience_us, row.workload), (100, 'f', 0, ONE_NINE));
        assert_eq!((row.contended, row.reentries, row.cov, row.per_s), (100.0, None, 0.0795, 67188.0));
        let calock = super::row("2 1 10 5 C 3 0 10 2.43 0.00 41.12 0.227824 64425 (C4)").unwrap();
        assert_eq!((calock.reentries, calock.patience_us, calock.workload.hold_ns), (Some(41.12), 3, 10_000));
    }

    #[test]
    fn what_is_no_row_says_why() {
        for (line, reason) in [
            ("1 1 10 5 e 0 0 10 0.00", "thirteen columns"),
            ("1 1 10 5 e 0 0 10 0.00 0.00 0.00 0.0 93978 7", "a remark in brackets"),
            ("1 1 10 5 ek 0 0 10 0.00 0.00 0.00 0.0 93978", "column L is one letter"),
            ("one 1 10 5 e 0 0 10 0.00 0.00 0.00 0.0 93978", "'one' is not such a number"),
        ] {
            let error = format!("{:#}", parse(line).unwrap_err());
            assert!(error.starts_with("line 1, '") && error.contains(reason), "{error}");
        }
        assert!(parse("# a remark\n\n").unwrap().is_empty());
    }

    #[test]
    fn each_row_stands_there_once() {
        let key = |row: &Figures| (row.children, row.letter, row.patience_us, row.workload);
        let keys: HashSet<_> = rows().iter().map(key).collect();
        assert_eq!((keys.len(), rows().len()), (115, 115));
        // He had one workload for a thousand, and ran without a lock alone.
        let crowd: Vec<_> = rows().iter().filter(|row| row.children == 1000).collect();
        assert!(crowd.len() == 7 && crowd.iter().all(|row| row.workload == ONE_NINE));
        assert!(rows().iter().all(|row| row.letter != 'e' || row.children == 1));
    }

    #[test]
    fn the_ratios_he_is_quoted_for() {
        let with_a_thousand = |other| ratio(CALOCK, other, ONE_NINE, 1000).unwrap();
        assert_eq!(with_a_thousand(SYSV).round(), 77.0);
        assert_eq!(with_a_thousand(USEMA).round(), 40.0);
        let fully_contended = Workload { hold_ns: 10_000, non_hold_ns: 0 };
        assert_eq!(ratio(CALOCK, SYSV, fully_contended, 2).unwrap(), 48821.0 / 59885.0);
        assert_eq!(ratio(CALOCK, SYSV, fully_contended, 1000), None);
        assert_eq!(ratio(Letter('e', 0), SYSV, ONE_NINE, 2), None);
    }
}
