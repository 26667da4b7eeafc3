//! Franke's figures of 2002.

use crate::workloads::Times;
use anyhow::{Context, Result, ensure};
use std::sync::LazyLock;

/// The tables of his mail, as they stand there.
const TEXT: &str = include_str!("franke-2002.txt");

/// A row of his tables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Column c.
    pub children: u32,
    /// Column a.
    pub locks: u32,
    /// Column L.
    pub letter: char,
    /// Behind the letter s: shared acquisitions, percent.
    pub readers: Option<u8>,
    /// Column p, microseconds.
    pub patience_us: u32,
    /// Columns x and r.
    pub times: Times,
    /// Columns WC, RC, R, COV and ThPut; nothing of a row that is not his. WC and RC are exclusive
    /// and shared acquisitions that found the lock taken, in percent.
    pub then: Option<[f64; 5]>,
}

impl Row {
    /// Loops a second of all children, then.
    pub fn per_s(&self) -> Option<f64> {
        self.then.map(|figures| figures[4])
    }
}

/// All rows.
pub fn rows() -> &'static [Row] {
    static ROWS: LazyLock<Vec<Row>> =
        LazyLock::new(|| parse(TEXT).expect("the file was checked when it was written"));
    &ROWS
}

fn parse(text: &str) -> Result<Vec<Row>> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    lines.map(|(number, line)| row(line).with_context(|| format!("line {number}, '{line}'"))).collect()
}

/// One line; what follows the last column is a remark in brackets.
fn row(line: &str) -> Result<Row> {
    let line = line.replace("s100", "s 100");
    let mut fields: Vec<&str> = line.split_whitespace().collect();
    ensure!(fields.len() >= 13, "thirteen columns are wanted");
    let readers = if fields[4] == "s" { Some(fields.remove(5).parse()?) } else { None };
    ensure!(
        fields.get(13).is_none_or(|remark| remark.starts_with('(')),
        "thirteen columns and a remark in brackets are wanted"
    );
    let number = |at: usize| fields[at].parse::<f64>().with_context(|| format!("'{}'", fields[at]));
    let whole = |at: usize| number(at).map(|value| value as u32);
    Ok(Row {
        children: whole(0)?,
        locks: whole(1)?,
        letter: fields[4].chars().next().context("column L is a letter")?,
        readers,
        patience_us: whole(5)?,
        times: Times::us(whole(7)?.into(), whole(6)?.into()),
        then: Some([number(8)?, number(9)?, number(10)?, number(11)?, number(12)?]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_read_as_the_legend_says() {
        let calock = row("2 1 10 5 C 3 0 10 2.43 0.00 41.12 0.227824 64425 (C4)").unwrap();
        assert_eq!((calock.letter, calock.patience_us, calock.times), ('C', 3, Times::us(10, 0)));
        assert_eq!(calock.then, Some([2.43, 0.0, 41.12, 0.227824, 64425.0]));
        for shared in ["s 100", "s100"] {
            let line = format!("2 1 10 5 {shared} 0 10 0 0.49 0.25 0.00 0.001672 121785");
            let shared = row(&line).unwrap();
            assert_eq!(
                (shared.readers, shared.times, shared.then.unwrap()[1]),
                (Some(100), Times::us(0, 10), 0.25)
            );
        }
        assert!(row("1 1 10 5 e 0 0 10 0.00 0.00 0.00 0.0 93978 7").is_err());
    }

    #[test]
    fn each_row_stands_there_once() {
        let key = |row: &Row| {
            format!("{:?}", (row.children, row.locks, row.letter, row.readers, row.patience_us, row.times))
        };
        let keys: std::collections::HashSet<_> = rows().iter().map(key).collect();
        assert_eq!((keys.len(), rows().len()), (167, 167));
        assert_eq!(rows().iter().filter(|row| row.locks == 2).count(), 24);
        assert_eq!(rows().iter().filter(|row| row.times.is_bare()).count(), 16);
    }
}
