//! The program `scaling` from outside: exit codes, one-line errors, what it writes.

use crate::common::{self, text};
use std::io::Write;
use std::process::{Command, Output, Stdio};
use ulocks_benches::report::{Ended, Mode, Report};
use ulocks_benches::run::pinning::Pin;
use ulocks_benches::workloads::trial::{TrialResult, TrialSpec, Workers};

const NAME: &str = "scaling";

fn program(arguments: &[&str]) -> Command {
    common::program(NAME, arguments)
}

fn run(arguments: &[&str]) -> Output {
    common::run(NAME, arguments)
}

fn scratch(name: &str) -> String {
    format!("{}/scaling-{}-{name}", env!("CARGO_TARGET_TMPDIR"), std::process::id())
}

/// cargo runs benches in the order of their names, and the last line of `cargo bench` is to be the
/// path of the report.
pub fn the_last_bench_says_where_the_report_is() {
    let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/benches")).unwrap();
    let files = folder.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let last = std::fs::read_to_string(files.max().unwrap()).unwrap();
    assert!(last.trim_end().ends_with("scaling::remind();\n    evidence::remind();\n    code\n}"), "{last}");
}

pub fn wrong_options_are_one_line_and_exit_code_2() {
    let wrong: &[(&[&str], &str)] = &[
        (&["--thread", "2"], "--threads"),
        (&["--locks", "std,lockless"], "unknown lock 'lockless'; allowed: "),
        (&["--threads", "0"], "0 workers are out of range; allowed: 1 to "),
        (&["--threads", "many"], "allowed: 1 to "),
        (&["--hold", "1ns"], "--hold: a time of 1 ns cannot be measured; allowed: "),
        (
            &["--non-hold", "9ms", "--seconds", "0.05"],
            "cannot be measured in runs of 50ms; allowed: up to 5ms, ",
        ),
        (&["--hold", "3us", "--non-hold", "7"], "'7' has no unit of time; allowed: "),
        (&["--seconds", "0"], "allowed: 0.001 to 3600"),
        (&["--pin", "tight"], "unknown pinning 'tight'; allowed: none, compact, scatter, node"),
        (&["--quick", "--full"], "cannot be used with"),
        (&["--json", "/no/such/folder/x.json"], "--json: cannot write /no/such/folder/x.json"),
    ];
    common::refuses(NAME, wrong);
}

pub fn foreign_filters_and_lists_run_nothing() {
    common::knows_its_name(NAME);
}

