//! `tasks`: tasks of an executor at one lock, alone, among themselves, beside threads, and with
//! futures that are dropped.

use super::{Row, Wish, by, by_peer, named, no_claims, of, scores};
use crate::engine::cell::{Cell, Job};
use crate::engine::record::{Mode, Record};
use crate::report::units;
use crate::subjects::tasks::{Entry, NONE, PLAIN};
use crate::workloads::tasks::Run;
use crate::workloads::{Scenario, Times};

pub const ROW: Row = Row {
    name: "tasks",
    about: "tasks of tokio's executor at one lock, and threads beside them",
    share_s: (35, 9),
    jobs,
    drop_first: &["event-listener", "maitake", "tokio-semaphore", "async-rwlock", "spawn-blocking", "calock"],
    columns: &[of("rate"), by_peer("rate"), by("rate", "tokio"), by_peer("cpu"), of("cov")],
    claims: no_claims,
    sentences,
    notes: "An operation is a turn: to acquire the lock, to hold it, to release it. Beside others a task \
            yields to the executor after each, which costs all the same. `plain` blocks the worker while it \
            waits, and may not be held across an `.await`. With futures that are dropped, each turn has a \
            second future, which is polled once.",
};

const TASKS: [u32; 3] = [2, 64, 1_000];
const TIMES: [Times; 2] = [Times { hold_ns: 0, think_ns: 0 }, Times { hold_ns: 500, think_ns: 500 }];

fn jobs(wish: &Wish) -> Vec<Job> {
    let (cpus, full) = (wish.cpus.max(1), wish.mode == Mode::Full);
    let tasks = wish.threads.clone().unwrap_or_else(|| match wish.mode {
        Mode::Full => TASKS.to_vec(),
        Mode::Quick => vec![64],
        Mode::Smoke => vec![4],
    });
    let times = wish.times.map_or(TIMES[usize::from(!full)..].to_vec(), |times| vec![times]);
    let alone = Run { tasks: 1, threads: 0, workers: 1, times: Times::default(), cancels: false };
    let mut jobs = Vec::from_iter(job(wish, "one task", "alone".into(), None, alone));
    for &times in &times {
        let mixes = [
            (0, false, "tasks"),
            (cpus, false, "tasks, and a thread for each CPU"),
            (0, true, "tasks, and futures that are dropped"),
        ];
        for &(threads, cancels, what) in if full && times.is_bare() { &mixes[..1] } else { &mixes } {
            let section = format!("{what}, {}", units::times(times));
            for &tasks in &tasks {
                let run = Run { tasks, threads, workers: cpus, times, cancels };
                jobs.extend(job(wish, &section, format!("{tasks} tasks"), Some(tasks), run));
            }
        }
    }
    jobs
}

/// What people use today always takes part.
const PEERS: [&str; 2] = ["tokio", "async-lock"];

fn job(wish: &Wish, section: &str, label: String, x: Option<u32>, run: Run) -> Option<Job> {
    let mut subjects = named(wish, Entry::all().iter().map(|entry| entry.name), &PEERS)?;
    subjects.retain(|name| match name.as_str() {
        // It says what a lock costs that blocks; a second future of it would be acquired.
        PLAIN => run.tasks == 1,
        // A bound where the lock is held for no time.
        NONE => run.times.is_bare(),
        _ => true,
    });
    let scenario = Scenario::Tasks(run);
    Some(Job { cell: Cell { section: section.into(), label, x: x.map(f64::from), scenario }, subjects })
}

fn sentences(record: &Record) -> Vec<String> {
    scores("tasks", record)
}
