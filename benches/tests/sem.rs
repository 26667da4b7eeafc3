//! The programs `sembench` and `semscale` from outside: exit codes, one-line errors, what they
//! write.

mod common;

use common::{program, refuses, run, text};
use std::io::{BufRead, BufReader, Read};
use std::process::{ExitCode, Stdio};
use ulocks_benches::programs::harness;
use ulocks_benches::programs::semaphores::Record;
use ulocks_benches::programs::semaphores::sembench::Sembench;
use ulocks_benches::programs::semaphores::semscale::Semscale;
use ulocks_benches::report::{Ended, Mode};
use ulocks_benches::subjects::semaphores::Entry;
use ulocks_benches::workloads::semaphores::{Order, Run};

const SEMBENCH: &str = "sembench";
const SEMSCALE: &str = "semscale";

fn main() -> ExitCode {
    common::main(
        &[(SEMBENCH, harness::main::<Sembench>), (SEMSCALE, harness::main::<Semscale>)],
        &[
            ("wrong_options_are_one_line_and_exit_code_2", wrong_options_are_one_line_and_exit_code_2),
            ("foreign_filters_and_lists_run_nothing", foreign_filters_and_lists_run_nothing),
            ("a_smoke_run_of_sembench_leaves_a_record", a_smoke_run_of_sembench_leaves_a_record),
            ("a_smoke_run_of_semscale_leaves_a_record", a_smoke_run_of_semscale_leaves_a_record),
            ("one_size_with_the_letters_of_2010", one_size_with_the_letters_of_2010),
            (
                "an_interrupt_leaves_a_record_and_no_semaphores",
                an_interrupt_leaves_a_record_and_no_semaphores,
            ),
        ],
    )
}

