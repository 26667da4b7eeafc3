//! Two records of a row side by side: what changed from one run to another.
//!
//! Rounds of two runs are not paired. So an interval is that of two independent means of logarithms
//! (Welch's, with the fewer degrees of freedom of the two), and is wider than those inside a run. A
//! machine that became faster or slower shows in all subjects alike: those of the peers say so.

use super::tables::{Table, wrapped};
use super::units;
use crate::engine::cell::{Cell, Kind};
use crate::engine::figures::Figure;
use crate::engine::record::{Line, Record};
use crate::statistics::rounds::Ratio;
use crate::statistics::{geometric_mean, logarithms, mean, standard_deviation, student_t};
use std::cmp::Ordering;

/// The figures that are compared: of each line the first of these that both records have.
const FIGURES: [&str; 7] =
    ["rate", "pair", "recovery", "mean-done", "wait-mean", "urgent/rate", "writer/rate"];

/// How a subject in a cell changed: what stands in the table, the ratio turned so that more is
/// better, and whether it is of the family.
struct Change {
    section: String,
    words: Vec<String>,
    gain: Ratio,
    is_family: bool,
}

fn verdict(gain: &Ratio) -> &'static str {
    match gain.verdict() {
        Ordering::Greater => "better",
        Ordering::Less => "worse",
        Ordering::Equal => "no verdict",
    }
}

/// Where a cell is in another record: the same one, or what is called otherwise there.
fn place(record: &Record, cell: &Cell) -> Option<usize> {
    record.cells.iter().position(|known| known == cell).or_else(|| record.cell_of(&cell.scenario))
}

fn change(before: &Record, after: &Record, line: &Line) -> Option<Change> {
    let cell = &after.cells[line.cell];
    let old = before.line(place(before, cell)?, &line.subject)?;
    let (figure, a, b) = FIGURES.iter().find_map(|name| {
        let [a, b] = [old, line].map(|line| line.values(name));
        let known = !a.is_empty() && !b.is_empty() && a.iter().chain(&b).all(|&value| value > 0.0);
        known.then_some((Figure::find(name)?, a, b))
    })?;
    let gain = if figure.more_is_better { unpaired(&b, &a) } else { unpaired(&a, &b) };
    let show = |values: &[f64]| units::of(figure.unit)(geometric_mean(values));
    let mut words = vec![cell.label.clone(), line.subject.clone(), figure.title.into(), show(&a), show(&b)];
    words.extend([units::ratio(Some(unpaired(&b, &a))), verdict(&gain).into()]);
    let section = cell.section.clone();
    Some(Change { section, words, gain, is_family: after.kind(&line.subject) == Some(Kind::Family) })
}

fn changes(before: &Record, after: &Record) -> Vec<Change> {
    after.lines.iter().filter_map(|line| change(before, after, line)).collect()
}

fn counted(changes: &[Change]) -> String {
    let count = |what| changes.iter().filter(|change| verdict(&change.gain) == what).count();
    let [better, worse, none] = ["better", "worse", "no verdict"].map(count);
    let others = changes.iter().filter(|change| !change.is_family);
    let drift: Vec<f64> = others.map(|change| change.gain.value).collect();
    let mut text = format!("{} figures: {better} better, {worse} worse, {none} without", changes.len());
    text += " a verdict; by chance one in twenty has a wrong one.";
    if !drift.is_empty() {
        let drift = units::fixed(geometric_mean(&drift));
        text += &format!(" What is not of this family does {drift} of what it did.");
    }
    text
}

/// The verdict of a run on the one before it, in a sentence or two.
pub fn summary(before: &Record, after: &Record) -> Option<String> {
    let changes = changes(before, after);
    (!changes.is_empty()).then(|| format!("Since the run of {}: {}", before.machine.date, counted(&changes)))
}

