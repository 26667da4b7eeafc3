//! All contended cells of a record together: a line for each subject.

use super::answer::STD;
use super::tables::Table;
use super::units;
use crate::engine::cell::{Cell, Kind, Subject};
use crate::engine::record::Record;
use crate::statistics::geometric_mean;
use crate::statistics::rounds::{Ratio, mean_ratio};

/// Rate and CPU time by those of std, over all cells from two workers; where a subject is furthest
/// behind the best peer; and how unfair it becomes.
pub fn overview(record: &Record) -> Option<Table> {
    let is_contended = |cell: &usize| record.cells[*cell].x.is_some_and(|x| x >= 2.0);
    let cells: Vec<usize> = (0..record.cells.len()).filter(is_contended).collect();
    let heads = ["subject", "worst cell, by best peer", "rate, by std", "CPU/op, by std", "COV up to"];
    let mut table = Table::new(2, heads);
    for Subject { name, .. } in record.subjects.iter().filter(|subject| subject.kind != Kind::Baseline) {
        let by_peer = |&cell: &usize| {
            let peer = record.best_peer(cell, "rate")?;
            let part = record.ratio((cell, name), (cell, peer), "rate")?.value;
            let Cell { section, label, .. } = &record.cells[cell];
            Some((part, format!("{}, {section}, {label}, {peer}", units::fixed(part))))
        };
        let worst = cells.iter().filter_map(by_peer).min_by(|a, b| a.0.total_cmp(&b.0));
        let rate = over_cells(record, &cells, name, "rate").filter(|_| name != STD);
        if let (Some(rate), Some((_, worst))) = (rate, worst) {
            let [rate, cpu] = [Some(rate), over_cells(record, &cells, name, "cpu")].map(units::ratio);
            let covs = cells.iter().filter_map(|&cell| Some(record.measured(cell, name, "cov")?.value));
            table.rows.push(vec![name.clone(), worst, rate, cpu, units::fixed(covs.fold(0.0, f64::max))]);
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

/// A figure by that of std: one ratio a round, the geometric mean over cells, and then over the
/// rounds that have all cells.
fn over_cells(record: &Record, cells: &[usize], mine: &str, figure: &str) -> Option<Ratio> {
    let rounds = |cell: usize, subject| record.line(cell, subject)?.rounds.get(figure);
    let pairs = cells.iter().map(|&cell| rounds(cell, mine).zip(rounds(cell, STD)));
    let pairs: Vec<_> = pairs.collect::<Option<_>>()?;
    let of_round = |round: usize| {
        let ratio = |(mine, other): &(&Vec<_>, &Vec<_>)| Some((*mine.get(round)?)? / (*other.get(round)?)?);
        Some(geometric_mean(&pairs.iter().map(ratio).collect::<Option<Vec<f64>>>()?))
    };
    let rounds = if pairs.is_empty() { 0 } else { record.rounds_done() };
    mean_ratio(&(0..rounds).filter_map(of_round).collect::<Vec<f64>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::plain;

    #[test]
    fn all_contended_cells_count_alike() {
        let mut record = plain(7);
        record.lines.retain(|line| line.subject != "usync" || line.cell != 3);
        let table = overview(&record).unwrap();
        let line: Vec<&str> = table.rows[0].iter().map(String::as_str).collect();
        assert_eq!(
            line[..4],
            ["even", "1.20, (0, 0) us, 2 threads, usync", "1.20 [1.20 1.20]", "0.80 [0.80 0.80]"]
        );
        // std is what all are compared with, and a subject that lacks a cell has no mean.
        assert_eq!(table.rows.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(), ["even", "greedy"]);
    }
}
