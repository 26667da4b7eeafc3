//! `scaling`: throughput, waits, fairness, CPU time and sleeps of every lock against the number of
//! threads.
//!
//! One round is every (lock, cell) once, in random order, each trial in a process of its own
//! ([`child`]). Rounds are repeated until all throughputs are known well enough,
//! a greatest number is reached, or the time is used up ([`plan`]). Each trial is written down when
//! it has ended, so that a run can go on after an interruption ([`journal`]).
//!
//! A JSON record, the page drawn from it and the tables go to `ulocks-report` in the target
//! directory, progress to standard error. The last screen, on standard output, is the answer in
//! sentences, with the paths of these files. Before it stand the tables if they are short, if there
//! is no answer, and with `--verbose`.
//!
//! Exit codes: 0; 1 when a trial fails (a lock that lost an update, a trial that hung) or a file
//! cannot be written; 2 for wrong options; 128 + N after signal N (Ctrl-C, SIGTERM, SIGHUP), which
//! leaves a report on the trials that had ended.

pub mod journal;
pub mod plan;

use crate::programs::harness::{self, Cli};
use crate::programs::options::{self, BenchOptions};
use crate::programs::progress::Progress;
use crate::report::{self, Ended, Kind, Lock, Mode, Report, Settings, Summary, Trial};
use crate::run::child::{self, Outcome, Runner};
use crate::run::{busy_work, machine};
use crate::subjects::locks::{self, Entry};
use crate::workloads::Workload;
use crate::workloads::trial::{TrialSpec, Workers};
use anyhow::Context;
use journal::Journal;
use plan::{Given, Plan, Wish};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The name of this harness, for cargo's filters and its files.
const NAME: &str = "scaling";

/// The whole program.
pub fn main() -> ExitCode {
    harness::main_with::<TrialSpec, Cli>(NAME, |cli| {
        let (mut report, plan) = prepare(cli.as_ref()).unwrap_or_else(|error| options::refuse(&error));
        measure(&mut report, &plan, cli.as_ref())
    })
}

/// Refuses options that [`main`] would refuse. The benches that run before it ask.
pub fn check(options: &BenchOptions) -> anyhow::Result<()> {
    prepare(options).map(drop)
}

