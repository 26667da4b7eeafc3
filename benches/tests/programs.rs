//! The program from outside: exit codes, one-line errors, what it writes.
//!
//! A bench has no path that a test could know, so a test starts itself again, and in that process
//! is the program, with two rows of its own. Its trials measure nothing: what they do is in the
//! environment.

use std::fs::OpenOptions;
use std::io::{Read, Write as _, stdin};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::time::{Duration, Instant};
use ulocks_benches::engine::cell::{Cell, Job};
use ulocks_benches::engine::record::{Ended, Mode, Record};
use ulocks_benches::engine::{options, program};
use ulocks_benches::rows::{Row, Wish, no_claims};
use ulocks_benches::workloads::{Scenario, Trial};
use ulocks_testkit::limit;

/// That this process is the program. Inherited by the trials.
const AS: &str = "ULOCKS_TEST_AS_PROGRAM";
/// What trials do: `fail`, or hang when so many have ended.
const TRIALS: &str = "ULOCKS_TEST_TRIALS";
/// A file of the target directory with a byte for each trial that has begun.
const COUNTER: &str = "trials";

/// A row of the program under test.
const ROW: Row = Row {
    name: "pingpong",
    about: "a row that heeds threads and locks",
    share_s: (1, 1),
    jobs: |wish| jobs(wish, wish.threads.clone().unwrap_or_else(|| vec![1, 2])),
    drop_first: &[],
    columns: &[],
    claims: no_claims,
    sentences: |record| vec![format!("{} cells are known.", record.cells.len())],
    notes: "",
};

static ROWS: [Row; 2] = [
    ROW,
    Row { name: "deaf", about: "a row that heeds nothing", jobs: |_| jobs(&Wish::default(), vec![3]), ..ROW },
];

fn jobs(wish: &Wish, threads: Vec<u32>) -> Vec<Job> {
    let names = wish.subjects.clone().unwrap_or_else(|| ["unfair", "fair", "std"].map(Into::into).into());
    let job = |threads: u32| Job {
        cell: Cell {
            section: "hand-over".into(),
            label: format!("{threads} threads"),
            x: Some(f64::from(threads)),
            scenario: Scenario::Handoff,
        },
        subjects: names.clone(),
    };
    threads.into_iter().map(job).collect()
}

/// Tests by their names.
macro_rules! tests {
    ($($name:ident;)*) => { &[$((stringify!($name), $name as fn())),*] };
}

fn main() -> ExitCode {
    if std::env::var_os(AS).is_some_and(|program| program == "criterion") {
        let options = options::for_criterion(&ROWS);
        println!("{:?}\n{options:?}", std::env::args().skip(1).collect::<Vec<_>>());
        return ExitCode::SUCCESS;
    }
    if std::env::var_os(AS).is_some() {
        let is_trial = std::env::args_os().nth(1).is_some_and(|argument| argument == "--trial");
        return if is_trial { trial() } else { program::main(&ROWS) };
    }
    let filter = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    let tests: &[(&str, fn())] = tests! {
        wrong_options_are_one_line_and_exit_code_2;
        help_and_list_say_what_there_is;
        criterion_gets_what_it_knows;
        a_smoke_run_leaves_a_record;
        an_interrupt_keeps_what_there_is_and_no_good_record_is_lost;
        a_killed_run_goes_on;
        a_trial_that_fails_or_hangs_ends_its_row;
        what_cannot_be_written_is_said_before_measuring;
    };
    let passes = |(name, test): &(&str, fn())| {
        let passes = std::panic::catch_unwind(test).is_ok();
        println!("test {name} ... {}", if passes { "ok" } else { "FAILED" });
        passes
    };
    let asked = tests.iter().filter(|test| test.0.contains(&filter));
    let passed: Vec<bool> = asked.map(passes).collect();
    let failed = passed.iter().filter(|&&passed| !passed).count();
    // The lines of std's own harness, which `cargo xtask test` counts and shows.
    let (result, code) = if failed == 0 { ("ok", 0) } else { ("FAILED", 101) };
    println!("\ntest result: {result}. {} passed; {failed} failed; 0 ignored", passed.len() - failed);
    ExitCode::from(code)
}

