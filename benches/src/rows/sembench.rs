//! `sembench`: the program of 2010. Many wait, each for a semaphore of its own, and one posts to
//! many at a time: between threads and between processes.

use super::{Row, Wish, against, by, named, no_claims, of};
use crate::engine::cell::{Cell, Job};
use crate::engine::record::{Mode, Record};
use crate::subjects::semaphores::{Entry, FUTEX, KERNEL, ROBUST, SEMARRAY};
use crate::workloads::semaphores::{Order, Run};
use crate::workloads::{Scenario, Workers};

/// The row.
pub const ROW: Row = Row {
    name: "sembench",
    about: "semaphore arrays: many sleep, one posts to many at a time; threads and processes",
    share_s: (38, 12),
    jobs,
    drop_first: &["sysv-single", "semarray-single"],
    columns: &[of("rate"), by("rate", KERNEL), by("rate", FUTEX), of("cpu"), of("calls"), of("cov")],
    claims: no_claims,
    sentences,
    notes: "An operation is a post that has arrived, or a semaphore taken and given back. CPU/op has the \
            poster's search for ready sleepers in it. Semaphores lie in arrays of 250 and are posted to in \
            sets of up to 64, or one by one. Between processes SemArray does not work; shm::SemArray \
            gives permits back when their holder dies, as the kernel's semop does only with SEM_UNDO.",
};

/// Threads, and how many are posted to at a time.
const SIZES: [(u32, u32); 2] = [(256, 200), (1000, 900)];
/// Processes.
const PROCESSES: u32 = 64;

/// In which order they are posted to.
pub const ORDERS: [(Order, &str); 3] =
    [(Order::Fifo, "fifo"), (Order::Lifo, "lifo"), (Order::Random, "random")];

fn jobs(wish: &Wish) -> Vec<Job> {
    let sizes = match (&wish.threads, wish.mode) {
        (Some(threads), _) => threads.iter().map(|&n| (n, (4 * n / 5).max(1))).collect(),
        (None, Mode::Smoke) => vec![(24, 16)],
        (None, Mode::Quick) => SIZES[..1].to_vec(),
        (None, Mode::Full) => SIZES.to_vec(),
    };
    let threads = sizes.into_iter().flat_map(|(n, most)| wakes(wish, Workers::Threads(n), most, &ORDERS));
    let n = if wish.mode == Mode::Smoke { 4 } else { PROCESSES };
    let processes =
        [1, n].into_iter().flat_map(|most| wakes(wish, Workers::Processes(n), most, &ORDERS[..1]));
    threads.chain(processes).chain(one_array(wish)).collect()
}

/// So many wait, and up to so many of them are posted to at a time, in these orders.
pub fn wakes(wish: &Wish, workers: Workers, most: u32, orders: &[(Order, &str)]) -> Vec<Job> {
    let kind = if matches!(workers, Workers::Threads(_)) { "threads" } else { "processes" };
    let most_words = if most == 1 { "one".into() } else { format!("up to {most}") };
    let section = format!("{} {kind}, {most_words} posted to at a time", workers.count());
    let job = |&(order, words): &(Order, &str)| {
        let run = Run::Wakes { workers, wakes: most, order };
        // What posts to one at a time has no order that could matter to it; ratios are to one.
        let all = |entry: &Entry| order == Order::Fifo || entry.per_call > 1 || entry.name == FUTEX;
        job(wish, &section, words, None, run, all)
    };
    orders.iter().filter_map(job).collect()
}

/// What Spraul has a figure of: single operations of four threads on one array.
pub fn one_array(wish: &Wish) -> Option<Job> {
    let run = Run::Own { threads: 4, poster: false };
    job(wish, "One array, single operations", "4 threads on their own", None, run, |_| true)
}

/// A job of all that can take part and are wanted, and the kernel's semaphores; none if only they
/// would be left of those that the command line names.
pub(super) fn job(
    wish: &Wish,
    section: &str,
    label: &str,
    x: Option<u32>,
    run: Run,
    wanted: impl Fn(&Entry) -> bool,
) -> Option<Job> {
    let all = Entry::all().iter().filter(|entry| run.admits(entry));
    let all = all.filter(|entry| wish.subjects.is_some() || wanted(entry)).map(|entry| entry.name);
    let subjects = named(wish, all, &[KERNEL])?;
    let scenario = Scenario::Semaphores(run);
    Some(Job {
        cell: Cell { section: section.into(), label: label.into(), x: x.map(f64::from), scenario },
        subjects,
    })
}

fn sentences(record: &Record) -> Vec<String> {
    let mut sentences = Vec::new();
    for (at, cell) in record.cells.iter().enumerate() {
        let Scenario::Semaphores(Run::Wakes { workers, order: Order::Fifo, .. }) = cell.scenario else {
            continue;
        };
        let mine = if matches!(workers, Workers::Processes(_)) { ROBUST } else { SEMARRAY };
        let words = cell.section.replace(" posted to at a time", " at a time");
        for other in [KERNEL, FUTEX] {
            let ratio = record.ratio((at, mine), (at, other), "rate");
            sentences.extend(ratio.map(|ratio| format!("{words}: {mine} posts {}.", against(ratio, other))));
        }
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::semscale;

    #[test]
    fn what_is_named_is_measured_beside_the_kernels() {
        let wish = |names: &[&str]| Wish {
            cpus: 2,
            mode: Mode::Quick,
            subjects: Some(names.iter().map(|&name| name.into()).collect()),
            ..Wish::default()
        };
        let jobs = (ROW.jobs)(&wish(&[ROBUST]));
        assert!(jobs.iter().all(|job| job.subjects == [KERNEL, ROBUST]) && jobs.len() == 2, "{jobs:?}");
        assert!((ROW.jobs)(&wish(&["std"])).is_empty() && (semscale::ROW.jobs)(&wish(&["std"])).is_empty());
    }

    #[test]
    fn sentences_say_who_is_ahead_and_fit() {
        let jobs = (ROW.jobs)(&Wish { cpus: 2, mode: Mode::Quick, ..Wish::default() });
        let mut record = crate::report::fixture::record(3, |_, _, _, _| 1.0);
        record.cells = jobs.into_iter().map(|job| job.cell).collect();
        let line = |cell, subject: &str, rate: f64| crate::engine::record::Line {
            cell,
            subject: subject.into(),
            rounds: [("rate".to_owned(), vec![Some(rate), Some(1.01 * rate), Some(0.99 * rate)])].into(),
        };
        let last = record.cells.len() - 2;
        record.lines = vec![line(0, SEMARRAY, 3e6), line(0, KERNEL, 2e6)];
        record.lines.extend([line(last, ROBUST, 1e6), line(last, KERNEL, 4e6)]);
        let said = [
            "256 threads, up to 200 at a time: semarray posts 1.50 [1.50 1.50] of sysv (ahead).",
            "64 processes, up to 64 at a time: robust-semarray posts 0.25 [0.25 0.25] of sysv (behind).",
        ];
        assert_eq!(sentences(&record), said);
    }
}