pub fn a_smoke_run_leaves_record_and_page() {
    let copy = scratch("smoke.json");
    // With options of criterion's that reach all benches of a package.
    let output =
        run(&["--test", "--bench", "--sample-size", "10", "--save-baseline", "main", "--json", &copy]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{err}");
    assert!(err.contains("a smoke run") && err.contains("rounds: 2 to 2"), "{err}");
    assert!(out.contains("measures nothing"), "{out}");

    let report = Report::read(copy.as_ref()).unwrap();
    assert_eq!((report.mode, report.rounds()), (Mode::Smoke, 2));
    assert_eq!(report.trials.len(), 2 * report.locks.len() * report.cells.len());
    assert!(report.trials.iter().all(|t| t.result.waits.is_some() == report.cells[t.cell].timed));
    assert!(report.trials.iter().all(|t| t.result.counts.len() == report.cells[t.cell].threads as usize));
    assert!(ulocks_benches::report::summarise(&report) == report.summary);

    assert!(out.lines().count() < 40, "the last screen is all there is: {out}");
    assert!(out.contains("\nTHE ANSWER for this machine"), "{out}");
    let paths = out.lines().rev().take(2).map(|line| line.split_once(": ").unwrap());
    let [(report, page), (tables, table)] = Vec::from_iter(paths)[..] else { unreachable!() };
    assert_eq!((report, tables), ("report", "tables"));
    assert!(page.contains("/ulocks-report/scaling-smoke.html"), "{page}");
    assert!(std::fs::read_to_string(page).unwrap().starts_with("<!DOCTYPE html>"));
    let tables = std::fs::read_to_string(table).unwrap();
    assert!(tables.starts_with("\nhold 0, non-hold 0\n"), "{tables}");
    assert!(!out.contains("\nhold 0, non-hold 0\n") && tables.lines().count() > 60);
    std::fs::remove_file(copy).unwrap();
}

pub fn tables_are_on_the_screen_if_they_are_short_or_asked_for() {
    let few = ["--threads=1,2", "--hold=1us", "--locks=std,none", "--seconds=0.02"];
    let output = run(&few);
    let out = text(&output.stdout);
    assert!(out.starts_with("\nhold 1 us, non-hold 0\n"), "{out}");
    assert!(!out.contains("THE ANSWER"), "no lock of the family ran: {out}");
    let output = run(&["--verbose", "--seconds=0.005", "--rounds=1"]);
    let out = text(&output.stdout);
    assert!(out.starts_with("\nhold 0, non-hold 0\n") && out.contains("\nTHE ANSWER"), "{out}");
}

/// What is sent to the project is free of what tells who measured, and where.
pub fn a_record_names_the_machine_and_no_host_user_or_folder() {
    let copy = scratch("nameless.json");
    let arguments = ["--threads=1,2", "--locks=unfair,std", "--seconds=0.01", "--json", &copy];
    let mut command = program(&arguments);
    command.env("HOME", "/home/nemo-at-home").env("USER", "nemo-the-user").env("LOGNAME", "nemo-the-user");
    command.env("HOSTNAME", "nemo-the-host").env("MAIL", "nemo@example.org");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json = std::fs::read_to_string(&copy).unwrap();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let words: Vec<&str> = json.split(|c: char| !c.is_alphanumeric() && !"-._".contains(c)).collect();
    assert!(words.contains(&"parking_lot") || words.contains(&"std"), "words are told apart");
    assert!(!words.contains(&host.trim()), "{host}");
    assert!(!json.contains("nemo") && !json.contains(env!("CARGO_TARGET_TMPDIR")) && !json.contains("/home"));
    // A new field of the machine has to be looked at by a person before it is sent anywhere.
    let record: serde_json::Value = serde_json::from_str(&json).unwrap();
    let known =
        "cpu_model cpus_allowed cpus_online date governor hypervisor kernel libc load_average rustc topology";
    let mut fields: Vec<&str> = record["machine"].as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort();
    assert!(fields.iter().all(|field| known.split(' ').any(|known| known == *field)), "{fields:?}");
    std::fs::remove_file(copy).unwrap();
}

pub fn one_workload_and_its_window() {
    let copy = scratch("one.json");
    let output = run(&[
        "--threads=1,2",
        "--hold=3us",
        "--non-hold=7us",
        "--seconds=0.02",
        "--locks=std",
        "--pin=none",
        "--json",
        &copy,
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = Report::read(copy.as_ref()).unwrap();
    assert_eq!(report.options.window_ms, 20);
    assert_eq!(report.options.pin, "none");
    assert_eq!(report.cells.iter().map(|c| c.threads).collect::<Vec<_>>(), [1, 2]);
    assert!(report.cells.iter().all(|c| c.workload.hold_ns == 3000 && c.workload.non_hold_ns == 7000));
    assert!(report.trials.iter().all(|t| t.result.elapsed_s >= 0.02));
    std::fs::remove_file(copy).unwrap();
}

pub fn an_interrupt_leaves_what_there_is() {
    let copy = scratch("interrupted.json");
    let arguments = ["--threads=2", "--locks=std,none", "--seconds=2", "--json", &copy];
    let mut child = program(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The handler stands when the plan has been printed; the run takes ten seconds and more from
    // there.
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("rounds:") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut stderr, &mut line).unwrap() > 0, "no plan");
    }
    for _ in 0..2 {
        // SAFETY: `kill` has no preconditions; the child was not waited for, so its number is still
        // its own.
        unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let report = Report::read(copy.as_ref()).unwrap();
    assert_eq!(report.ended, Ended::Interrupted);
    assert!(report.trials.len() < 2 * report.locks.len() * report.cells.len());
    assert!(text(&output.stdout).contains("The run was interrupted"));
    let mut said = String::new();
    std::io::Read::read_to_string(&mut stderr, &mut said).unwrap();
    assert!(said.ends_with("scaling: to go on: the same command, with --resume\n"), "{said}");
    std::fs::remove_file(copy).unwrap();
}

/// A run that was killed goes on with the trials that had ended.
pub fn a_killed_run_goes_on() {
    let copy = scratch("resumed.json");
    let arguments = ["--threads=2", "--locks=unfair,std", "--seconds=0.2", "--json", &copy];
    let again = [&arguments[..], &["--resume"]].concat();
    let journal = journal();
    let mut child = program(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let ended = || {
        let text = std::fs::read_to_string(&journal).unwrap_or_default();
        text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    while ended().len() < 3 {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before its third trial");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let half = "{\"trial\":{\"at_s\":1.5,";
    let mut file = std::fs::OpenOptions::new().append(true).open(&journal).unwrap();
    file.write_all(half.as_bytes()).unwrap();
    let before = ended();

    let other = [&again[..], &["--pin", "compact"]].concat();
    let refused = run(&other);
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    let line = said.lines().last().unwrap();
    assert!(line.contains("options.pin was \"scatter\" and is \"compact\""), "{said}");
    assert!(
        line.contains("it was begun with '--threads=2 ") && line.ends_with("a run begins anew"),
        "{said}"
    );

    let output = run(&again);
    let (out, said) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{said}");
    assert!(said.contains(&format!("goes on after {} trials, in round 1", before.len() - 1)), "{said}");
    let report = Report::read(copy.as_ref()).unwrap();
    assert_eq!((report.ended, report.resumed.len()), (Ended::Rounds, 1));
    assert_eq!(report.trials.len(), 2 * report.locks.len() * report.cells.len());
    for (line, trial) in before[..before.len() - 1].iter().zip(&report.trials) {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["trial"]["trial"], serde_json::to_value(trial).unwrap());
    }
    assert!(out.contains("The run was interrupted and resumed once"), "{out}");

    let nothing = run(&again);
    assert_eq!(nothing.status.code(), Some(2));
    assert!(text(&nothing.stderr).contains("--resume: there is no interrupted run in "));
    std::fs::remove_file(copy).unwrap();
}

/// The journal of smoke runs, which lies beside the page of one. There is none afterwards.
fn journal() -> std::path::PathBuf {
    let output = run(&["--threads=1", "--locks=std", "--seconds=0.001", "--rounds=1"]);
    let out = text(&output.stdout);
    let page = out.lines().last().unwrap().strip_prefix("report: ").unwrap();
    std::path::Path::new(page).with_extension("journal")
}

pub fn a_trial_that_cannot_start_ends_the_run() {
    // Beside the standard ones, the journal and one file can be open, and that is too few.
    let mut command = program(&["--threads=2", "--locks=std", "--hold=1us"]);
    // SAFETY: `setrlimit` is async-signal-safe and gets a valid structure.
    unsafe {
        std::os::unix::process::CommandExt::pre_exec(&mut command, || {
            let limit = libc::rlimit { rlim_cur: 5, rlim_max: 5 };
            match libc::setrlimit(libc::RLIMIT_NOFILE, &limit) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let output = command.output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let line = said.lines().last().unwrap();
    assert!(
        line.starts_with("scaling: std, 2 threads, hold 1 us, non-hold 0: cannot create a file in memory"),
        "{said}"
    );
    assert!(output.stdout.is_empty());
}

/// The protocol between the program and its trials.
pub fn a_trial_answers_in_json_or_says_why_not() {
    let ask = |question: &str| {
        let mut child = program(&["--trial"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(question.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let spec = |lock: &str| {
        let spec = TrialSpec {
            lock: lock.into(),
            workers: Workers::Threads(2),
            lock_count: 1,
            hold_ns: 0,
            non_hold_ns: 0,
            read_share: 0,
            warmup_ms: 1,
            window_ms: 5,
            pin: Pin::None,
            waits: true,
            iterations_per_us: 1000.0,
            seed: 1,
        };
        serde_json::to_string(&spec).unwrap()
    };
    let answer = ask(&spec("std"));
    assert!(answer.status.success(), "{}", text(&answer.stderr));
    let result: TrialResult = serde_json::from_slice(&answer.stdout).unwrap();
    assert!(result.counts.len() == 2 && result.waits.is_some());

    for (question, reason) in
        [(spec("lockless"), "unknown lock 'lockless'"), ("{}".into(), "not the description")]
    {
        let answer = ask(&question);
        assert_eq!(answer.status.code(), Some(1));
        assert!(text(&answer.stderr).starts_with(reason), "{}", text(&answer.stderr));
        assert!(answer.stdout.is_empty());
    }
}
