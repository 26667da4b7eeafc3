//! The promises: what each lock is said to do, as data. Nothing here is measured, nothing elsewhere
//! is promised.

use super::promise::{
    Bound, Claim, Fold, Promise, Subject, against, at_most, threads, versus, versus_best, workload,
};
use super::{condvar, readers, semarray};
use crate::run::syscalls;
use crate::workloads::Workload;
use crate::workloads::cell::Cell;
use crate::workloads::figure::Figure;
use crate::workloads::hogs::{Hogs, Place};
use crate::workloads::trial::Workers;

/// What general-purpose mutexes are compared with.
const PEERS: [&str; 3] = ["std", "parking_lot", "usync"];
/// Locks that serve strictly in order.
const FIFO_PEERS: [&str; 3] = ["sysv", "pthread-pi", "mcs-park"];
/// Those that promise a median wait on one CPU, and two peers for comparison.
const ON_ONE_CPU: [&str; 7] = ["unfair", "throughput", "asym", "byte", "fair", "semaphore", "pi"];

const THROUGHPUT: &str = "throughput";

const WORKLOADS_US: [(u64, u64); 4] = [(0, 0), (1, 9), (3, 7), (10, 0)];

/// After so long a waiter of `ThroughputMutex` has the lock reserved, unless its type says
/// otherwise.
const RESERVED_AFTER_NS: u64 = 100_000;
/// How long hogs hold.
const HOG_NS: u64 = 100_000;
/// What scheduling may add to a bounded wait.
const SLACK_NS: u64 = 1_000_000;
/// How long the holder holds where holder and waiter share a CPU: far less than the median wait
/// that is allowed.
const SHORT_HOG_NS: u64 = 20_000;
/// The median wait that is allowed there.
const ON_ONE_CPU_NS: u64 = 100_000;

/// Every promise, on a machine with so many CPUs.
pub fn all(cpus: u32) -> Vec<Promise> {
    let list = [
        fair(cpus),
        throughput(cpus),
        bounds(cpus),
        asym(),
        semaphore(),
        pi(),
        calock(),
        on_one_cpu(),
        readers::all(cpus),
        semarray::all(cpus),
        condvar::all(),
        scores(),
    ];
    list.into_iter().flatten().collect()
}

/// `FairMutex`: no thread overtakes, and where a CPU is left it costs nothing.
fn fair(cpus: u32) -> Vec<Promise> {
    const FAIR: &str = "fair";
    let mut list = Vec::new();
    for us in [(1, 9), (3, 7)] {
        let obstacle = (cpus < 2).then_some("needs two CPUs");
        list.push(Promise { obstacle, quick: us == (3, 7), ..against(FAIR, us, 2, &PEERS, 0.95) });
    }
    // Twice as many threads as CPUs, and many more: 4 and 32 on two CPUs.
    for n in [2 * cpus, 16 * cpus] {
        for us in WORKLOADS_US {
            let at_least = if us == (3, 7) && n == 2 * cpus { 2.0 } else { 1.2 };
            let quick = n == 2 * cpus && [(0, 0), (3, 7)].contains(&us);
            list.push(Promise { quick, ..against(FAIR, us, n, &FIFO_PEERS, at_least) });
        }
    }
    // A thousand waiters. The naive ticket lock falls to a fifth; half is far from that and from
    // what noise does.
    let crowd = |lock, workers| Subject {
        lock,
        cell: Cell::Loop { workload: workload((1, 9)), workers, second: false },
    };
    let thousand = |lock, of: fn(u32) -> Workers, bound, workers: &str| {
        let what = format!("(1, 9) us: rate of 1000 {workers} by that of 32 {workers}");
        versus(crowd(lock, of(1000)), crowd(lock, of(32)), Figure::PerSecond, bound, workers, what)
    };
    list.push(thousand(FAIR, Workers::Threads, Bound::AtLeast(0.5), "threads"));
    list.push(thousand(FAIR, Workers::Processes, Bound::AtLeast(0.5), "processes"));
    let naive = thousand("ticket-futex", Workers::Processes, Bound::Shown, "processes");
    list.push(Promise {
        lock: FAIR,
        name: format!("{FAIR}/processes/ticket-futex"),
        what: format!("ticket-futex, to compare: {}", naive.what),
        ..naive
    });
    let second = Cell::Loop { workload: workload((1, 0)), workers: Workers::Threads(8), second: true };
    let what = "COV of 8 threads over a second, hold 1 us".into();
    list.push(at_most(Subject { lock: FAIR, cell: second }, Figure::Cov, 0.02, "cov", what));
    list
}