/// The record that a run says it has written.
fn record(stderr: &str) -> Record {
    let (_, path) = stderr.lines().last().unwrap().split_once(": ").unwrap();
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn wrong_options_are_one_line_and_exit_code_2() {
    for name in [SEMBENCH, SEMSCALE] {
        refuses(
            name,
            &[
                (&["--rounds", "0"], "'0' is not a number of rounds; allowed: 1 to 1000"),
                (&["--locks", "lockless"], "unknown lock 'lockless'; allowed: "),
                (&["--onyl", "queue"], "unexpected argument '--onyl'; allowed: "),
            ],
        );
    }
    refuses(
        SEMBENCH,
        &[
            (&["-t", "0"], "0 threads are out of range; allowed: 1 to 10000"),
            (&["-w", "many"], "'many' is not a number of threads; allowed: 1 to 10000"),
            (&["-r", "0"], "allowed: 0.001 to 3600"),
            (&["-r", "1", "--seconds", "1"], "cannot be used with"),
            (
                &["-o", "1"],
                "unknown mode '1'; allowed: sysv, sysv-single, futex, futex-private, futex-groups, ",
            ),
            (&["-o", "sem_t"], "unknown mode 'sem_t'; allowed: "),
            (&["--order", "fifo,upwards"], "unknown order 'upwards'; allowed: fifo, lifo, random"),
        ],
    );
}

fn foreign_filters_and_lists_run_nothing() {
    for name in [SEMBENCH, SEMSCALE] {
        common::knows_its_name(name);
        let output = run(name, &["--only", "no such run"]);
        assert!(output.status.success() && output.stdout.is_empty());
        assert_eq!(
            text(&output.stderr),
            format!("{name}: no row is of these --locks and has a name that contains this --only\n")
        );
    }
}

/// The record of a smoke run, with options of criterion's and of `scaling` that reach all benches
/// of a package.
fn smoke(name: &str) -> (Record, String) {
    let output = run(name, &["--test", "--bench", "--sample-size", "10", "--threads", "1"]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{err}");
    assert!(out.contains("A smoke run: it measures nothing."), "{out}");
    let record = record(&err);
    assert_eq!((record.mode, record.ended, record.rounds), (Mode::Smoke, Ended::Rounds, 1));
    assert!(record.rows.iter().all(|row| row.per_s.value > 0.0 && out.contains(&row.subject)));
    (record, out)
}

fn a_smoke_run_of_sembench_leaves_a_record() {
    let (record, out) = smoke(SEMBENCH);
    assert!(out.contains("\n24 threads, up to 16 woken at a time\n"), "{out}");
    for entry in Entry::all() {
        let mine: Vec<_> = record.rows.iter().filter(|row| row.subject == entry.name).collect();
        let takes_part = Run::Wakes { threads: 24, wakes: 16, order: Order::Fifo }.admits(entry);
        let orders = if entry.one_by_one { 1 } else { Order::ALL.len() };
        assert_eq!(mine.len(), if takes_part { orders } else { 0 }, "{}", entry.name);
        for row in mine {
            assert_eq!(row.by.len(), if ["sysv", "futex"].contains(&entry.name) { 1 } else { 2 }, "{row:?}");
            assert_eq!(row.by_fifo.is_some(), !matches!(row.run, Run::Wakes { order: Order::Fifo, .. }));
        }
    }
}

fn a_smoke_run_of_semscale_leaves_a_record() {
    let (record, out) = smoke(SEMSCALE);
    for words in ["on their own", "a poster of 64", "a pair that passes a turn", "philosophers", "a manager"]
    {
        assert!(out.contains(words), "{words}: {out}");
    }
    for entry in Entry::all() {
        let takes_part = record.rows.iter().any(|row| row.subject == entry.name);
        assert_eq!(
            takes_part,
            Run::Manager { workers: 8, hold_us: 0 }.admits(entry) || entry.name == "sem_t"
        );
    }
    for row in &record.rows {
        let (manager, own) = (matches!(row.run, Run::Manager { .. }), row.name.contains("poster"));
        assert_eq!(
            (row.share.is_some(), row.beside_per_s.is_some()),
            (manager, manager || own),
            "{}",
            row.name
        );
    }
}

fn one_size_with_the_letters_of_2010() {
    let arguments = ["-t", "300", "-w", "200", "-r", "0.02", "-o", "sysv,futex-private", "--rounds", "2"];
    let output = run(SEMBENCH, &arguments);
    let err = text(&output.stderr);
    assert!(output.status.success(), "{err}");
    assert!(text(&output.stdout).contains("\n300 threads, up to 200 woken at a time\n"));
    let record = record(&err);
    let names: Vec<_> = record.rows.iter().map(|row| row.name.as_str()).collect();
    let expected =
        ["300/200/fifo/sysv", "300/200/fifo/futex-private", "300/200/lifo/sysv", "300/200/random/sysv"];
    assert_eq!(names, expected);
    // Two rounds of these and of the futex that ratios are taken to, in the orders that are shown.
    assert_eq!((record.window_ms, record.trials.len()), (20, 2 * (4 + 3)));
    let by = record.rows[1].by.iter().map(|by| (by.rounds, by.interval.is_some()));
    assert_eq!(by.collect::<Vec<_>>(), [(2, true), (2, true)]);
}

/// Ids of the SysV semaphore sets of this machine whose last user is a process of the group.
fn sets_of(group: i32) -> Vec<i32> {
    let listing = std::fs::read_to_string("/proc/sysvipc/sem").unwrap();
    // key semid perms nsems ..
    let ids = listing.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1)?.parse().ok());
    // SAFETY: GETPID takes no fourth argument, and a process that is gone has no group; neither
    // touches memory of ours.
    ids.filter(|&id| unsafe { libc::getpgid(libc::semctl(id, 0, libc::GETPID)) } == group).collect()
}

fn an_interrupt_leaves_a_record_and_no_semaphores() {
    let arguments = ["--seconds", "600", "--only", "complex/4/sysv"];
    let mut child =
        program(SEMSCALE, &arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Until its trial, which is the leader of a process group, has made its set.
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let trial: i32 = loop {
        let trial = std::fs::read_to_string(&children).unwrap().trim().parse().ok();
        if let Some(trial) = trial.filter(|&trial| sets_of(trial).len() == 1) {
            break trial;
        }
        if std::time::Instant::now() > patience {
            child.kill().unwrap();
            panic!("no trial has made its set");
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    };
    let sets = sets_of(trial);
    // SAFETY: `kill` has no preconditions; the child was not waited for, so its number is still its
    // own.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let mut said = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut said).unwrap();
    stderr.read_to_string(&mut said).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(text(&output.stdout).contains("The run was interrupted"));
    assert_eq!(record(&said).ended, Ended::Interrupted);
    let listing = std::fs::read_to_string("/proc/sysvipc/sem").unwrap();
    let left = |id: &i32| listing.lines().any(|line| line.split_whitespace().nth(1) == Some(&id.to_string()));
    assert!(!sets.iter().any(left), "{sets:?} are left over");
}
