//! The table of an audit, and its score.

use super::results::Record;
use super::verdict::Verdict;
use std::time::Duration;

/// A line of the table.
#[derive(Clone, Debug)]
pub struct Row {
    /// The mutant.
    pub mutant: String,
    /// The tests.
    pub tests: String,
    /// The verdict.
    pub verdict: Verdict,
    /// How long the tests ran.
    pub took: Duration,
    /// Notes, with commas between them.
    pub note: String,
}

impl Row {
    /// A row without a note.
    pub fn new(mutant: &str, tests: &str, verdict: Verdict, took: Duration) -> Self {
        Self { mutant: mutant.into(), tests: tests.into(), verdict, took, note: String::new() }
    }

    /// The row with one more note.
    pub fn with_note(mut self, note: &str) -> Self {
        if !self.note.is_empty() {
            self.note += ", ";
        }
        self.note += note;
        self
    }

    /// The row with the failed test of `record` as a note.
    pub fn with_record(self, record: &Record) -> Self {
        match (&record.by, record.executions) {
            (Some(by), Some(n)) => self.with_note(&format!("by {by}, at execution {n}")),
            (Some(by), None) => self.with_note(&format!("by {by}")),
            (None, _) => self,
        }
    }

    /// The row on a line of its own.
    pub fn line(&self) -> String {
        let Self { mutant, tests, verdict, took, note } = self;
        let note = if note.is_empty() { String::new() } else { format!(", {note}") };
        format!("{mutant}, {tests}: {verdict}, {:.1} s{note}", took.as_secs_f64())
    }
}

/// The rows as a table.
pub fn table(rows: &[Row]) -> String {
    let width = |column: fn(&Row) -> usize| rows.iter().map(column).max().unwrap_or(0);
    let (mutants, tests) = (width(|row| row.mutant.len()), width(|row| row.tests.len()));
    let mut table = format!("{:mutants$}  {:tests$}  {:>8}  verdict\n", "mutant", "tests", "time");
    for Row { mutant, tests: named, verdict, took, note } in rows {
        let note = if note.is_empty() { String::new() } else { format!(", {note}") };
        let took = took.as_secs_f64();
        table += &format!("{mutant:mutants$}  {named:tests$}  {took:>6.1} s  {verdict}{note}\n");
    }
    table
}

/// How many of the orderings that are not explained were caught. None if none was run.
pub fn score(orderings: &[Row]) -> Option<String> {
    let count = |verdicts: &[Verdict]| orderings.iter().filter(|row| verdicts.contains(&row.verdict)).count();
    let caught = count(&[Verdict::Caught]);
    let survived = count(&[Verdict::Survived, Verdict::OutOfTime]);
    let (all, explained) = (caught + survived, count(&[Verdict::Explained]));
    (all > 0).then(|| {
        let percent = 100.0 * caught as f64 / all as f64;
        format!("Ordering audit score: {percent:.1} % ({caught} of {all} caught, {explained} explained)")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(verdict: Verdict) -> Row {
        Row::new("m", "vm", verdict, Duration::from_millis(1500))
    }

    #[test]
    fn the_score_counts_what_is_caught_of_what_is_not_explained() {
        let verdicts = [
            Verdict::Caught,
            Verdict::Caught,
            Verdict::Survived,
            Verdict::OutOfTime,
            Verdict::Explained,
            Verdict::NotRun,
        ];
        let rows = verdicts.map(row);
        let expected = "Ordering audit score: 50.0 % (2 of 4 caught, 1 explained)";
        assert_eq!(score(&rows).unwrap(), expected);
        assert_eq!(score(&rows[4..]), None);
    }

    #[test]
    fn a_row_says_which_test_found_it() {
        let record = Record {
            key: "k".into(),
            hash: 1,
            verdict: Verdict::Caught,
            took: Duration::ZERO,
            by: Some("a::b".into()),
            executions: Some(7),
            code: None,
        };
        let row = row(Verdict::Caught).with_note("earlier").with_record(&record);
        assert_eq!(row.line(), "m, vm: caught, 1.5 s, earlier, by a::b, at execution 7");
        let table = table(&[row]);
        assert!(table.ends_with("  1.5 s  caught, earlier, by a::b, at execution 7\n"), "{table}");
    }
}