/// `ThroughputMutex`: as fast as the fastest everywhere, and no thread starves.
fn throughput(cpus: u32) -> Vec<Promise> {
    let mut list = Vec::new();
    for n in [1, 2, 4, 8, 32, 100] {
        for us in WORKLOADS_US {
            let quick = [2, 8].contains(&n) && [(0, 0), (3, 7)].contains(&us);
            list.push(Promise { quick, ..against(THROUGHPUT, us, n, &PEERS, 0.95) });
        }
    }
    for (hogs, victims, place, words) in [
        (1, 1, Place::Apart, "hog and victim on different CPUs"),
        (1, 1, Place::Together, "hog and victim on one CPU"),
        (1, 31, Place::Apart, "1 hog, 31 victims"),
        (31, 1, Place::Apart, "31 hogs, 1 victim"),
    ] {
        let cell = Cell::Hogs(Hogs { hogs, victims, hold_ns: HOG_NS, place });
        let of = |lock| Subject { lock, cell };
        let id = match (hogs + victims, place) {
            (2, Place::Apart) => "hog/apart".into(),
            (2, Place::Together) => "hog/together".into(),
            _ => format!("hog/{hogs}+{victims}"),
        };
        let mut rows = Vec::new();
        for peer in ["std", "parking_lot"] {
            let what = format!("{words}: longest wait by that of {peer}");
            let (bound, name) = (Bound::AtMost(1.0 / 20.0), format!("{id}/worst/{peer}"));
            rows.push(versus(of(THROUGHPUT), of(peer), Figure::WorstWait, bound, &name, what));
        }
        // Hogs wait for one another too. With many of them each has been waiting for longer than
        // the bound when its turn comes, all are in one queue, and no order of service gives the
        // victim more than its place in it.
        let ahead = u64::from(hogs);
        let bound = (RESERVED_AFTER_NS + ahead * HOG_NS + SLACK_NS) as f64;
        let holds = if hogs == 1 { "one hold".into() } else { format!("{hogs} holds") };
        let what = format!("{words}: p99 wait, reserved after 100 us + {holds} + 1 ms");
        rows.push(at_most(of(THROUGHPUT), Figure::WaitP99, bound, &format!("{id}/p99"), what));
        let what = format!("{words}: hogs' rate by that of std");
        let (bound, name) = (Bound::AtLeast(0.95), format!("{id}/rate"));
        rows.push(versus(of(THROUGHPUT), of("std"), Figure::HogsPerSecond, bound, &name, what));
        let obstacle = (place == Place::Apart && cpus < 2).then_some("needs two CPUs");
        list.extend(rows.into_iter().map(|row| Promise { quick: hogs + victims == 2, obstacle, ..row }));
    }
    list
}

/// What another bound on overtaking gives, and what it costs.
fn bounds(cpus: u32) -> Vec<Promise> {
    const OF: [(&str, &str); 5] = [
        ("throughput-50us", "50us"),
        (THROUGHPUT, "100us"),
        ("throughput-200us", "200us"),
        ("throughput-500us", "500us"),
        ("throughput-1ms", "1ms"),
    ];
    let crowd = |hogs, victims| Cell::Hogs(Hogs { hogs, victims, hold_ns: HOG_NS, place: Place::Apart });
    let mut list = Vec::new();
    for (lock, after) in OF {
        let row = |cell, figure, id: &str, words: &str| {
            let of = |lock| Subject { lock, cell };
            let what = format!("overtaken for {after}: {words}");
            let row = versus(of(lock), of("std"), figure, Bound::Shown, "", what);
            Promise { name: format!("{THROUGHPUT}/bounds/{id}/{after}"), ..row }
        };
        let mut rows = vec![
            row(crowd(1, 31), Figure::WaitP99, "1+31/p99", "1 hog, 31 victims: p99 wait by that of std"),
            row(crowd(1, 31), Figure::HogsPerSecond, "1+31/rate", "1 hog, 31 victims: hog's rate by std's"),
            row(crowd(31, 1), Figure::WaitP99, "31+1/p99", "31 hogs, 1 victim: p99 wait by that of std"),
            row(crowd(31, 1), Figure::HogsPerSecond, "31+1/rate", "31 hogs, 1 victim: hogs' rate by std's"),
        ];
        for (us, n) in [((10, 0), 4), ((10, 0), 100), ((3, 7), 32), ((1, 9), 100)] {
            let (words, (hold, non)) = (format!("({}, {}) us, {n} threads: rate by std's", us.0, us.1), us);
            rows.push(row(threads(us, n), Figure::PerSecond, &format!("({hold},{non})x{n}"), &words));
        }
        let obstacle = (cpus < 2).then_some("needs two CPUs");
        list.extend(rows.into_iter().map(|row| Promise { lock: THROUGHPUT, obstacle, ..row }));
    }
    list
}