/// A trial that answers without a lock.
fn trial() -> ExitCode {
    let mut text = String::new();
    stdin().read_to_string(&mut text).unwrap();
    let trial: Trial = serde_json::from_str(&text).unwrap();
    let wanted = std::env::var(TRIALS).unwrap_or_default();
    if wanted == "fail" {
        eprintln!("cannot start thread 2 of 2: no more threads");
        return ExitCode::FAILURE;
    }
    let target = PathBuf::from(std::env::var_os("CARGO_TARGET_DIR").unwrap());
    let number = trials(&target) as usize;
    let mut counter = OpenOptions::new().append(true).create(true).open(target.join(COUNTER)).unwrap();
    counter.write_all(b".").unwrap();
    while wanted.parse().is_ok_and(|hangs: usize| number >= hangs) {
        std::thread::sleep(Duration::from_secs(1));
    }
    let rate = trial.conditions.window_ms as f64;
    println!("[{{\"rate\": {rate}}}]");
    ExitCode::SUCCESS
}

/// The target directory of a test, which is empty.
fn target(name: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&target);
    std::fs::create_dir_all(&target).unwrap();
    target
}

/// The program with these arguments.
fn program(target: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args(arguments).env(AS, "1").env("CARGO_TARGET_DIR", target);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A shell without job control lets what it starts behind `&` ignore SIGINT, and the tests that
    // send it would wait for ever. SAFETY: between fork and exec; `signal` is async-signal-safe,
    // and its arguments are constants.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            Ok(())
        })
    };
    command
}

/// The exit code of what has ended, and what it wrote.
struct Ran {
    code: Option<i32>,
    out: String,
    said: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), said: text(output.stderr) }
    }
}

fn run(target: &Path, arguments: &[&str]) -> Ran {
    limit::output(&mut program(target, arguments)).into()
}

