//! `scaling`: throughput, waits, fairness, CPU time and sleeps of every lock against the number of
//! threads.
//!
//! One round is every (lock, cell) once, in random order, each trial in a process of its own
//! ([`child`]). Rounds are repeated until all throughputs are known well enough,
//! a greatest number is reached, or the time is used up ([`plan`]). Tables go to standard output,
//! progress to standard error. A JSON record and a page drawn from it go to `ulocks-report` in the
//! target directory. The last screen is the answer in sentences, with the page's path.
//!
//! Exit codes: 0; 1 when a trial fails (a lock that lost an update, a trial that hung) or a file
//! cannot be written; 2 for wrong options; 128 + N after signal N (Ctrl-C, SIGTERM, SIGHUP), which
//! leaves a report on the trials that had ended.

pub mod plan;

use crate::programs::harness::{self, Cli};
use crate::programs::options::{self, BenchOptions};
use crate::programs::progress::Progress;
use crate::report::{self, Ended, Kind, Lock, Mode, Report, Settings, Summary, Trial};
use crate::run::child::{self, Outcome, Runner};
use crate::run::pinning::Pin;
use crate::run::{busy_work, machine};
use crate::subjects::locks::{self, Entry};
use crate::workloads::Workload;
use crate::workloads::trial::{TrialSpec, Workers};
use anyhow::Context;
use plan::Plan;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The name of this harness, for cargo's filters and its files.
const NAME: &str = "scaling";

/// The whole program.
pub fn main() -> ExitCode {
    harness::main_with::<TrialSpec, Cli>(NAME, |cli| {
        let mut report = prepare(cli.as_ref()).unwrap_or_else(|error| options::refuse(&error));
        measure(&mut report, cli.as_ref())
    })
}

/// Refuses options that [`main`] would refuse. The benches that run before it ask.
pub fn check(options: &BenchOptions) -> anyhow::Result<()> {
    prepare(options).map(drop)
}

/// Everything that can be wrong with the options shows here, before the first trial.
fn prepare(options: &BenchOptions) -> anyhow::Result<Report> {
    let mode = options.mode();
    let machine = machine::describe();
    let cpus = u32::try_from(machine.cpus_allowed).unwrap_or(u32::MAX).max(1);
    let iterations_per_us = busy_work::calibrate();
    let threads = options.threads.as_ref().map_or_else(|| plan::default_threads(cpus, mode), |t| t.0.clone());
    let workloads = match (options.hold, options.non_hold) {
        (None, None) => plan::default_workloads(mode),
        (hold, non_hold) => {
            let ns = |time: Option<Duration>| time.unwrap_or_default().as_nanos() as u64;
            vec![Workload { hold_ns: ns(hold), non_hold_ns: ns(non_hold) }]
        }
    };
    let locks = match &options.locks {
        Some(list) => list.0.clone(),
        None => locks::Entry::all().iter().filter(|entry| is_usual(entry, mode)).collect(),
    };
    let locks = in_order(&locks);
    let window_ms = options.seconds.map(|s| (s.as_millis() as u64).max(1));
    let mut plan = Plan::new(mode, locks, report::Cell::all(&workloads, &threads), window_ms);
    if let Some(rounds) = options.rounds {
        (plan.min_rounds, plan.max_rounds) = (rounds, rounds);
    }
    for (option, mean) in [("--hold", options.hold), ("--non-hold", options.non_hold)] {
        let window = Duration::from_millis(plan.window_ms);
        options::measurable(option, mean.unwrap_or_default(), window, iterations_per_us)?;
    }
    if let Some(file) = &options.json {
        options::writable("--json", file)?;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Report {
        schema: report::SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        took_s: 0.0,
        mode,
        ended: Ended::Interrupted,
        machine,
        options: Settings {
            threads,
            workloads,
            pin: options.pin.unwrap_or_default().to_string(),
            window_ms: plan.window_ms,
            warmup_ms: plan.warmup_ms,
            min_rounds: plan.min_rounds,
            max_rounds: plan.max_rounds,
            precision: plan.precision,
            budget_s: plan.budget.as_secs_f64(),
            iterations_per_us,
            seed: now.subsec_nanos(),
        },
        locks: plan.locks,
        cells: plan.cells,
        trials: Vec::new(),
        summary: Summary::default(),
    })
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

/// The plan that the record's settings stand for.
fn plan_of(report: &Report) -> Plan {
    let (min_rounds, max_rounds) = (report.options.min_rounds, report.options.max_rounds);
    let window_ms = Some(report.options.window_ms);
    Plan {
        min_rounds,
        max_rounds,
        ..Plan::new(report.mode, report.locks.clone(), report.cells.clone(), window_ms)
    }
}

/// Measures, and writes the report; returns the signal that came in between.
fn measure(report: &mut Report, options: &BenchOptions) -> anyhow::Result<Option<i32>> {
    let plan = plan_of(report);
    let keeper = Runner::new()?;
    eprintln!("{NAME}: {}, {} CPUs\n{plan}", headline(report.mode), report.cpus());
    let start = Instant::now();
    let signal = rounds(report, &plan, options.pin.unwrap_or_default(), &keeper)?;
    report.took_s = start.elapsed().as_secs_f64();
    report.summary = report::summarise(report);
    // A reader that closes the pipe has seen enough; the files are written all the same.
    let _ = std::io::stdout().lock().write_all(report::tables(report).as_bytes());
    let page = write(report, options.json.as_deref())?;
    say(report, &page);
    Ok(signal)
}

fn headline(mode: Mode) -> &'static str {
    match mode {
        Mode::Full => "a full run",
        Mode::Quick => "a quick look",
        Mode::Smoke => "a smoke run (for a measurement: cargo bench)",
    }
}