/// The cells that a mutex is scored over: short sections, and the usual workloads.
fn score_cells() -> Vec<Cell> {
    const THREADS: [u32; 4] = [2, 4, 8, 32];
    let of = |workload, n| Cell::Loop { workload, workers: Workers::Threads(n), second: false };
    let short = Workload::short().flat_map(|workload| THREADS.map(|n| of(workload, n)));
    let usual = WORKLOADS_US.iter().flat_map(|&us| THREADS.map(|n| threads(us, n)));
    short.chain(usual).collect()
}

/// The mutexes that are meant for any workload, over all of them.
fn scores() -> Vec<Promise> {
    let cells = score_cells();
    let mut list = Vec::new();
    for lock in ["unfair", "throughput", "calock"] {
        for (name, of, figure, bound, words) in [
            ("mean", Fold::Mean, Figure::PerSecond, Bound::AtLeast(1.05), "rate, geometric mean"),
            ("worst", Fold::Worst, Figure::PerSecond, Bound::AtLeast(0.97), "rate, worst workload"),
            ("cpu/mean", Fold::Mean, Figure::CpuPerOp, Bound::AtMost(1.0), "CPU time, geometric mean"),
            ("cpu/worst", Fold::Worst, Figure::CpuPerOp, Bound::AtMost(1.1), "CPU time, worst workload"),
        ] {
            let subject = |lock, cell| Subject { lock, cell };
            let pair = |&cell: &Cell| (subject(lock, cell), PEERS.map(|peer| subject(peer, cell)).to_vec());
            list.push(Promise {
                lock,
                name: format!("{lock}/score/{name}"),
                what: format!("score over all workloads: {words}"),
                figure,
                claim: Claim::Score { cells: cells.iter().map(pair).collect(), of },
                bound,
                quick: false,
                obstacle: None,
            });
        }
    }
    list
}

/// `AsymMutex`: half the price where no thread contends.
fn asym() -> Vec<Promise> {
    const ASYM: &str = "asym";
    let pair = |lock| Subject { lock, cell: Cell::Pairs };
    let what = "uncontended pair: time by that of std".into();
    let bound = Bound::AtMost(0.55);
    let uncontended = versus(pair(ASYM), pair("std"), Figure::PairNs, bound, "uncontended", what);
    let mut list = vec![Promise { quick: true, ..uncontended }];
    for n in [2, 8, 32] {
        let quick = n < 32;
        list.push(Promise { quick, ..against(ASYM, (0, 0), n, &PEERS, 1.3) });
        list.push(Promise { quick, ..against(ASYM, (0, 0), n, &["std"], 3.5) });
    }
    for n in [2, 8, 32] {
        list.push(against(ASYM, (1, 9), n, &PEERS, 0.95));
        list.push(against(ASYM, (3, 7), n, &PEERS, 0.95));
        list.push(Promise { quick: n == 8, ..against(ASYM, (10, 0), n, &["std"], 0.9) });
    }
    list
}

/// `Semaphore`: POSIX semantics' price, and order on top.
fn semaphore() -> Vec<Promise> {
    const SEMAPHORE: &str = "semaphore";
    let of = |lock, cell| Subject { lock, cell };
    let compare = |cell, figure, bound, name, what: &str| Promise {
        quick: true,
        ..versus(of(SEMAPHORE, cell), of("sem_t", cell), figure, bound, name, what.into())
    };
    vec![
        compare(
            Cell::Pairs,
            Figure::PairNs,
            Bound::AtMost(1.05),
            "uncontended",
            "uncontended pair: time by that of sem_t",
        ),
        compare(
            Cell::Handoff,
            Figure::PerSecond,
            Bound::AtLeast(1.0),
            "handoff",
            "contended hand-overs: rate by that of sem_t",
        ),
    ]
}

/// `PiMutex`, in the cells where two threads do nothing but contend: work outside would hide the
/// lock.
fn pi() -> Vec<Promise> {
    let row = |us| Promise { quick: us == (0, 0), ..against("pi", us, 2, &["pthread-pi"], 1.5) };
    vec![row((0, 0)), row((10, 0))]
}

