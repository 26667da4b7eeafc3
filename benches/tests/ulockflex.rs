//! The program from outside: what it prints, what it refuses, what it leaves behind. Windows are
//! tiny, so nothing here looks at how fast a lock is.

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use ulocks_benches::subjects::locks;
use ulocks_testkit::limit::output;

const PROGRAM: &str = env!("CARGO_BIN_EXE_ulockflex");
/// One workload, short runs.
const TINY: [&str; 8] = ["--seconds", "0.02", "--max-runs", "2", "--hold", "1us", "--non-hold", "2us"];
/// Franke's columns, and two more.
const COLUMNS: [&str; 15] =
    ["c", "a", "t", "i", "L", "p", "r", "x", "WC", "RC", "R", "COV", "ThPut", "p99.9", "CPU"];
/// Against a hang only.
const WATCHDOG: Duration = Duration::from_secs(120);

fn ulockflex(arguments: &[&str]) -> Output {
    output(Command::new(PROGRAM).args(arguments))
}

/// The output of a run that succeeds.
fn table(arguments: &[&str]) -> String {
    let output = ulockflex(arguments);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{arguments:?}: {}, {stderr}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// The rows below the headings, in fields.
fn rows(table: &str) -> Vec<Vec<String>> {
    let fields = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let mut lines = table.lines().map(fields).skip_while(|line| *line != COLUMNS);
    assert!(lines.next().is_some(), "no headings in:\n{table}");
    lines.filter(|line| !line.is_empty()).collect()
}

/// The field of `row` below `heading`.
fn field<'a>(row: &'a [String], heading: &str) -> &'a str {
    &row[COLUMNS.iter().position(|column| *column == heading).unwrap()]
}

#[test]
fn legend_and_columns() {
    let text =
        table(&[&TINY[..], &["--threads", "1,3", "--locks", "none,std,sysv", "--lock-count", "2"]].concat());
    let (legend, _) = text.split_once("\n    c ").unwrap();
    for name in ["none", "std", "sysv"] {
        let entry = locks::Entry::find(name).unwrap();
        let line = format!("\n{:<6} {}: {}\n", entry.letter, entry.name, entry.about);
        assert!(legend.contains(&line), "{line:?} is not in:\n{legend}");
    }
    for column in COLUMNS {
        let explained = legend.lines().any(|line| line.split([' ', ',']).take(3).any(|word| word == column));
        assert!(explained, "{column} is not explained in:\n{legend}");
    }
    let rows = rows(&text);
    assert_eq!(rows.len(), 6);
    for (row, children) in rows.iter().zip(["1", "1", "1", "3", "3", "3"]) {
        assert_eq!(row.len(), COLUMNS.len(), "{row:?}");
        assert_eq!([&row[0], &row[1], &row[2]], [children, "2", "0.02"]);
        assert_eq!([field(row, "r"), field(row, "x"), field(row, "p")], ["2", "1", "-"]);
        for column in ["COV", "CPU", "p99.9"] {
            assert!(field(row, column).parse::<f64>().unwrap() >= 0.0, "{row:?}");
        }
    }
}

#[test]
fn wait_times_of_short_loops_come_from_a_further_run() {
    let options = ["--threads", "2", "--locks", "std", "--seconds", "0.02", "--max-runs", "2", "--hold", "0"];
    let text = table(&options);
    assert!(field(&rows(&text)[0], "p99.9").parse::<f64>().unwrap() >= 0.0, "{text}");
}

#[test]
fn only_locks_that_count_have_contention() {
    let usual = || locks::Entry::all().iter().filter(|entry| entry.is_usual());
    let names: Vec<_> = usual().map(|entry| entry.name).collect();
    // The close look counts nothing if no thread of it has had the CPU in its window.
    let patient = ["--seconds", "0.2", "--max-runs", "2", "--hold", "1us", "--non-hold", "2us"];
    let text = table(&[&patient[..], &["--threads", "2", "--locks", &names.join(",")]].concat());
    let rows = rows(&text);
    assert_eq!(rows.len(), names.len());
    for (row, entry) in rows.iter().zip(usual()) {
        let counted = [field(row, "WC"), field(row, "R")].map(|field| field.parse::<f64>().is_ok());
        assert_eq!(counted, [entry.metered_twin().is_some(); 2], "{row:?}");
        assert!(counted[0] || row[8..11] == ["-", "-", "-"], "{row:?}");
        assert_eq!(field(row, "RC"), "-", "nobody reads: {row:?}");
    }
}

