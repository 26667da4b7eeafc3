//! The program of the rows: what `cargo bench` starts.
//!
//! Tables, records and the page go to the folder of [`files`], progress to standard error, and the
//! last screen, on standard output, is the answer.
//!
//! Exit codes: 0; 1 when a trial fails (a lock that lost an update, a trial that hung) or a file
//! cannot be written; 2 for wrong options; 128 + N after signal N (Ctrl-C, SIGTERM, SIGHUP), which
//! leaves a record of the trials that had ended.

use super::cell::{Kind, Subject};
use super::files;
use super::journal::Journal;
use super::options::{self, Options};
use super::plan::{self, Order};
use super::progress::{print, say};
use super::record::{Ended, Mode, Record};
use super::run::{self, exit_code, serve_or};
use crate::report::{answer, page, tables, units};
use crate::rows::{Row, Wish};
use crate::run::busy_work::{self, Span};
use crate::run::machine;
use crate::workloads::Times;
use anyhow::{Context, Result, anyhow, bail, ensure};
use std::fs::{File, TryLockError};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Rows, and what is run of each.
pub type Orders<'a> = Vec<(&'a Row, Order)>;

/// The whole program of these rows.
pub fn main(rows: &'static [Row]) -> ExitCode {
    serve_or(|| {
        let options = options::parse_bench(rows, std::env::args_os().collect());
        if options.list {
            return Ok(print(&options::list(rows)));
        }
        let (mut orders, remarks) = plan(rows, &options).unwrap_or_else(|error| options::refuse(&error));
        if orders.is_empty() {
            // Only groups of criterion's are named.
            return Ok(ExitCode::SUCCESS);
        }
        let folder = files::writable_folder()?;
        for (_, order) in &mut orders {
            order.journal = Some(folder.join(files::stem(&order.row, order.mode) + ".journal"));
            order.resume = options.resume;
        }
        let begun = |order: &Order| order.journal.as_ref().is_some_and(|journal| journal.exists());
        if options.resume && !orders.iter().any(|(_, order)| begun(order)) {
            let text = "--resume: there is no interrupted run of these rows in";
            options::refuse(&anyhow!("{text} {}; without --resume a run begins anew", folder.display()));
        }
        for (row, order) in &orders {
            Journal::begin(order).with_context(|| row.name).unwrap_or_else(|error| options::refuse(&error));
        }
        // A smoke run is part of `cargo test`, beside which a run goes on.
        let lock = File::open(&folder)?;
        let taken = options.mode() != Mode::Smoke && matches!(lock.try_lock(), Err(TryLockError::WouldBlock));
        ensure!(!taken, "another run is writing into {}", folder.display());
        remarks.iter().for_each(|remark| say(remark));
        for (row, _) in orders.iter().filter(|(_, order)| !options.resume && begun(order)) {
            say(&format!("{}: begins anew; --resume would go on with the interrupted run", row.name));
        }
        measure(&orders, &options, &folder)
    })
}