fn record(target: &Path, name: &str) -> Record {
    let path = target.join("ulocks-report").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

fn wrong_options_are_one_line_and_exit_code_2() {
    let target = target("wrong");
    let wrong: &[(&[&str], &str)] = &[
        (
            &["pingpang"],
            "unknown row 'pingpang'; allowed: pingpong, deaf, and what criterion runs: no_contention,",
        ),
        (&["--thread", "2"], "unexpected argument '--thread'; allowed: --list, --quick, "),
        (&["--threads", "-2"], "'-2' is not a number of workers; allowed: 1 to 10000"),
        (&["--threads", "1000000"], "'1000000' is not a number of workers; allowed: 1 to 10000"),
        (&["--seconds", "1e9"], "'1e9' is not a number of seconds; allowed: 0.001 to 3600"),
        (&["--seconds", "-1"], "'-1' is not a number of seconds; allowed: 0.001 to 3600"),
        (&["--rounds", "0"], "invalid value '0' for '--rounds <N>': 0 is not in 1..=1000"),
        (&["--hold", "-3us"], "'-3us' is not a time; allowed: 0 to 1000s"),
        (&["--pin", "near"], "invalid value 'near' for '--pin <HOW>' [possible values: none, scatter]"),
        (&["--locks", "std,lockless"], "unknown lock 'lockless'; allowed: "),
        (&["--locks", "sysv", "deaf"], "--locks: not heeded by deaf"),
        (&["--hold", "3us"], "--hold or --think: not heeded by pingpong, deaf"),
        (&["--pin", "none"], "--pin: not heeded by pingpong, deaf"),
        (&["--only", "no such"], "--only: no cell of pingpong, deaf with these options contains 'no such'"),
        (&["--json", "/nonexistent/x"], "--json: cannot write /nonexistent/x: No such file"),
        (&["--resume"], "--resume: there is no interrupted run of these rows in "),
        (&["--full", "--quick"], "'--full' cannot be used with '--quick'"),
    ];
    for (arguments, reason) in wrong {
        let Ran { code, out, said } = run(&target, arguments);
        assert_eq!((code, out.as_str(), said.lines().count()), (Some(2), "", 1), "{arguments:?}: {said}");
        assert!(said.starts_with("error: ") && said.contains(reason), "{arguments:?}: {said}");
    }
}

fn help_and_list_say_what_there_is() {
    let target = target("help");
    let help = run(&target, &["--help"]).out;
    assert!(help.starts_with("Measures the locks of the ulocks family"), "{help}");
    assert!(help.contains("  deaf            1 s,   1 s quick   a row that heeds nothing\n"), "{help}");
    let list = run(&target, &["--list", "--bench"]).out;
    assert!(list.starts_with("Rows, and how long each takes:\n  pingpong "), "{list}");
    let help = criterion("--help").out;
    assert!(help.starts_with("Benchmarks of single calls, run by criterion: no_contention, "), "{help}");
    let nothing = run(&target, &["contended/unfair", "--bench", "--sample-size", "10"]);
    assert_eq!((nothing.code, nothing.out + &nothing.said), (Some(0), String::new()));
}

/// The bench that criterion runs, up to its first benchmark.
fn criterion(line: &str) -> Ran {
    let arguments: Vec<&str> = line.split_whitespace().collect();
    limit::output(program(&target("criterion"), &arguments).env(AS, "criterion")).into()
}

fn criterion_gets_what_it_knows() {
    let line = "--bench contended/std pingpong --threads 1,3 --rounds 2 --sample-size 20 --locks std";
    let out = criterion(line).out;
    assert!(out.starts_with(r#"["--bench", "contended/std", "--sample-size", "20"]"#), "{out}");
    assert!(out.contains(r#"locks: Some(List(["std"])), threads: Some(List([1, 3]))"#), "{out}");
    let both = criterion("readers contended --bench").out;
    assert!(both.starts_with("[\"--bench\"]\n"), "{both}");
    for (line, code) in [
        ("deaf --bench", 0),
        ("--list", 0),
        ("--bench --resume", 0),
        ("--threads 0", 2),
        ("--bench pingpang", 2),
    ] {
        let ran = criterion(line);
        assert_eq!((ran.code, ran.out.as_str()), (Some(code), ""), "{line}");
    }
}

fn a_smoke_run_leaves_a_record() {
    let target = target("smoke");
    let copy = target.join("copy.json");
    let arguments = ["--test", "--bench", "--sample-size", "9", "--json", copy.to_str().unwrap()];
    let Ran { code, out, said } = run(&target, &arguments);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("a smoke run, which measures nothing"), "{said}");
    assert!(out.contains("page: ") && out.lines().count() < 40, "{out}");
    let record = record(&target, "pingpong-smoke.json");
    assert_eq!((record.mode, record.ended, record.rounds_done()), (Mode::Smoke, Ended::Rounds, 1));
    assert_eq!((record.cells.len(), record.lines.len()), (2, 6));
    assert!(record.lines.iter().all(|line| line.values("rate").len() == 1));
    // A record that is sent to others names no path.
    assert_eq!(record.command, "cargo bench -- --test --sample-size 9");
    let all: Vec<Record> = serde_json::from_str(&std::fs::read_to_string(copy).unwrap()).unwrap();
    assert_eq!(all.iter().map(|record| record.row.as_str()).collect::<Vec<_>>(), ["pingpong", "deaf"]);
    assert!(!target.join("ulocks-report/pingpong-smoke.journal").exists());

    // What cannot be printed is said; the files are there.
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ran: Ran = program(&target, &["--test", "deaf"]).stdout(full).output().unwrap().into();
    assert_eq!(ran.code, Some(1));
    assert!(ran.said.contains("cannot write to standard output: No space left"), "{}", ran.said);
}

/// How many trials have begun.
fn trials(target: &Path) -> u64 {
    std::fs::metadata(target.join(COUNTER)).map_or(0, |file| file.len())
}

/// The program with these arguments, in a trial that hangs when so many have ended.
fn hanging(target: &Path, arguments: &[&str], ended: u64) -> Child {
    let _ = std::fs::remove_file(target.join(COUNTER));
    let mut child = program(target, arguments).env(TRIALS, ended.to_string()).spawn().unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    while trials(target) <= ended {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before {ended} trials had");
        assert!(Instant::now() < end, "{} trials began within a minute, not {ended} and one", trials(target));
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

/// What is left of it after Ctrl-C.
fn interrupted(child: Child) -> Ran {
    // SAFETY: `kill` has no preconditions; the child was not waited for, so its number is still its
    // own.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    child.wait_with_output().unwrap().into()
}

fn an_interrupt_keeps_what_there_is_and_no_good_record_is_lost() {
    let target = target("interrupt");
    let arguments = |rounds| ["--bench", "pingpong", "--rounds", rounds, "--seconds", "0.001"];
    let Ran { code, said, .. } = run(&target, &arguments("3"));
    assert!(code == Some(0) && said.contains("  2 cells are known.\n"), "{said}");
    // In the first round nothing supports an answer, in the third something does.
    let anew = "pingpong: begins anew; --resume would go on with the interrupted run";
    for (ended, answers, rounds) in [(2, false, 1), (15, true, 3)] {
        let Ran { code, out, said } = interrupted(hanging(&target, &arguments("4"), ended));
        assert_eq!(code, Some(130), "{said}");
        assert!(said.contains(&format!("pingpong: interrupted in round {rounds} of 4")), "{said}");
        assert!(said.contains("to go on: the same command, with --resume"), "{said}");
        // The second replaces what the first has left.
        assert_eq!(said.contains(anew), answers, "{said}");
        assert_eq!(said.contains("  2 cells are known.\n"), answers, "{said}");
        assert_eq!(out.lines().count() > 2, answers, "{out}");
        let kept = record(&target, "pingpong-interrupted.json");
        assert_eq!((kept.ended, kept.rounds_done()), (Ended::Interrupted, rounds));
        assert_eq!(record(&target, "pingpong.json").rounds, 3);
    }
    // A run that begins anew forgets the one before, also if it is killed in its first round.
    let mut child = hanging(&target, &arguments("4"), 2);
    child.kill().unwrap();
    child.wait().unwrap();
    let said = run(&target, &[&arguments("4")[..], &["--resume"]].concat()).said;
    assert!(said.contains("  2 cells are known.\n") && !said.contains("are reused"), "{said}");
}

fn a_killed_run_goes_on() {
    let target = target("resume");
    let arguments = ["--bench", "pingpong", "--rounds", "4", "--seconds", "0.001"];
    // A round is six trials.
    let mut child = hanging(&target, &arguments, 8);
    let Ran { code, said, .. } = run(&target, &arguments);
    assert!(code == Some(1) && said.starts_with("error: another run is writing into "), "{said}");
    child.kill().unwrap();
    child.wait().unwrap();

    let Ran { code, said, .. } = run(&target, &[&arguments[..], &["--verbose", "--resume"]].concat());
    assert_eq!((code, said.lines().count()), (Some(2), 1), "{said}");
    assert!(said.contains("run had other options; it was begun with 'cargo bench -- pingpong "), "{said}");

    // Work is as long as it was before.
    let journal = target.join("ulocks-report/pingpong.journal");
    let calibration = || {
        let text = std::fs::read_to_string(&journal).unwrap();
        let parts: serde_json::Value = serde_json::from_str(&text).unwrap();
        parts["iterations_per_us"].as_f64().unwrap()
    };
    let before = calibration();
    // A signal loses no trial.
    let resumed = [&arguments[..], &["--resume"]].concat();
    let said = interrupted(hanging(&target, &resumed, 3)).said;
    assert!(said.contains("pingpong: 6 of 24 trials, "), "{said}");
    assert_eq!(calibration(), before);
    let Ran { code, said, .. } = run(&target, &resumed);
    assert!(code == Some(0) && said.contains("pingpong: 9 of 24 trials, "), "{said}");
    let record = record(&target, "pingpong.json");
    assert_eq!((record.ended, record.rounds_done()), (Ended::Rounds, 4));
    assert!(record.lines.iter().all(|line| line.values("rate") == [2.0; 4]));
    assert!(!target.join("ulocks-report/pingpong.journal").exists());
}

fn a_trial_that_fails_or_hangs_ends_its_row() {
    let target = target("fail");
    let Ran { code, said, .. } = program(&target, &["--bench"]).env(TRIALS, "fail").output().unwrap().into();
    assert_eq!(code, Some(1), "{said}");
    let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(errors.len(), 2, "{said}");
    for (error, row) in errors.iter().zip(["pingpong", "deaf"]) {
        assert!(error.starts_with(&format!("error: {row}: ")), "{error}");
        assert!(error.ends_with(" threads: cannot start thread 2 of 2: no more threads"), "{error}");
    }
    assert!(!target.join("ulocks-report/pingpong.json").exists());

    let Ran { code, said, .. } = interrupted(hanging(&target, &["--bench", "deaf"], 0));
    assert!(code == Some(130) && said.contains("deaf: ended before its first trial\n"), "{said}");
}

fn what_cannot_be_written_is_said_before_measuring() {
    let target = target("unwritable");
    std::fs::write(target.join("ulocks-report"), "a file").unwrap();
    let Ran { code, said, .. } = program(&target, &["--bench"]).env(TRIALS, "fail").output().unwrap().into();
    assert_eq!((code, said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.starts_with("error: cannot create "), "{said}");
}