#[test]
fn patience_runs_the_variants_and_leaves_the_peers() {
    let text =
        table(&[&TINY[..], &["--threads", "2", "--locks", "std,calock", "--patience", "3us,0"]].concat());
    let rows = rows(&text);
    let said: Vec<_> = rows.iter().map(|row| [field(row, "L"), field(row, "p")]).collect();
    let letter = |name| locks::Entry::find(name).unwrap().letter.to_string();
    let (std, spins, sleeps) = (letter("std"), letter("calock-3us"), letter("calock-0"));
    assert_eq!(said, [[std.as_str(), "-"], [&spins, "3"], [&sleeps, "0"]]);
    assert!(spins.chars().all(char::is_uppercase) && sleeps == spins.to_lowercase());
    assert!(text.contains(&format!("\n{spins:<6} calock-3us: ")));
    for row in &rows[1..] {
        assert!(field(row, "WC").parse::<f64>().is_ok() && field(row, "R").parse::<f64>().is_ok(), "{row:?}");
    }
}

#[test]
fn each_patience_runs_between_processes() {
    let options = ["--processes", "2", "--locks", "calock", "--patience", "0,3us"];
    let rows = rows(&table(&[&TINY[..], &options].concat()));
    let said: Vec<_> = rows.iter().map(|row| [field(row, "L"), field(row, "p")]).collect();
    assert_eq!(said, [["c", "0"], ["C", "3"]]);
}

#[test]
fn children_may_be_processes() {
    let options = ["--processes", "1,3", "--locks", "none,pthread-robust,sysv", "--lock-count", "2"];
    let text = table(&[&TINY[..], &options].concat());
    assert!(text.contains("\nchildren are processes, pinned: "), "{text}");
    let rows = rows(&text);
    assert_eq!(rows.len(), 6);
    for row in &rows {
        assert!(field(row, "ThPut") != "0", "{row:?}");
    }
}

#[test]
fn what_nobody_named_is_left_out_with_a_note() {
    let able = locks::Entry::all().iter().filter(|entry| entry.is_usual() && entry.processes);
    let output = ulockflex(&[&TINY[..], &["--processes", "1", "--read-share", "0,50"]].concat());
    assert!(output.status.success());
    let stderr = String::from_utf8(output.stderr).unwrap();
    let notes: Vec<_> = stderr.lines().filter_map(|line| line.strip_prefix("note: ")).collect();
    assert!(notes[0].starts_with("left out, since they do not work between processes: std, "), "{notes:?}");
    assert!(notes[1].starts_with("without readers only, since they have no shared mode: "), "{notes:?}");
    assert_eq!(notes.len(), 2);
    let expected: usize = able.map(|entry| if entry.shared_mode { 2 } else { 1 }).sum();
    assert_eq!(rows(&String::from_utf8(output.stdout).unwrap()).len(), expected);
}

#[test]
fn refusals_take_one_line() {
    let cases: &[(&[&str], &str, &str)] = &[
        (
            &["--frobnicate"],
            "unexpected argument '--frobnicate'",
            "allowed: --threads, --processes, --locks,",
        ),
        (&["stray"], "unexpected argument 'stray'", "allowed: --threads"),
        (&["--locks", "mutex"], "unknown lock 'mutex'", "allowed: none, std, "),
        (&["--threads", "0"], "0 workers", "allowed: 1 to 10000"),
        (&["--processes", "2,0"], "0 workers", "allowed: 1 to 10000"),
        (&["--threads", "many"], "'many' is not a number", "allowed: 1 to 10000"),
        (
            &["--threads", "1", "--processes", "1"],
            "--threads and --processes exclude",
            "allowed: one of them",
        ),
        (&["--lock-count", "0"], "'0' is not a possible number of locks", "allowed: 1 to 10000"),
        (&["--seconds", "0"], "0 seconds", "allowed: 0.001 to 3600"),
        (&["--hold", "3"], "'3' has no unit", "allowed: 0, or a number with ns"),
        (&["--hold", "1ns"], "--hold: a time of 1 ns cannot be measured", "allowed: 0, or "),
        (
            &["--hold", "1s", "--seconds", "1"],
            "--hold: a time of 1s cannot be measured",
            "allowed: up to 100ms",
        ),
        (&["--non-hold", "1s"], "--non-hold: a time of 1s cannot be measured", "allowed: up to "),
        (&["--max-runs", "1"], "'1' is not a possible number of runs", "allowed: 2 to 1000"),
        (&["--read-share", "101"], "'101' is not a percentage", "allowed: 0 to 100"),
        (&["--read-share", "20", "--locks", "sysv"], "lock 'sysv' has no shared mode", "allowed: 0; "),
        (
            &["--processes", "2", "--locks", "std"],
            "lock 'std' does not work between",
            "allowed with --processes: none,",
        ),
        (
            &["--patience", "3us", "--locks", "std"],
            "--patience: none of the locks has it",
            "locks that have: ",
        ),
        (
            &["--patience", "7us", "--locks", "calock"],
            "lock 'calock' has no patience of 7µs",
            "allowed: 0, 3us",
        ),
        (&["--patience", "soon"], "'soon' is not a unit of time", "allowed: 0, or a number with ns"),
        (&["--pin", "tight"], "unknown pinning 'tight'", "allowed: none, compact, scatter"),
    ];
    for (arguments, wrong, allowed) in cases {
        let output = ulockflex(arguments);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
        assert!(stderr.contains(wrong) && stderr.contains(allowed), "{arguments:?}: {stderr}");
        assert!(output.stdout.is_empty(), "{arguments:?} printed something");
    }
}

