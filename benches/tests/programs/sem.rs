//! The programs `sembench` and `semscale` from outside: exit codes, one-line errors, what they
//! write.

use crate::common::{self, program, refuses, run, text};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use ulocks_benches::programs::semaphores::Row;
use ulocks_benches::report::Ended;
use ulocks_benches::subjects::semaphores::Entry;
use ulocks_benches::workloads::semaphores::{Order, Run};

const SEMBENCH: &str = "sembench";
const SEMSCALE: &str = "semscale";

pub fn wrong_options_are_one_line_and_exit_code_2() {
    refuses(
        SEMBENCH,
        &[
            (&["-t", "0"], "0 threads are out of range; allowed: 1 to 10000"),
            (&["-w", "many"], "'many' is not a number of threads; allowed: 1 to 10000"),
            (&["-r", "0"], "allowed: 0.001 to 3600"),
            (&["-r", "1", "--seconds", "1"], "cannot be used with"),
            (&["-o", "1"], "unknown mode '1'; allowed: sysv, sysv-single, futex, futex-private, "),
            (&["-o", "sem_t"], "unknown mode 'sem_t'; allowed: "),
            (&["--order", "fifo,upwards"], "unknown order 'upwards'; allowed: fifo, lifo, random"),
        ],
    );
}

pub fn a_smoke_run_of_sembench_leaves_a_record() {
    let (record, out, _) = common::smoke::<Row>(SEMBENCH);
    assert!(out.contains("\n24 threads, up to 16 woken at a time\n"), "{out}");
    assert!(record.rows.iter().all(|row| row.per_s.value > 0.0 && out.contains(&row.subject)));
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

pub fn a_smoke_run_of_semscale_leaves_a_record() {
    let (record, out, _) = common::smoke::<Row>(SEMSCALE);
    for words in ["on their own", "a poster of 64", "a pair that passes a turn", "philosophers", "a manager"]
    {
        assert!(out.contains(words), "{words}: {out}");
    }
    assert!(record.rows.iter().all(|row| row.per_s.value > 0.0 && out.contains(&row.subject)));
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

pub fn one_size_with_the_letters_of_2010() {
    let arguments = ["-t", "300", "-w", "200", "-r", "0.02", "-o", "sysv,futex-private", "--rounds", "2"];
    let output = run(SEMBENCH, &arguments);
    let err = text(&output.stderr);
    assert!(output.status.success(), "{err}");
    assert!(text(&output.stdout).contains("\n300 threads, up to 200 woken at a time\n"));
    let record = common::record::<Row>(&err);
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

pub fn an_interrupt_leaves_a_record_and_no_semaphores() {
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
    assert_eq!(common::record::<Row>(&said).ended, Ended::Interrupted);
    let listing = std::fs::read_to_string("/proc/sysvipc/sem").unwrap();
    let left = |id: &i32| listing.lines().any(|line| line.split_whitespace().nth(1) == Some(&id.to_string()));
    assert!(!sets.iter().any(left), "{sets:?} are left over");
}
