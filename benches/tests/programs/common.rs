//! What the tests share. A bench has no path that a test could know, so such a test starts itself
//! again, and in that process is the program.

use serde::de::DeserializeOwned;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Output, Stdio};
use ulocks_benches::programs::harness;
use ulocks_benches::report::{Ended, Mode};

/// Which program it is to be. Inherited by the trials, which are that program, too.
const AS: &str = "ULOCKS_TEST_AS_PROGRAM";

/// A program, and what it is called.
pub type Program = (&'static str, fn() -> ExitCode);

/// Is one of the programs, or runs the tests whose names contain what the first argument says.
pub fn main(programs: &[Program], tests: &[(&str, fn())]) -> ExitCode {
    if let Some(name) = std::env::var_os(AS) {
        let (_, program) =
            programs.iter().find(|&&(program, _)| name == program).expect("one of the programs");
        return program();
    }
    let filter = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    let (mut passed, mut failed) = (0, Vec::new());
    for (name, test) in tests.iter().filter(|(name, _)| name.contains(&filter)) {
        let ended = std::panic::catch_unwind(test);
        println!("test {name} ... {}", if ended.is_ok() { "ok" } else { "FAILED" });
        match ended {
            Ok(()) => passed += 1,
            Err(_) => failed.push(name),
        }
    }
    // The lines of std's own harness, which `cargo xtask test` counts and shows.
    if !failed.is_empty() {
        println!("\nfailures:\n    {}", failed.iter().map(|name| **name).collect::<Vec<_>>().join("\n    "));
    }
    let result = if failed.is_empty() { "ok" } else { "FAILED" };
    println!("\ntest result: {result}. {passed} passed; {} failed; 0 ignored", failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(101) }
}

/// The program called `name` with these arguments.
pub fn program(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args(arguments).env(AS, name).stdin(Stdio::null());
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

/// Runs it.
pub fn run(name: &str, arguments: &[&str]) -> Output {
    ulocks_testkit::limit::output(&mut program(name, arguments))
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Each of these command lines is refused with one line that contains the reason, and exit code 2.
pub fn refuses(name: &str, wrong: &[(&[&str], &str)]) {
    for (arguments, reason) in wrong {
        let output = run(name, arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(reason), "{arguments:?}: {said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{arguments:?}: {said}");
        assert!(output.stdout.is_empty());
    }
}

/// The record that a run says it has written.
pub fn record<R: DeserializeOwned>(stderr: &str) -> harness::Record<R> {
    let (_, path) = stderr.lines().last().unwrap().split_once(": ").unwrap();
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The record, output and errors of a smoke run, with options of criterion's and of `scaling` that
/// reach all benches of a package.
pub fn smoke<R: DeserializeOwned>(name: &str) -> (harness::Record<R>, String, String) {
    let output = run(name, &["--test", "--bench", "--sample-size", "10", "--threads", "1"]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{err}");
    assert!(out.contains("A smoke run: it measures nothing."), "{out}");
    let record = record(&err);
    assert_eq!((record.mode, record.ended, record.rounds), (Mode::Smoke, Ended::Rounds, 1));
    (record, out, err)
}

/// The filter of another bench selects nothing, and a list is not a run.
pub fn knows_its_name(name: &str) {
    let output = run(name, &["handoff", "--bench"]);
    assert!(output.status.success() && output.stdout.is_empty(), "{}", text(&output.stderr));
    let output = run(name, &["--list"]);
    assert!(output.status.success());
    assert_eq!(text(&output.stdout), format!("{name}: benchmark\n"));
}