/// Runs rounds until there are enough, or a signal comes; the report then says that it was
/// interrupted.
fn rounds(report: &mut Report, plan: &Plan, pin: Pin, keeper: &Runner) -> anyhow::Result<Option<i32>> {
    let progress = Progress::new(plan.trials(), plan.rounds());
    let start = Instant::now();
    let seed = u64::from(report.options.seed);
    for round in 0.. {
        for (done, (lock, cell)) in plan.round(seed + u64::from(round)).into_iter().enumerate() {
            let (name, what) = (&plan.locks[lock].name, plan.cells[cell]);
            let Workload { hold_ns, non_hold_ns } = what.workload;
            let (hold, non_hold) = (hold_ns as f64 / 1e3, non_hold_ns as f64 / 1e3);
            progress.trial(round, done, &format!("{name} x{} ({hold}, {non_hold}) us", what.threads));
            let spec = TrialSpec {
                lock: name.clone(),
                workers: Workers::Threads(what.threads),
                lock_count: 1,
                hold_ns: what.workload.hold_ns,
                non_hold_ns: what.workload.non_hold_ns,
                read_share: 0,
                warmup_ms: plan.warmup_ms,
                window_ms: plan.window_ms,
                pin,
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
                    report.trials.push(Trial { round, lock: name.clone(), cell, result });
                }
                Outcome::Interrupted(signal) => {
                    progress.end();
                    report.ended = Ended::Interrupted;
                    return Ok(Some(signal));
                }
            }
        }
        let open = report::open_cells(report);
        let cells = plan.trials_of_throughput();
        progress.round(
            round,
            &format!("about {}", plan.rounds()),
            &format!(": {} of {cells} settled", cells - open),
        );
        let run = round + 1;
        let elapsed = start.elapsed().as_secs_f64();
        let next = elapsed + elapsed / f64::from(run);
        let ended = match () {
            () if run >= plan.max_rounds => Some(Ended::Rounds),
            () if run < plan.min_rounds => None,
            () if open == 0 => Some(Ended::Converged),
            () if next > plan.budget.as_secs_f64() => Some(Ended::Budget),
            () => None,
        };
        if let Some(ended) = ended {
            progress.end();
            report.ended = if open == 0 { Ended::Converged } else { ended };
            return Ok(None);
        }
    }
    unreachable!("the greatest number of rounds is finite")
}

/// The last screen: the answer, and where the page is.
fn say(report: &Report, page: &Path) {
    let _ = writeln!(std::io::stdout(), "{}\nreport: {}", report::answer(report), page.display());
}

/// Says the answer again, if the process that started this one has had one written: in `cargo
/// bench` other benches run after this one, and the answer is to be the last screen.
pub fn remind() {
    // The output of a trial is its answer.
    if std::env::args_os().any(|argument| argument == child::TRIAL) {
        return;
    }
    let pages = || {
        let folder = report::folder().ok()?;
        let pages = [Mode::Full, Mode::Quick].map(|mode| folder.join(format!("{}.html", stem(mode))));
        let written = |page: &PathBuf| Some((std::fs::metadata(page).ok()?.modified().ok()?, page.clone()));
        pages.iter().filter_map(written).max()
    };
    if let (Some((written, page)), Some(started)) = (pages(), machine::parent_started())
        && written >= started
        && let Ok(report) = Report::read(&page.with_extension("json"))
    {
        say(&report, &page);
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

/// Writes record and page; returns the path of the page.
fn write(report: &Report, copy: Option<&Path>) -> anyhow::Result<PathBuf> {
    let folder = report::folder()?;
    let stem = stem(report.mode);
    let save = |path: &Path, text: &str| {
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    let json = report.to_json();
    save(&folder.join(format!("{stem}.json")), &json)?;
    if let Some(copy) = copy {
        save(copy, &json)?;
    }
    let page = folder.join(format!("{stem}.html"));
    save(&page, &report::render(report))?;
    Ok(page)
}
