//! The programs of the five mails: their own arguments and columns, on the engine of all rows.
//!
//! A mail's figures are data here, with the place where they stand. What is compared is the ratio
//! of two locks then with the ratio of the same two locks now, since machines have changed.

pub mod franke;
pub mod psrw;
pub mod sembench;
pub mod test_mutex;
pub mod tofutex;
pub mod ulockflex;

use crate::engine::cell::Subject;
use crate::engine::figures::{Figure, Unit};
use crate::engine::files;
use crate::engine::options::{self, List};
use crate::engine::plan::Order;
use crate::engine::progress::{print, say};
use crate::engine::record::{Ended, Line, Record};
use crate::engine::run::{self, exit_code, serve_or};
use crate::report::tables::{Table, wrapped};
use crate::report::units;
use crate::workloads::Scenario;
use anyhow::{Context, Result, ensure};
use clap::{Arg, Parser};
use std::path::PathBuf;
use std::process::ExitCode;

/// A table of a mail, with today's figures beside its own.
#[derive(Clone, Debug)]
pub struct MailTable {
    /// Which table of which mail.
    pub title: String,
    /// A line a row; heads of columns of the mail have its year in front.
    pub table: Table,
    /// What is different today, and why a figure of the mail has none beside it.
    pub today: &'static [&'static str],
}

/// A mail with figures.
pub struct Mail {
    /// Its records have this as the name of their row.
    pub row: &'static str,
    /// Author and year.
    pub mail: &'static str,
    /// The mail's tables beside ours.
    pub tables: Tables,
}

/// Every mail with figures, in the order of their years.
pub const ALL: &[Mail] = &[
    of(ulockflex::ROW, "Franke 2002", ulockflex::tables),
    of(test_mutex::ROW, "Molnar 2005", test_mutex::tables),
    of(psrw::ROW, "Desnoyers 2008", psrw::tables),
    of(sembench::ROW, "Mason 2010", sembench::tables),
    of(tofutex::ROW, "Long 2016", tofutex::tables),
];

type Tables = fn(&Record) -> Vec<MailTable>;

const fn of(row: &'static str, mail: &'static str, tables: Tables) -> Mail {
    Mail { row, mail, tables }
}

// A command line: what a program can be asked for, and what each of them can be. What help says
// first is of the program.
#[derive(Parser, Debug)]
#[command(name = P::NAME, version, mut_arg("rounds", P::rounds))]
struct CommandLine<P: Program> {
    #[command(flatten)]
    program: P,
    /// How often each runs
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Write the record here [default: in ulocks-report of the target directory]
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What those can be asked for that compare locks.
#[derive(clap::Args, Debug)]
struct Locks {
    /// The locks to measure; ratios are to the first
    #[arg(long, value_name = "LIST", value_parser = options::lock_names)]
    locks: Option<List<String>>,
}

impl Locks {
    fn or(&self, usual: &[&str]) -> Vec<String> {
        self.locks
            .as_ref()
            .map_or_else(|| usual.iter().map(ToString::to_string).collect(), |list| list.0.clone())
    }
}

/// A program of a mail, by its own arguments.
pub trait Program: clap::Args {
    /// Its name.
    const NAME: &'static str;
    /// The option that says how often each runs.
    fn rounds(option: Arg) -> Arg {
        option
    }
    /// What is to be run so often; an error is one of the arguments.
    fn order(&self, rounds: u32) -> Result<Order>;
    /// Runs it, and says which signal ended it.
    fn run(&self, order: &Order) -> Result<(Record, Option<i32>)> {
        run::run(order)
    }
    /// What is printed.
    fn shown(&self, record: &Record) -> String;
}

/// Measures, prints, and keeps the record where it was asked for, or beside those of the benches.
pub fn main<P: Program>() -> ExitCode {
    serve_or(|| {
        let CommandLine { program, rounds, json }: CommandLine<P> = options::parse();
        let writable = json.as_ref().map_or(Ok(()), |file| files::writable("--json", file));
        let order = writable.and_then(|()| program.order(rounds)).and_then(known);
        let order = order.unwrap_or_else(|error| options::refuse(&error));
        if json.is_none() {
            files::writable_folder()?;
        }
        say(&order.summary());
        let (record, signal) = program.run(&order)?;
        if record.lines.iter().all(|line| line.rounds.is_empty()) {
            say("ended before its first trial; nothing is kept");
            return Ok(exit_code(signal));
        }
        let path = match &json {
            None => files::keep(&files::folder()?, &record)?,
            Some(file) => {
                let text = files::json(&record)?;
                std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
                file.clone()
            }
        };
        say(&format!("record: {}", path.display()));
        let mut out = program.shown(&record);
        if record.ended == Ended::Interrupted {
            out += "The run was interrupted: what stands above rests on the trials that had ended.\n";
        }
        let printed = print(&out);
        Ok(if signal.is_some() { exit_code(signal) } else { printed })
    })
}

/// The order, if there is something in it, and each subject is one of its scenario's.
fn known(order: Order) -> Result<Order> {
    ensure!(!order.jobs.is_empty(), "nothing is left to run with these options");
    for job in &order.jobs {
        let mut names = job.subjects.iter();
        names.try_for_each(|name| Subject::of(&job.cell.scenario, name).map(drop)).context("--locks")?;
    }
    Ok(order)
}

/// Tables, and sentences behind them.
fn text(tables: Vec<MailTable>, sentences: impl IntoIterator<Item = String>) -> String {
    let sentences = sentences.into_iter().map(|sentence| wrapped(sentence.trim_end(), 4));
    tables.iter().map(|table| table.text() + "\n").chain(sentences).collect()
}

/// A line of a record beside the first line of its table, to which ratios are taken.
struct Case<'a> {
    record: &'a Record,
    line: &'a Line,
    first: &'a Line,
}

