//! `tofutex` and `test-mutex`: what Ctrl-C leaves, and threads that cannot be had. What all
//! programs do with a folder that they cannot write into.

use super::common::{program, text};
use serde::Deserialize;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};
use ulocks_benches::report::Ended;

/// Both, with options that make each trial of theirs short.
const PROGRAMS: [(&str, &[&str]); 2] = [
    ("tofutex", &["--threads", "2", "--operations", "1000", "--rounds", "100", "--locks", "std,unfair"]),
    ("test-mutex", &["--tasks", "2", "--seconds", "0.01", "--rounds", "100", "--locks", "std,unfair"]),
];

/// What the records of both have.
#[derive(Deserialize)]
struct Record {
    ended: Ended,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    lock: String,
    rounds: Vec<serde_json::Value>,
}

/// The trial that runs now.
fn trial(program: u32) -> Option<i32> {
    let children = fs::read_to_string(format!("/proc/{program}/task/{program}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

pub fn an_interrupt_leaves_what_there_is_and_no_good_record_is_lost() {
    for (name, arguments) in PROGRAMS {
        let mut child = program(name, arguments).stdout(Stdio::piped()).spawn().unwrap();
        // The third trial runs, so two have ended.
        let (mut seen, patience) = (Vec::new(), Instant::now() + Duration::from_secs(120));
        while seen.len() < 3 {
            seen.extend(trial(child.id()).filter(|trial| !seen.contains(trial)));
            if Instant::now() > patience {
                child.kill().unwrap();
                panic!("{name}: there was no third trial in two minutes, but {seen:?}");
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        // SAFETY: `kill` has no preconditions; the child was not waited for, so its number is still
        // its own.
        unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
        let output = child.wait_with_output().unwrap();
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(130), "{name}: {said}");
        assert!(said.contains("The run was interrupted"), "{name}: {said}");
        let path = PathBuf::from(said.lines().last().unwrap().strip_prefix("record: ").unwrap());
        assert_eq!(path.file_name().unwrap().to_str(), Some(format!("{name}-interrupted.json").as_str()));
        let record: Record = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(record.ended, Ended::Interrupted);
        let rounds: Vec<_> = record.rows.iter().map(|row| (row.lock.as_str(), row.rounds.len())).collect();
        assert_eq!(rounds.iter().map(|round| round.0).collect::<Vec<_>>(), ["std", "unfair"], "{name}");
        assert!(rounds.iter().all(|round| (1..100).contains(&round.1)), "{name}: {rounds:?}");
        assert!(said.contains("\nstd ") && said.contains("\nunfair "), "{name}: {said}");
        fs::remove_file(path).unwrap();
    }
}

/// A thousand stacks do not fit into the address space that the programs get.
pub fn a_thread_that_cannot_be_had_is_an_error_at_once() {
    for (name, count) in [("tofutex", "--threads"), ("test-mutex", "--tasks")] {
        let mut command = program(name, &[count, "1000", "--rounds", "1", "--locks", "std"]);
        // SAFETY: between fork and exec; `setrlimit` is async-signal-safe and gets a valid
        // structure.
        unsafe {
            command.pre_exec(|| {
                let limit = libc::rlimit { rlim_cur: 1 << 30, rlim_max: 1 << 30 };
                match libc::setrlimit(libc::RLIMIT_AS, &limit) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            })
        };
        let output = command.output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name}: {said}");
        assert!(said.contains(": cannot start thread ") && said.contains(" of 1000: "), "{name}: {said}");
        assert!(!said.contains("hung"), "{name}: {said}");
    }
}

/// Before anything is measured.
pub fn a_folder_that_cannot_be_written_is_an_error_at_once() {
    const NOBODY: u32 = 54_333;
    // SAFETY: the call takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("not checked: this takes root, and another user");
        return;
    }
    for (name, arguments) in
        [("semscale", &["--quick"][..]), ("scaling", &["--quick"]), PROGRAMS[0], PROGRAMS[1]]
    {
        let output = program(name, arguments).uid(NOBODY).gid(NOBODY).output().unwrap();
        let (out, said) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{name}: {said}");
        let has_reason = said.contains(": cannot write into ") || said.contains(": cannot create ");
        assert!(has_reason && said.contains("Permission denied"), "{name}: {said}");
        assert_eq!((said.lines().count(), out.as_str()), (1, ""), "{name}: {said}");
    }
}