/// A share of what is possible: of the rate of the same loop without a lock, and of that of one
/// thread that does nothing but the work inside.
fn of_possible(lock: &'static str, us: (u64, u64), n: u32, at_least: f64) -> Promise {
    let (hold, non_hold) = us;
    let without = |cell| Subject { lock: "none", cell };
    let mut limits = vec![without(threads((hold, 0), 1))];
    if non_hold > 0 {
        limits.push(without(threads(us, n)));
    }
    Promise {
        lock,
        name: format!("{lock}/({hold},{non_hold})x{n}/possible"),
        what: format!("({hold}, {non_hold}) us, {n} threads: rate by the greatest rate that is possible"),
        figure: Figure::PerSecond,
        claim: Claim::Share { mine: Subject { lock, cell: threads(us, n) }, limits },
        bound: Bound::AtLeast(at_least),
        quick: false,
        obstacle: None,
    }
}

/// `Calock`: however many contend, as fast as the work allows, and at the price of a few.
fn calock() -> Vec<Promise> {
    const CALOCK: &str = "calock";
    const FEW: u32 = 4;
    let mut list = Vec::new();
    let of = |lock, us, n| Subject { lock, cell: threads(us, n) };
    for n in [FEW, 32, 100, 1000] {
        let quick = n == FEW;
        for (us, at_least) in [((1, 9), 0.95), ((3, 7), 0.9), ((10, 0), 0.95)] {
            list.push(Promise { quick, ..of_possible(CALOCK, us, n, at_least) });
        }
        list.push(Promise { quick, ..against(CALOCK, (0, 0), n, &["std"], 2.5) });
    }
    for us in WORKLOADS_US {
        let (hold, non_hold) = us;
        let what = format!("({hold}, {non_hold}) us: rate of 1000 threads by that of {FEW}");
        let name = format!("({hold},{non_hold})x1000/x{FEW}");
        let [crowd, few] = [1000, FEW].map(|n| of(CALOCK, us, n));
        list.push(versus(crowd, few, Figure::PerSecond, Bound::AtLeast(0.9), &name, what));
    }
    let uncountable = (!syscalls::countable()).then_some("futex calls are counted on x86-64 only");
    for us in [(0, 0), (1, 9)] {
        for n in [8, 32, 100, 1000] {
            let (hold, non_hold) = us;
            let words = format!("({hold}, {non_hold}) us, {n} threads");
            let name = |figure: &str| format!("({hold},{non_hold})x{n}/{figure}");
            let peers = ["std", "parking_lot"].map(|lock| of(lock, us, n)).to_vec();
            let what = format!("{words}: CPU time an operation by the better of std, parking_lot");
            let (mine, bound) = (of(CALOCK, us, n), Bound::AtMost(1.0));
            list.push(versus_best(mine, peers, Figure::CpuPerOp, bound, &name("cpu"), what));
            let what = format!("{words}: sleeps and wakes an operation by std's");
            let (mine, bound) = (of(CALOCK, us, n), Bound::AtMost(0.5));
            let calls = versus(mine, of("std", us, n), Figure::FutexesPerOp, bound, &name("futexes"), what);
            list.push(Promise { obstacle: uncountable, ..calls });
        }
    }
    let pair = |lock| Subject { lock, cell: Cell::Pairs };
    let what = "uncontended pair: time by that of std".into();
    let bound = Bound::AtMost(1.05);
    let uncontended = versus(pair(CALOCK), pair("std"), Figure::PairNs, bound, "uncontended", what);
    list.push(Promise { quick: true, ..uncontended });
    list
}

/// Holder and waiter on one CPU: the waiter must not yield to threads that it does not wait for.
fn on_one_cpu() -> Vec<Promise> {
    let cell = Cell::Hogs(Hogs { hogs: 1, victims: 1, hold_ns: SHORT_HOG_NS, place: Place::Together });
    let row = |lock| {
        let what = "holder and waiter on one CPU: median wait".into();
        let row = at_most(Subject { lock, cell }, Figure::WaitP50, ON_ONE_CPU_NS as f64, "one-cpu", what);
        Promise { quick: true, ..row }
    };
    let mut list: Vec<Promise> = ON_ONE_CPU.map(row).to_vec();
    for peer in ["std", "parking_lot"] {
        let row = row(peer);
        let what = format!("{peer}, to compare: {}", row.what);
        list.push(Promise { bound: Bound::Shown, what, ..row });
    }
    list
}