/// A column: its head, and what it says of a case.
type Column = (&'static str, fn(&Case<'_>) -> String);

impl Case<'_> {
    fn scenario(&self) -> Scenario {
        self.record.cells[self.line.cell].scenario
    }

    fn number(&self, figure: &str) -> Option<f64> {
        Some(self.line.measured(figure)?.value)
    }

    /// A figure as its unit is written.
    fn value(&self, figure: &str) -> String {
        let text: fn(f64) -> String = match Figure::find(figure).map(|figure| figure.unit) {
            Some(Unit::PerSecond) => units::rate,
            Some(Unit::Nanoseconds) => units::time,
            Some(Unit::Share) => |share| format!("{:.0} %", 100.0 * share),
            _ => units::digits,
        };
        text_of(self.number(figure), text)
    }

    /// A figure by that of the first line.
    fn ratio(&self, figure: &str) -> String {
        match self.line.ratio(self.first, figure) {
            _ if self.line.subject == self.first.subject => "1".into(),
            ratio => text_of(ratio.map(|ratio| ratio.value), units::digits),
        }
    }
}

/// What is not known is `-`.
fn text_of(value: Option<f64>, text: impl FnOnce(f64) -> String) -> String {
    value.filter(|value| value.is_finite()).map_or("-".into(), text)
}

/// The table of a cell: a row for each of its lines.
fn table(
    record: &Record,
    cell: usize,
    title: String,
    columns: &[Column],
    today: &'static [&'static str],
) -> Option<MailTable> {
    let lines: Vec<&Line> = record.lines.iter().filter(|line| line.cell == cell).collect();
    let first = lines.first()?;
    let row = |line: &&Line| columns.iter().map(|column| (column.1)(&Case { record, line, first })).collect();
    let rows = lines.iter().map(row).collect();
    Some(MailTable::new(title, columns.iter().map(|column| column.0), rows, today))
}

impl MailTable {
    fn new(
        title: String,
        header: impl IntoIterator<Item = &'static str>,
        rows: Vec<Vec<String>>,
        today: &'static [&'static str],
    ) -> Self {
        Self { title, table: Table { rows, ..Table::new(1, header) }, today }
    }

    /// As text of at most a hundred columns, the first to the left: columns that do not fit stand
    /// in another part.
    pub fn text(&self) -> String {
        let parts: Vec<String> = self.table.clone().fitting(true).iter().map(Table::text).collect();
        let [title, today] = [&self.title, &self.today.join("\n")]
            .map(|text| text.lines().map(|line| wrapped(line, 4)).collect::<String>());
        title + &parts.join("\n") + &today
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::pinning::Pin;

    #[test]
    fn sentences_are_no_wider_than_tables() {
        let sentence = "word ".repeat(50) + "\n";
        let shown = text(Vec::new(), Some(sentence.clone()));
        assert!(shown.lines().all(|line| line.len() <= 100) && shown.ends_with("word\n"), "{shown}");
        assert!(shown.split_whitespace().eq(sentence.split_whitespace()), "{shown}");
    }

    #[test]
    fn an_order_of_nothing_or_of_a_lock_of_another_kind_is_refused() {
        let order = |subjects: &[&str]| {
            let subjects: Vec<String> = subjects.iter().map(ToString::to_string).collect();
            Order::new(test_mutex::ROW, test_mutex::jobs(2, true, &subjects), 1, 1, Pin::None)
        };
        assert!(known(order(&["std", "fair"])).is_ok());
        // `futex` is a semaphore array.
        let error = known(order(&["std", "futex"])).map(drop).unwrap_err();
        assert!(format!("{error:#}").starts_with("--locks: unknown lock 'futex'; allowed: "), "{error:#}");
        let nothing = Order { jobs: Vec::new(), ..order(&[]) };
        assert!(known(nothing).map(drop).unwrap_err().to_string().starts_with("nothing is left to run"));
    }
}