/// Everything that can be wrong with the options shows here, before the first trial.
fn prepare(options: &BenchOptions) -> anyhow::Result<(Report, Plan)> {
    let mode = options.mode();
    let machine = machine::describe();
    let cpus = u32::try_from(machine.cpus_allowed).unwrap_or(u32::MAX).max(1);
    let iterations_per_us = busy_work::calibrate();
    let threads = options.threads.as_ref().map_or_else(|| plan::default_threads(cpus, mode), |t| t.0.clone());
    let workloads = match (options.hold, options.non_hold) {
        (None, None) if options.short => Workload::short().collect(),
        (None, None) => plan::default_workloads(mode),
        (hold, non_hold) => {
            let ns = |time: Option<Duration>| time.unwrap_or_default().as_nanos() as u64;
            vec![Workload { hold_ns: ns(hold), non_hold_ns: ns(non_hold) }]
        }
    };
    let locks = match &options.locks {
        Some(list) => in_order(&list.0),
        None => usual_locks(mode),
    };
    let given = Given {
        threads: options.threads.is_some(),
        locks: options.locks.is_some(),
        window_ms: options.seconds.map(|s| (s.as_millis() as u64).max(1)),
        rounds: options.rounds,
        full: options.full,
    };
    let plan = Plan::new(Wish { mode, locks, workloads, threads, given }, cpus);
    for (option, mean) in [("--hold", options.hold), ("--non-hold", options.non_hold)] {
        let window = Duration::from_millis(plan.window_ms);
        options::measurable(option, mean.unwrap_or_default(), window, iterations_per_us)?;
    }
    if let Some(file) = &options.json {
        options::writable("--json", file)?;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let report = Report {
        schema: report::SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        took_s: 0.0,
        mode,
        ended: Ended::Interrupted,
        resumed: Vec::new(),
        machine,
        options: Settings {
            threads: plan.threads.clone(),
            workloads: plan.workloads.clone(),
            pin: options.pin.unwrap_or_default().to_string(),
            window_ms: plan.window_ms,
            warmup_ms: plan.warmup_ms,
            min_rounds: plan.min_rounds,
            max_rounds: plan.max_rounds,
            precision: plan.precision,
            budget_s: plan.budget.map(|budget| budget.as_secs_f64()),
            left_out: plan.left_out.clone(),
            iterations_per_us,
            seed: now.subsec_nanos(),
        },
        locks: plan.locks.clone(),
        cells: plan.cells.clone(),
        trials: Vec::new(),
        summary: Summary::default(),
    };
    Ok((report, plan))
}

/// The locks that are measured without `--locks`.
fn usual_locks(mode: Mode) -> Vec<Lock> {
    in_order(&Vec::from_iter(Entry::all().iter().filter(|entry| is_usual(entry, mode))))
}

/// What is measured without `--locks`: all but twins with counters, variants with a fixed patience,
/// and probes; for a quick look the family, the two peers that ratios are taken to, and no lock at
/// all.
fn is_usual(entry: &Entry, mode: Mode) -> bool {
    let reference = [report::STD, report::PARKING_LOT].contains(&entry.name) || !entry.excludes;
    entry.is_usual() && (mode == Mode::Full || entry.family || reference)
}

/// The family first, then the peers, then no lock, each in the order of the registry and once.
fn in_order(entries: &[&'static Entry]) -> Vec<Lock> {
    let kind = |entry: &Entry| match (entry.excludes, entry.family) {
        (false, _) => Kind::Baseline,
        (true, true) => Kind::Family,
        (true, false) => Kind::Peer,
    };
    let of_kind = |wanted: Kind| {
        let chosen = locks::Entry::all().iter().filter(move |e| kind(e) == wanted);
        chosen.filter(|e| entries.iter().any(|chosen| chosen.name == e.name))
    };
    [Kind::Family, Kind::Peer, Kind::Baseline]
        .into_iter()
        .flat_map(of_kind)
        .map(|e| Lock { name: e.name.into(), kind: kind(e), about: e.about.into() })
        .collect()
}

/// Measures, and writes the report; returns the signal that came in between.
fn measure(report: &mut Report, plan: &Plan, options: &BenchOptions) -> anyhow::Result<Option<i32>> {
    let path = report::writable_folder()?.join(stem(report.mode)).with_extension("journal");
    let mut journal = if options.resume {
        Journal::resume(&path, report, plan).unwrap_or_else(|error| options::refuse(&error))
    } else {
        Journal::begin(&path, report)?
    };
    let keeper = Runner::new()?;
    eprintln!("{NAME}: {}, {}\n{plan}", headline(report.mode, options.full), report.machine);
    if let Some(last) = report.trials.last() {
        let took = report::clock(journal.elapsed().as_secs_f64());
        eprintln!(
            "{NAME}: goes on after {} trials, in round {}, {took} min",
            report.trials.len(),
            last.round + 1
        );
    }
    let signal = run(report, plan, options, &keeper, &mut journal)?;
    report.took_s = journal.elapsed().as_secs_f64();
    report.summary = report::summarise(report);
    let files = write(report, options.json.as_deref())?;
    say(report, &files, options.verbose);
    match signal {
        Some(_) => eprintln!("{NAME}: to go on: the same command, with --resume"),
        None => journal.remove()?,
    }
    Ok(signal)
}

fn headline(mode: Mode, in_full: bool) -> &'static str {
    match mode {
        Mode::Full if in_full => "a full run, as long as it takes",
        Mode::Full => "a full run",
        Mode::Quick => "a quick look",
        Mode::Smoke => "a smoke run (for a measurement: cargo bench)",
    }
}

/// Runs rounds until there are enough, the plan's limit has passed ([`Plan::limit`]), or a signal
/// comes; the report then says that it was interrupted. The trials that the report has are the
/// beginning of the run.
fn run(
    report: &mut Report,
    plan: &Plan,
    options: &BenchOptions,
    keeper: &Runner,
    journal: &mut Journal,
) -> anyhow::Result<Option<i32>> {
    let seed = u64::from(report.options.seed);
    let a_round = plan.trials().max(1);
    let share = report.trials.len() as f64 / (a_round * plan.rounds() as usize) as f64;
    let progress = Progress::new(NAME, (share, journal.elapsed()));
    loop {
        let (rounds, done) = (report.trials.len() / a_round, report.trials.len() % a_round);
        let round = rounds as u32;
        if done == 0 && round > 0 {
            journal.sync()?;
            if let Some(ended) = ended(report, plan, round, journal.elapsed().as_secs_f64()) {
                progress.end();
                report.ended = ended;
                return Ok(None);
            }
        }
        for (lock, cell) in plan.round(seed + u64::from(round)).into_iter().skip(done) {
            if plan.limit().is_some_and(|limit| journal.elapsed() >= limit) {
                progress.end();
                report.ended = Ended::Budget;
                return Ok(None);
            }
            let (name, what) = (&plan.locks[lock].name, plan.cells[cell]);
            let Workload { hold_ns, non_hold_ns } = what.workload;
            let (hold, non_hold) = (hold_ns as f64 / 1e3, non_hold_ns as f64 / 1e3);
            let all = a_round * plan.rounds().max(round + 1) as usize;
            progress.trial(
                report.trials.len(),
                all,
                &format!("{name} x{} ({hold}, {non_hold}) us", what.threads),
            );
            let spec = TrialSpec {
                lock: name.clone(),
                workers: Workers::Threads(what.threads),
                lock_count: 1,
                hold_ns: what.workload.hold_ns,
                non_hold_ns: what.workload.non_hold_ns,
                read_share: 0,
                warmup_ms: plan.warmup_ms,
                window_ms: plan.window_ms,
                pin: options.pin.unwrap_or_default(),
                waits: what.timed,
                iterations_per_us: report.options.iterations_per_us,
                seed: seed + report.trials.len() as u64,
            };
            let outcome = keeper.run(&spec).with_context(|| {
                progress.end();
                format!("{name}, {} threads, {}", what.threads, report::describe(what.workload))
            })?;
            match outcome {
                Outcome::Done(result) => {
                    let trial = Trial { round, lock: name.clone(), cell, result };
                    journal.trial(&trial)?;
                    report.trials.push(trial);
                }
                Outcome::Interrupted(signal) => {
                    progress.end();
                    report.ended = Ended::Interrupted;
                    return Ok(Some(signal));
                }
            }
        }
    }
}

/// Why no more rounds are run after so many, if none are.
fn ended(report: &Report, plan: &Plan, rounds: u32, elapsed_s: f64) -> Option<Ended> {
    let next_s = elapsed_s + elapsed_s / f64::from(rounds);
    match report::open_cells(report) {
        0 if rounds >= plan.min_rounds.max(plan::MIN_ROUNDS) => Some(Ended::Converged),
        _ if rounds >= plan.max_rounds => Some(Ended::Rounds),
        _ if rounds < plan.min_rounds => None,
        _ => plan.budget.filter(|budget| next_s > budget.as_secs_f64()).map(|_| Ended::Budget),
    }
}

/// Files of a run, beside its record.
struct Files {
    tables: PathBuf,
    page: PathBuf,
}

impl Files {
    /// They lie beside the record.
    fn of(record: &Path) -> Self {
        Self { tables: record.with_extension("txt"), page: record.with_extension("html") }
    }
}

/// Tables of so many lines are no log.
const SHORT: usize = 60;

/// The last screen: the answer, and where the files are.
fn say(report: &Report, files: &Files, verbose: bool) {
    let answer = report::answer(report);
    let mut out = String::new();
    let tables = report::tables(report);
    if verbose || answer.is_empty() || tables.lines().count() <= SHORT {
        out += &tables;
    }
    out += &answer;
    out += &format!("\ntables: {}\nreport: {}\n", files.tables.display(), files.page.display());
    // A reader that closes the pipe has seen enough.
    let _ = std::io::stdout().lock().write_all(out.as_bytes());
}

/// Says the answer again, if the process that started this one has had one written: in `cargo
/// bench` other benches run after this one, and the answer is to be the last screen.
pub fn remind() {
    // The output of a trial is its answer.
    if std::env::args_os().any(|argument| argument == child::TRIAL) {
        return;
    }
    let records = || {
        let folder = report::folder().ok()?;
        let records = [Mode::Full, Mode::Quick].map(|mode| folder.join(format!("{}.json", stem(mode))));
        let written =
            |record: &PathBuf| Some((std::fs::metadata(record).ok()?.modified().ok()?, record.clone()));
        records.iter().filter_map(written).max()
    };
    if let (Some((written, record)), Some(started)) = (records(), machine::parent_started())
        && written >= started
        && let Ok(report) = Report::read(&record)
    {
        say(&report, &Files::of(&record), false);
    }
}

/// Names of the files of a run.
fn stem(mode: Mode) -> String {
    match mode {
        Mode::Full => NAME.into(),
        Mode::Quick => format!("{NAME}-quick"),
        Mode::Smoke => format!("{NAME}-smoke"),
    }
}

/// Writes record, tables and page; returns the paths of the latter.
fn write(report: &Report, copy: Option<&Path>) -> anyhow::Result<Files> {
    let record = report::folder()?.join(report::stem_of(&stem(report.mode), report.ended) + ".json");
    let save = |path: &Path, text: &str| {
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    let json = report.to_json();
    save(&record, &json)?;
    if let Some(copy) = copy {
        save(copy, &json)?;
    }
    let files = Files::of(&record);
    save(&files.tables, &report::tables(report))?;
    crate::programs::evidence::write_one(&record, &files.page)?;
    Ok(files)
}