/// What is run of the rows that are named, in their own order, or of all, and remarks. All that can
/// be wrong with the options shows here; the bench that runs before this program asks it, too.
pub fn plan<'a>(rows: &'a [Row], options: &Options) -> Result<(Orders<'a>, Vec<String>)> {
    let list = |rows: &[&Row]| rows.iter().map(|row| row.name).collect::<Vec<_>>().join(", ");
    for name in &options.rows {
        ensure!(
            options::group_of(name).is_some() || rows.iter().any(|row| row.name == name),
            "unknown row '{name}'; allowed: {}, and what criterion runs: {}",
            list(&rows.iter().collect::<Vec<_>>()),
            options::GROUPS.join(", ")
        );
    }
    let asked = |row: &&Row| options.rows.is_empty() || options.rows.iter().any(|name| name == row.name);
    let rows: Vec<&Row> = rows.iter().filter(asked).collect();
    if options.list {
        return Ok((Vec::new(), Vec::new()));
    }
    if rows.is_empty() {
        let option = options.of_rows().into_iter().next();
        let groups = options.rows.join(", ");
        option.map_or(Ok(()), |option| {
            Err(anyhow!("{option}: not heeded by {groups}; it is of no use here"))
        })?;
        return Ok((Vec::new(), Vec::new()));
    }
    let wish = options.wish();
    let mut remarks = unheeded(&rows, &wish, options.pin.is_some())?;
    let command = format!("cargo bench -- {}", options::arguments()).trim_end().to_owned();
    let mut orders = Vec::new();
    for &row in &rows {
        let mut jobs = (row.jobs)(&wish);
        if let Some(part) = &options.only {
            jobs.retain(|job| job.cell.section.contains(part) || job.cell.label.contains(part));
        }
        for job in &mut jobs {
            // What --locks names is of any registry.
            let scenario = job.cell.scenario;
            job.subjects.retain(|name| wish.subjects.is_none() || Subject::of(&scenario, name).is_ok());
        }
        jobs.retain(|job| !job.subjects.is_empty());
        if jobs.is_empty() {
            remarks.push(if options.mode() == Mode::Quick && row.share_s.1 == 0 {
                format!("{}: not in a quick look; without --quick it takes {} s", row.name, row.share_s.0)
            } else {
                format!("{}: with these options there is nothing to run", row.name)
            });
            continue;
        }
        orders.push((row, Order { command: command.clone(), ..plan::plan(row, options, jobs) }));
    }
    let names = || list(&rows);
    match (&options.only, &options.locks) {
        _ if !orders.is_empty() => {}
        (Some(part), _) => bail!("--only: no cell of {} with these options contains '{part}'", names()),
        (None, Some(_)) => bail!("--locks: no cell of {} has one of these locks", names()),
        (None, None) => bail!("nothing is left of {} with these options", names()),
    }
    let iterations_per_us = busy_work::calibrate();
    for (_, order) in orders.iter().filter(|order| wish.times.is_some() && order.1.mode != Mode::Smoke) {
        // A window must hold more than a few of them.
        let most = Duration::from_millis(order.window_ms) / 10;
        for (option, mean) in [("--hold", options.hold), ("--think", options.think)] {
            let mean = mean.unwrap_or_default();
            Span::new(&format!("{option}: a time"), mean.as_nanos() as u64, iterations_per_us)?;
            ensure!(
                mean <= most,
                "{option}: a time of {mean:?} cannot be measured; allowed: up to {most:?}, a tenth of --seconds"
            );
        }
    }
    if let Some(file) = &options.json {
        files::writable("--json", file)?;
    }
    let mut after_s = 0.0;
    for (_, order) in orders.iter_mut().rev() {
        order.after_s = after_s;
        after_s += order.takes_s();
    }
    Ok((orders, remarks))
}

/// Refuses an option that none of these rows heeds; remarks on the rows that do not heed one. A row
/// heeds what changes its jobs.
fn unheeded(rows: &[&Row], wish: &Wish, pins: bool) -> Result<Vec<String>> {
    let plain = Wish { threads: None, times: None, subjects: None, ..wish.clone() };
    // Nobody has these by default.
    let (threads, subjects) =
        (wish.threads.is_some().then(|| vec![7]), wish.subjects.as_ref().map(|_| vec![]));
    let times = wish.times.map(|_| Times { hold_ns: 12_345, think_ns: 54_321 });
    let mut remarks = Vec::new();
    let mut remark = |option: &str, is_deaf: &dyn Fn(&Row) -> bool| {
        let deaf: Vec<&str> = rows.iter().filter(|row| is_deaf(row)).map(|row| row.name).collect();
        let text = format!("{option}: not heeded by {}", deaf.join(", "));
        ensure!(deaf.len() < rows.len(), "{text}; {option} is of no use here");
        remarks.extend((!deaf.is_empty()).then_some(text));
        Ok(())
    };
    for (option, odd) in [
        ("--threads", Wish { threads, ..plain.clone() }),
        ("--hold or --think", Wish { times, ..plain.clone() }),
        ("--locks", Wish { subjects, ..plain.clone() }),
    ] {
        let is_given = odd != plain;
        remark(option, &|row| {
            let jobs = (row.jobs)(&odd);
            is_given && !jobs.is_empty() && (row.jobs)(&plain) == jobs
        })?;
    }
    remark("--pin", &|row| pins && !(row.jobs)(wish).iter().any(|job| job.cell.scenario.heeds_pin()))?;
    Ok(remarks)
}

