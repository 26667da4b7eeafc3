//! What is promised of the reader-writer locks: `PsRwLock` in its several types.

use super::promise::{Bound, Claim, Promise, Subject, at_most, versus, versus_best, workload};
use crate::subjects::rwlocks::FAMILY as PSRW;
use crate::workloads::cell::{Cell, LONG_MS};
use crate::workloads::figure::Figure;
use crate::workloads::readers::{Handlers, Probe, Run};
use crate::workloads::trial::Workers;

/// With readers in signal handlers, and the soft mask.
const HANDLER: &str = "psrw-handler";
/// The same, noting how long the mask is up.
const TIMED: &str = "psrw-timed";
/// With its readers' count spread over several words.
const DISTRIBUTED: &str = "psrw-distributed";

const STD: &str = "std-rw";
const PTHREAD: &str = "pthread-rw";
/// What general-purpose locks are compared with.
const PEERS: [&str; 2] = [STD, "parking_lot-rw"];
/// Those whose readers all change one word. The last is glibc's.
const ONE_WORD: &[&str] = here(&[STD, "parking_lot-rw", "usync-rw", PTHREAD, "pthread-rw-writer"]);
/// Those that keep signals off for as long as a thread wants or has the lock. The last is glibc's.
const MASKED: &[&str] =
    here(&["std-rw-masked", "parking_lot-rw-masked", "pthread-rw-masked", "pthread-rw-writer-masked"]);