/// A run of eight processes on SysV semaphores that would last very long, after it has begun.
struct Started {
    program: Child,
    trial: i32,
    /// The set the trial uses.
    set: i32,
}

impl Started {
    fn new() -> Self {
        let mut command = Command::new(PROGRAM);
        // A shell without job control lets what it starts behind `&` ignore SIGINT.
        // SAFETY: between fork and exec; `signal` is async-signal-safe, and its arguments are
        // constants.
        unsafe {
            command.pre_exec(|| {
                libc::signal(libc::SIGINT, libc::SIG_DFL);
                Ok(())
            })
        };
        let program = command
            .args([
                "--processes",
                "8",
                "--locks",
                "sysv",
                "--seconds",
                "600",
                "--hold",
                "1us",
                "--max-runs",
                "2",
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (trial, set) = until("a trial that uses a semaphore set", || {
            let parent = program.id() as i32;
            let trial =
                processes().into_iter().find(|process| process.parent == parent && process.group != 0)?.id;
            let group = group(trial);
            // The leader creates the set, the workers use it.
            let used = |&set: &i32| {
                let user = last_user(set);
                user != trial && group.contains(&user)
            };
            Some((trial, semaphore_sets().into_iter().find(used)?))
        });
        Self { program, trial, set }
    }

    /// The exit code, and stdout.
    fn end(self) -> (Option<i32>, String) {
        let output = self.program.wait_with_output().unwrap();
        assert!(group(self.trial).is_empty(), "children are left over");
        assert!(!semaphore_sets().contains(&self.set), "a semaphore set is left over");
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    }
}

#[test]
fn an_interrupt_leaves_nothing_behind() {
    let started = Started::new();
    kill(started.program.id() as i32, libc::SIGINT);
    let (code, text) = started.end();
    assert_eq!(code, Some(128 + libc::SIGINT));
    assert_eq!(rows(&text).len(), 0);
}

#[test]
fn a_failed_trial_leaves_nothing_behind_and_is_reported() {
    let started = Started::new();
    kill(started.trial, libc::SIGKILL);
    let (code, text) = started.end();
    assert_eq!(code, Some(1));
    let reason = "the trial was killed by signal 9";
    assert!(text.contains(&format!("failed: {reason}")), "{text}");
}

fn kill(process: i32, signal: i32) {
    // SAFETY: no pointers are involved.
    assert_eq!(unsafe { libc::kill(process, signal) }, 0);
}

/// Looks again and again until there is an answer.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = look() {
            return answer;
        }
        assert!(start.elapsed() < WATCHDOG, "never saw {what}");
        sleep(Duration::from_millis(5));
    }
}

/// A line of /proc.
struct Process {
    id: i32,
    parent: i32,
    group: i32,
}

/// All processes but zombies.
fn processes() -> Vec<Process> {
    let stat = |entry: std::fs::DirEntry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name, in parentheses, may contain anything.
        let mut fields = stat.rsplit_once(") ")?.1.split(' ');
        let alive = fields.next()? != "Z";
        let mut number = || fields.next()?.parse().ok();
        let (parent, group) = (number()?, number()?);
        alive.then_some(Process { id, parent, group })
    };
    std::fs::read_dir("/proc").unwrap().filter_map(|entry| stat(entry.ok()?)).collect()
}

/// The processes of a group.
fn group(leader: i32) -> BTreeSet<i32> {
    processes().into_iter().filter(|process| process.group == leader).map(|process| process.id).collect()
}

/// The SysV semaphore sets of this machine.
fn semaphore_sets() -> BTreeSet<i32> {
    let listing = std::fs::read_to_string("/proc/sysvipc/sem").unwrap();
    listing.lines().skip(1).map(|line| line.split_whitespace().nth(1).unwrap().parse().unwrap()).collect()
}

/// The process that used a set's first semaphore last.
fn last_user(set: i32) -> i32 {
    // SAFETY: GETPID takes no further argument.
    unsafe { libc::semctl(set, 0, libc::GETPID) }
}