/// Measures, and writes everything.
fn measure(orders: &[(&Row, Order)], options: &Options, folder: &Path) -> Result<ExitCode> {
    let all_s: f64 = orders.iter().map(|(_, order)| order.takes_s()).sum();
    let what = match options.mode() {
        Mode::Full if options.full => "a full run, as long as it takes",
        Mode::Full => "a run",
        Mode::Quick => "a quick look",
        Mode::Smoke => "a smoke run, which measures nothing (for a measurement: cargo bench)",
    };
    let all = format!("ulocks: {what}, {} min, on {}", units::clock(all_s), machine::describe());
    for text in [all].into_iter().chain(orders.iter().map(|(_, order)| order.summary())) {
        text.lines().for_each(|line| say(tables::wrapped(line, 2).trim_end()));
    }
    let (mut records, mut failed, mut signal) = (Vec::new(), false, None);
    for (row, order) in orders {
        match run::run(order) {
            Err(error) => {
                say(&format!("error: {}: {error:#}", row.name));
                failed = true;
            }
            Ok((record, interrupted)) => {
                signal = interrupted;
                if record.lines.is_empty() {
                    say(&format!("{}: ended before its first trial", row.name));
                } else {
                    report(row, order, &record, options, folder)?;
                    records.push(record);
                }
            }
        }
        if signal.is_some() {
            break;
        }
    }
    if let Some(file) = options.json.as_ref().filter(|_| !records.is_empty()) {
        let all: Vec<String> = records.iter().map(files::json).collect::<Result<_>>()?;
        std::fs::write(file, format!("[\n{}\n]\n", all.join(",\n")))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    let page = page::write(folder)?;
    records.retain(answers);
    let screen = if records.is_empty() { String::new() } else { answer::screen(&records) };
    let places = format!("page: {}\nrecords and tables: {}\n", page.display(), folder.display());
    let printed = print(&(screen + &places));
    if signal.is_some() || failed {
        let what = if failed { "what had ended before the error is kept" } else { "interrupted" };
        say(&format!("{what}; to go on: the same command, with --resume"));
        return Ok(if signal.is_some() { exit_code(signal) } else { ExitCode::FAILURE });
    }
    for journal in orders.iter().filter_map(|(_, order)| order.journal.as_ref()) {
        std::fs::remove_file(journal).with_context(|| format!("cannot remove {}", journal.display()))?;
    }
    Ok(printed)
}

/// Writes the record of a row and its tables, and says what it says.
fn report(row: &Row, order: &Order, record: &Record, options: &Options, folder: &Path) -> Result<()> {
    let path = files::keep(folder, record)?;
    let tables = tables::tables(record, row);
    files::write(&path.with_extension("txt"), &tables)?;
    let (name, rounds, all) = (row.name, record.rounds_done(), order.rounds);
    match record.ended {
        // What it went on from is in it.
        Ended::Rounds if order.resume => files::remove_interrupted(folder, record),
        Ended::Rounds => {}
        Ended::Budget => say(&format!(
            "{name}: took far longer than its plan reckons and was ended; there are {rounds} of {all} rounds"
        )),
        Ended::Interrupted => say(&format!("{name}: interrupted in round {rounds} of {all}")),
    }
    say(&format!("{name}: {}", path.display()));
    if options.verbose {
        print(&tables);
    }
    if answers(record) {
        (row.sentences)(record).iter().for_each(|sentence| say(&format!("  {sentence}")));
    }
    Ok(())
}

/// Whether a record supports an answer. That of a run that ended early does if one whole round has
/// ended in which a peer and two subjects of the family ran.
fn answers(record: &Record) -> bool {
    let known = |values: &Vec<Option<f64>>| values.first().is_some_and(Option::is_some);
    let in_first = |subject: &&Subject| {
        let mut lines = record.lines.iter().filter(|line| line.subject == subject.name).peekable();
        lines.peek().is_some() && lines.all(|line| line.rounds.values().any(known))
    };
    let of = |kind| record.subjects.iter().filter(|subject| subject.kind == kind).filter(in_first).count();
    let whole = || record.rounds_done() > 1 && of(Kind::Peer) >= 1 && of(Kind::Family) >= 2;
    record.mode != Mode::Smoke && (record.ended == Ended::Rounds || whole())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows;

    #[test]
    fn an_option_that_nothing_heeds_is_refused() {
        let refusal = |line: &str| {
            let words = format!("bench --bench {line}");
            let options = options::parse_bench(rows::ALL, words.split(' ').map(Into::into).collect());
            plan(rows::ALL, &options).err().map(|error| error.to_string())
        };
        let refused = [
            ("psrw --pin none", "--pin: not heeded by psrw; --pin is of no use here"),
            ("contended --hold 3us", "--hold: not heeded by contended; it is of no use here"),
            ("contended handoff --pin none", "--pin: not heeded by contended, handoff; it is of no use here"),
        ];
        for (line, error) in refused {
            assert_eq!(refusal(line).as_deref(), Some(error), "{line}");
        }
        for line in ["scaling psrw --pin none", "contended --threads 2", "contended scaling --hold 3us"] {
            assert!(refusal(line).is_none_or(|error| !error.contains("of no use")), "{line}");
        }
    }
}