/// Those of `names` that this libc has: the last needs glibc.
const fn here<'a>(names: &'a [&'a str]) -> &'a [&'a str] {
    if cfg!(target_env = "gnu") { names } else { names.split_at(names.len() - 1).0 }
}

/// The least and the most that a reader of class `Bulk` holds, in microseconds.
const HOLDS_US: [u32; 2] = [1, 3000];
/// The fewest and the most writers in a queue.
const WRITERS: [u32; 2] = [1, 8];

/// All of them, on a machine with so many CPUs.
pub(super) fn all(cpus: u32) -> Vec<Promise> {
    let apart = (cpus < 2).then_some("needs two CPUs");
    let mut list = uncontended();
    list.extend(readers_only());
    list.extend(mixed());
    let properties = [invariance(), queue(), contention(), masked()];
    list.extend(
        properties.into_iter().flatten().map(|row| Promise { obstacle: row.obstacle.or(apart), ..row }),
    );
    list
}

fn of(lock: &'static str, cell: Cell) -> Subject {
    Subject { lock, cell }
}

fn all_of(locks: &[&'static str], cell: Cell) -> Vec<Subject> {
    locks.iter().map(|&lock| of(lock, cell)).collect()
}

/// A price of a nanosecond or none where no thread contends.
fn uncontended() -> Vec<Promise> {
    let row = |lock, cell, bound, name: &str| {
        let what = format!("uncontended {name}: time by the best of {}", PEERS.join(", "));
        let name = format!("uncontended/{name}");
        let peers = all_of(&PEERS, cell);
        let row = versus_best(of(lock, cell), peers, Figure::PairNs, Bound::AtMost(bound), &name, what);
        Promise { quick: true, ..row }
    };
    vec![
        row(PSRW, Cell::ReadPairs, 1.05, "read"),
        row(PSRW, Cell::Pairs, 1.05, "write"),
        row(HANDLER, Cell::Pairs, 1.15, "write"),
    ]
}

/// A rate of the loop with a share of readers, by the best of some peers.
fn shared(
    lock: &'static str,
    us: (u64, u64),
    n: u32,
    reads: u8,
    peers: &[&'static str],
    least: f64,
) -> Promise {
    let cell = Cell::Shared { workload: workload(us), workers: Workers::Threads(n), reads };
    let (hold, non_hold) = us;
    let what = format!(
        "({hold}, {non_hold}) us, {n} threads, {reads} % reads: rate by the best of {}",
        peers.join(", ")
    );
    let name = format!("({hold},{non_hold})x{n}/{reads}%");
    let peers = all_of(peers, cell);
    versus_best(of(lock, cell), peers, Figure::PerSecond, Bound::AtLeast(least), &name, what)
}

/// Readers and no writer: no slower than a word that all of them change, or much faster than that.
fn readers_only() -> Vec<Promise> {
    let mut list = Vec::new();
    for n in [2, 4] {
        list.push(Promise { quick: n == 4, ..shared(PSRW, (0, 0), n, 100, &PEERS, 1.0) });
    }
    for n in [2, 4, 8] {
        list.push(Promise { quick: n == 2, ..shared(DISTRIBUTED, (0, 0), n, 100, ONE_WORD, 2.0) });
    }
    list
}

/// Readers that join readers that hold the lock.
fn mixed() -> Vec<Promise> {
    let cells = [2, 4].into_iter().flat_map(|n| [20, 50, 80].map(|reads| (n, reads)));
    let row =
        |(n, reads)| Promise { quick: (n, reads) == (4, 80), ..shared(PSRW, (10, 0), n, reads, &PEERS, 1.2) };
    cells.map(row).collect()
}

/// A figure of one lock in one run by its figure in another.
fn growth(
    lock: &'static str,
    runs: [Run; 2],
    figure: Figure,
    bound: Bound,
    name: &str,
    what: &str,
) -> Promise {
    let [few, many] = runs.map(|run| of(lock, Cell::Rw(run)));
    let row = versus(many, few, figure, bound, name, what.into());
    match bound {
        // Beside the promise, under the name of the lock that gave it.
        Bound::Shown => Promise {
            lock: PSRW,
            name: format!("{PSRW}/{name}/{lock}"),
            what: format!("{lock}, to compare: {what}"),
            ..row
        },
        _ => row,
    }
}

/// The readers at the top do not wait for those at the bottom.
fn invariance() -> Vec<Promise> {
    let row = |lock, probe, bound| {
        let runs = HOLDS_US.map(|hold_us| Run::Invariance { hold_us, probe });
        let class = if probe == Probe::Urgent { "Urgent" } else { "Handler" };
        let what = format!("{class}: p99.9 wait behind Bulk readers of 3 ms by that behind readers of 1 us");
        growth(lock, runs, Figure::TopP999, bound, &format!("invariance/{class}"), &what)
    };
    let mut list = vec![Promise { quick: true, ..row(PSRW, Probe::Urgent, Bound::AtMost(3.0)) }];
    list.extend(PEERS.map(|peer| row(peer, Probe::Urgent, Bound::Shown)));
    list.push(row(HANDLER, Probe::Handler, Bound::AtMost(3.0)));
    list
}

/// Nor for all the writers of a queue.
fn queue() -> Vec<Promise> {
    let row = |lock, probe, bound| {
        let runs = WRITERS.map(|writers| Run::Queue { writers, probe });
        let class = if probe == Probe::Urgent { "Urgent" } else { "Handler" };
        let what = format!("{class}: p99 wait beside 8 queued writers by that beside one");
        growth(lock, runs, Figure::TopP99, bound, &format!("queue/{class}"), &what)
    };
    let mut list = vec![row(PSRW, Probe::Urgent, Bound::AtMost(1.5))];
    list.extend(PEERS.map(|peer| row(peer, Probe::Urgent, Bound::Shown)));
    list.push(row(HANDLER, Probe::Handler, Bound::AtMost(1.5)));
    list
}

/// Every thread gets on.
fn contention() -> Vec<Promise> {
    let cell = Cell::Rw(Run::Contention(None));
    let long = Cell::Long(Run::Contention(None));
    let seconds = 3 * LONG_MS / 1000;
    let shares = at_most(
        of(PSRW, long),
        Figure::WriteShares,
        1.2,
        "contention/shares",
        "high contention, two writers: the writes of one by those of the other".into(),
    );
    let writes = versus(
        of(PSRW, cell),
        of(PTHREAD, cell),
        Figure::WritesPerSecond,
        Bound::AtLeast(3.0),
        "contention/writes",
        format!("high contention: writes by those of {PTHREAD}"),
    );
    let what = format!(
        "high contention: reads of the class with the fewest in any 100 ms, {seconds} s in three rounds"
    );
    let progress = Promise {
        claim: Claim::Value(of(PSRW, long)),
        figure: Figure::FewestReads,
        bound: Bound::AtLeast(1.0),
        name: format!("{PSRW}/contention/progress"),
        what,
        ..shares.clone()
    };
    vec![shares, Promise { quick: true, ..writes }, progress]
}

/// Signals are kept off for as long as handlers are shut out, and no longer.
fn masked() -> Vec<Promise> {
    let storm = Handlers { every_us: 100, tries: false };
    let row = |run: Run, words: &str, figure, name, time, bound| {
        let cell = Cell::Rw(run);
        let what = format!("{words}: longest {time} by the best that masks for the whole acquisition");
        let (mine, name) = (of(TIMED, cell), format!("{name}/{}", run.name()));
        versus_best(mine, all_of(MASKED, cell), figure, bound, &name, what)
    };
    // A writer that is preempted is masked, but it is not the mask that keeps its handlers from
    // running; hence a second figure, of which nothing is promised.
    let both = |run: Run, words: &str| {
        [
            row(run, words, Figure::MaskedMax, "masked", "masked time", Bound::AtMost(1.0 / 50.0)),
            row(
                run,
                words,
                Figure::HeldOffMax,
                "held-off",
                "masked time with a CPU, or asleep,",
                Bound::Shown,
            ),
        ]
    };
    let storm = both(Run::Contention(Some(storm)), "high contention, a signal every 100 us");
    let behind = both(Run::Behind, "a writer behind a reader of 3 ms");
    storm.into_iter().chain(behind.map(|row| Promise { quick: true, ..row })).collect()
}