/// The comparison, as text: a line for each cell and subject that both have, then the verdicts
/// counted.
pub fn compare(before: &Record, after: &Record) -> String {
    let [a, b] =
        [("A", before), ("B", after)].map(|(name, of)| wrapped(&format!("{name}: {}", of.machine), 4));
    let mut out = a + &b;
    if before.machine.cpu_model != after.machine.cpu_model {
        out += "These are two processors: compare ratios inside a run, not these.\n";
    }
    let changes = changes(before, after);
    if changes.is_empty() {
        return out + "The records have no cell and subject in common.\n";
    }
    for section in after.sections() {
        let mut table = Table::new(3, ["", "subject", "figure", "A", "B", "B by A", "verdict"]);
        let here = changes.iter().filter(|change| change.section == section);
        table.rows.extend(here.map(|change| change.words.clone()));
        for part in table.fitting(true).iter().filter(|part| !part.rows.is_empty()) {
            out += &format!("\n{}{}", wrapped(section, 4), part.text());
        }
    }
    out + "\n" + &wrapped(&counted(&changes), 0)
}

/// The ratio of two geometric means whose values are not paired.
fn unpaired(a: &[f64], b: &[f64]) -> Ratio {
    let [log_a, log_b] = [a, b].map(logarithms);
    let value = mean(&log_a) - mean(&log_b);
    let fewer = log_a.len().min(log_b.len());
    let interval = (fewer >= 2).then(|| {
        let part = |values: &[f64]| standard_deviation(values).powi(2) / values.len() as f64;
        let half = student_t(fewer - 1) * (part(&log_a) + part(&log_b)).sqrt();
        ((value - half).exp(), (value + half).exp())
    });
    Ratio { value: value.exp(), interval, rounds: fewer, is_range: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::plain;
    use crate::report::kept;
    use crate::workloads::Scenario;

    #[test]
    fn every_figure_of_a_changed_run_has_a_verdict() {
        let (before, mut after) = (plain(7), plain(7));
        assert!(compare(&before, &after).contains("40 figures: 0 better, 0 worse, 40 without"));
        for line in after.lines.iter_mut().filter(|line| line.subject == "even") {
            line.rounds.values_mut().flatten().flatten().for_each(|value| *value *= 2.0);
        }
        let text = compare(&before, &after);
        assert!(text.contains("8 better, 0 worse, 32 without") && text.contains("does 1.00 of"), "{text}");
        assert!(text.lines().skip(2).all(|line| line.chars().count() <= 100), "{text}");
        after.cells.iter_mut().for_each(|cell| cell.scenario = Scenario::Handoff);
        assert!(compare(&before, &after).contains("no cell and subject in common"));
    }

    /// Promises have labels that are not unique.
    #[test]
    fn a_record_is_level_with_itself() {
        let path = format!("{}/results/2026-11-24-epyc-2cpu-kvm.json", env!("CARGO_MANIFEST_DIR"));
        for record in kept::read(path.as_ref()).unwrap() {
            for Change { words, gain, .. } in changes(&record, &record) {
                assert!((gain.value - 1.0).abs() < 1e-9, "{}: {words:?}", record.row);
            }
        }
    }

    #[test]
    fn an_interval_is_that_of_two_independent_means() {
        // Logarithms 0, 1, 2 and 1, 2, 3: means 1 apart, each of variance 1 / 3; t(2) = 4.303.
        let values = |first: i32| (first..first + 3).map(|log| f64::from(log).exp()).collect::<Vec<_>>();
        let ratio = unpaired(&values(1), &values(0));
        let half = 4.303 * (2.0_f64 / 3.0).sqrt();
        let (low, high) = ratio.interval.unwrap();
        assert!((ratio.value.ln() - 1.0).abs() < 1e-9);
        assert!((low.ln() - (1.0 - half)).abs() < 1e-2 && (high.ln() - (1.0 + half)).abs() < 1e-2);
        assert_eq!(unpaired(&[1.0], &[2.0]).interval, None);
    }
}
