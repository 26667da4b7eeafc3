//! The promises: what each lock is said to do, as data: the rows that somebody would quote. Nothing
//! here is measured, nothing elsewhere is promised but what [`shared`](crate::programs::shared)
//! says of locks between processes.

use super::promise::{
    Bound, Claim, Promise, Subject, against, at_most, threads, versus, versus_best, workload,
};
use crate::run::syscalls;
use crate::subjects::rwlocks::FAMILY as PSRW;
use crate::subjects::semaphores::{FUTEX, KERNEL, POSIX, SEMARRAY, STRICT};
use crate::workloads::cell::Cell;
use crate::workloads::figure::Figure;
use crate::workloads::hogs::{Hogs, Place};
use crate::workloads::readers::{Probe, Run};
use crate::workloads::semaphores::{self, Order};
use crate::workloads::trial::Workers;

/// What general-purpose mutexes are compared with.
const PEERS: [&str; 3] = ["std", "parking_lot", "usync"];
/// Locks that serve strictly in order.
const FIFO_PEERS: [&str; 3] = ["sysv", "pthread-pi", "mcs-park"];
/// What reader-writer locks are compared with.
const RW_PEERS: [&str; 2] = ["std-rw", "parking_lot-rw"];
/// Those whose readers all change one word. The last is glibc's.
const ONE_WORD: &[&str] = here(&["std-rw", "parking_lot-rw", "usync-rw", "pthread-rw", "pthread-rw-writer"]);
/// Those that keep signals off for as long as a thread wants or has the lock. The last is glibc's.
const MASKED: &[&str] =
    here(&["std-rw-masked", "parking_lot-rw-masked", "pthread-rw-masked", "pthread-rw-writer-masked"]);

const WORKLOADS_US: [(u64, u64); 4] = [(0, 0), (1, 9), (3, 7), (10, 0)];

/// How long hogs hold, and after how long a waiter of `ThroughputMutex` has the lock reserved.
const HOG_NS: u64 = 100_000;
/// What scheduling may add to a bounded wait.
const SLACK_NS: u64 = 1_000_000;
/// How long the holder holds where holder and waiter share a CPU: far less than the median wait
/// that is allowed.
const SHORT_HOG_NS: u64 = 20_000;
/// The median wait that is allowed there.
const ON_ONE_CPU_NS: f64 = 100_000.0;

/// Those of `names` that this libc has: the last needs glibc.
const fn here<'a>(names: &'a [&'a str]) -> &'a [&'a str] {
    if cfg!(target_env = "gnu") { names } else { names.split_at(names.len() - 1).0 }
}

/// Every promise, on a machine with so many CPUs.
pub fn all(cpus: u32) -> Vec<Promise> {
    let anywhere =
        [uncontended(), fair(cpus), asym(), handed_over(), calock(), on_one_cpu(), readers(), arrays()];
    let apart = [hogs(), readers_in_order()].into_iter().flatten();
    let obstacle = (cpus < 2).then_some("needs two CPUs");
    anywhere.into_iter().flatten().chain(apart.map(|row| Promise { obstacle, ..row })).collect()
}

fn of(lock: &'static str, cell: Cell) -> Subject {
    Subject { lock, cell }
}

fn all_of(locks: &[&'static str], cell: Cell) -> Vec<Subject> {
    locks.iter().map(|&lock| of(lock, cell)).collect()
}

/// Lock and unlock where no thread is in the way.
fn uncontended() -> Vec<Promise> {
    let pair = |lock, cell, peers: &[&'static str], bound, name: &str, what: String| {
        let what = format!("uncontended {what}");
        let name = format!("uncontended{name}");
        let bound = Bound::AtMost(bound);
        versus_best(of(lock, cell), all_of(peers, cell), Figure::PairNs, bound, &name, what)
    };
    let mutex = |lock, peer, bound| {
        pair(lock, Cell::Pairs, &[peer], bound, "", format!("pair: time by that of {peer}"))
    };
    let rw = |cell, name: &str| {
        let what = format!("{name}: time by the best of {}", RW_PEERS.join(", "));
        pair(PSRW, cell, &RW_PEERS, 1.05, &format!("/{name}"), what)
    };
    let array = |cell, words: &str, other, bound| {
        let what = format!("{words} and its opposite: time by that of {other}");
        pair(SEMARRAY, cell, &[other], bound, &format!("/{words}/{other}"), what)
    };
    let list = vec![
        mutex("asym", "std", 0.55),
        mutex("calock", "std", 1.05),
        mutex("semaphore", "sem_t", 1.05),
        rw(Cell::ReadPairs, "read"),
        rw(Cell::Pairs, "write"),
        array(Cell::Singles(64), "single operation", KERNEL, 1.0 / 20.0),
        array(Cell::Singles(64), "single operation", POSIX, 1.3),
        array(Cell::Sets(8), "set of 8", KERNEL, 1.0 / 5.0),
        array(Cell::Sets(64), "set of 64", KERNEL, 1.0 / 5.0),
    ];
    list.into_iter().map(|row| Promise { quick: true, ..row }).collect()
}

/// `ThroughputMutex`: no thread starves. How fast it is, the tables of `scaling` say.
fn hogs() -> Vec<Promise> {
    let mut list = Vec::new();
    for (hogs, victims, id, words) in
        [(1, 1, "hog/apart", "hog and victim on different CPUs"), (1, 31, "hog/1+31", "1 hog, 31 victims")]
    {
        let cell = Cell::Hogs(Hogs { hogs, victims, hold_ns: HOG_NS, place: Place::Apart });
        let (mine, std) = (of("throughput", cell), of("std", cell));
        let by_std = |figure, bound, name: &str, what: &str| {
            let (name, what) = (format!("{id}/{name}"), format!("{words}: {what} by that of std"));
            versus(mine.clone(), std.clone(), figure, bound, &name, what)
        };
        let rows = [
            by_std(Figure::WorstWait, Bound::AtMost(1.0 / 20.0), "worst/std", "longest wait"),
            by_std(Figure::HogsPerSecond, Bound::AtLeast(0.95), "rate", "hogs' rate"),
            // Reserved after as long as a hog holds, and then one hold.
            at_most(
                mine.clone(),
                Figure::WaitP99,
                (2 * HOG_NS + SLACK_NS) as f64,
                &format!("{id}/p99"),
                format!("{words}: p99 wait, reserved after 100 us + one hold + 1 ms"),
            ),
        ];
        list.extend(rows.map(|row| Promise { quick: victims == 1, ..row }));
    }
    list
}

/// `FairMutex`: no thread overtakes, and where a CPU is left it costs nothing.
fn fair(cpus: u32) -> Vec<Promise> {
    const FAIR: &str = "fair";
    let mut list = vec![against(FAIR, (1, 9), 2, &PEERS, 0.95), against(FAIR, (3, 7), 2, &PEERS, 0.95)];
    for us in WORKLOADS_US {
        let at_least = if us == (3, 7) { 2.0 } else { 1.2 };
        let quick = us == (3, 7);
        list.push(Promise { quick, ..against(FAIR, us, 2 * cpus, &FIFO_PEERS, at_least) });
    }
    // A thousand waiters. The naive ticket lock falls to a fifth; half is far from that and from
    // what noise does.
    let [few, crowd] = [32, 1000].map(|n| of(FAIR, threads((1, 9), n)));
    let what = "(1, 9) us: rate of 1000 threads by that of 32 threads".into();
    list.push(versus(crowd, few, Figure::PerSecond, Bound::AtLeast(0.5), "threads", what));
    let second = Cell::Loop { workload: workload((1, 0)), workers: Workers::Threads(8), second: true };
    let what = "COV of 8 threads over a second, hold 1 us".into();
    list.push(at_most(of(FAIR, second), Figure::Cov, 0.02, "cov", what));
    list
}

/// `AsymMutex`: the gain of a release that only stores.
fn asym() -> Vec<Promise> {
    [2, 8].map(|n| Promise { quick: n == 2, ..against("asym", (0, 0), n, &PEERS, 1.3) }).into()
}

/// `Semaphore` and `PiMutex` against what the C library has, where two threads do nothing but
/// contend: work outside would hide the lock.
fn handed_over() -> Vec<Promise> {
    let what = "contended hand-overs: rate by that of sem_t".into();
    let [mine, other] = ["semaphore", "sem_t"].map(|lock| of(lock, Cell::Handoff));
    let semaphore = versus(mine, other, Figure::PerSecond, Bound::AtLeast(1.0), "handoff", what);
    vec![
        Promise { quick: true, ..semaphore },
        against("pi", (0, 0), 2, &["pthread-pi"], 1.5),
        against("pi", (10, 0), 2, &["pthread-pi"], 1.5),
    ]
}

/// `Calock`: however many contend, as fast as the work allows, and at the price of a few.
fn calock() -> Vec<Promise> {
    const CALOCK: &str = "calock";
    const FEW: u32 = 4;
    const CROWD: u32 = 1000;
    let mut list = Vec::new();
    let at = |lock, us, n| of(lock, threads(us, n));
    // A share of what is possible: of the rate of the same loop without a lock, and of that of one
    // thread that does nothing but the work inside.
    for (us, n, at_least) in [((1, 9), FEW, 0.95), ((1, 9), CROWD, 0.95), ((10, 0), CROWD, 0.95)] {
        let (hold, non_hold) = us;
        let limits = [at("none", (hold, 0), 1), at("none", us, n)];
        let limits = limits[..if non_hold > 0 { 2 } else { 1 }].to_vec();
        list.push(Promise {
            lock: CALOCK,
            name: format!("{CALOCK}/({hold},{non_hold})x{n}/possible"),
            what: format!("({hold}, {non_hold}) us, {n} threads: rate by the greatest rate that is possible"),
            figure: Figure::PerSecond,
            claim: Claim::Share { mine: at(CALOCK, us, n), limits },
            bound: Bound::AtLeast(at_least),
            quick: n == FEW,
            obstacle: None,
        });
    }
    list.push(against(CALOCK, (0, 0), CROWD, &["std"], 2.5));
    let [crowd, few] = [CROWD, FEW].map(|n| at(CALOCK, (1, 9), n));
    let what = format!("(1, 9) us: rate of {CROWD} threads by that of {FEW}");
    list.push(versus(crowd, few, Figure::PerSecond, Bound::AtLeast(0.9), "(1,9)x1000/x4", what));
    for us in [(0, 0), (1, 9)] {
        let words = format!("({}, {}) us, 100 threads", us.0, us.1);
        let peers = ["std", "parking_lot"].map(|lock| at(lock, us, 100)).to_vec();
        let what = format!("{words}: CPU time an operation by the better of std, parking_lot");
        let (mine, name) = (at(CALOCK, us, 100), format!("({},{})x100/cpu", us.0, us.1));
        list.push(versus_best(mine, peers, Figure::CpuPerOp, Bound::AtMost(1.0), &name, what));
    }
    let what = "(1, 9) us, 100 threads: sleeps and wakes an operation by std's".into();
    let [mine, std] = [CALOCK, "std"].map(|lock| at(lock, (1, 9), 100));
    let calls = versus(mine, std, Figure::FutexesPerOp, Bound::AtMost(0.5), "(1,9)x100/futexes", what);
    let uncountable = (!syscalls::countable()).then_some("futex calls are counted on x86-64 only");
    list.push(Promise { obstacle: uncountable, ..calls });
    list
}

/// Holder and waiter on one CPU: the waiter must not yield to threads that it does not wait for.
fn on_one_cpu() -> Vec<Promise> {
    let cell = Cell::Hogs(Hogs { hogs: 1, victims: 1, hold_ns: SHORT_HOG_NS, place: Place::Together });
    let row = |lock| {
        let what = "holder and waiter on one CPU: median wait".into();
        let row = at_most(of(lock, cell), Figure::WaitP50, ON_ONE_CPU_NS, "one-cpu", what);
        Promise { quick: true, ..row }
    };
    ["unfair", "throughput", "asym", "byte", "fair", "semaphore", "pi"].map(row).into()
}

/// `PsRwLock`: readers that are no slower than a word that all of them change, or much faster.
fn readers() -> Vec<Promise> {
    let shared = |lock, (hold, non_hold): (u64, u64), n, reads, peers: &[&'static str], least| {
        let workload = workload((hold, non_hold));
        let cell = Cell::Shared { workload, workers: Workers::Threads(n), reads };
        let words = format!("({hold}, {non_hold}) us, {n} threads, {reads} % reads");
        let what = format!("{words}: rate by the best of {}", peers.join(", "));
        let name = format!("({hold},{non_hold})x{n}/{reads}%");
        let bound = Bound::AtLeast(least);
        let row = versus_best(of(lock, cell), all_of(peers, cell), Figure::PerSecond, bound, &name, what);
        Promise { quick: n == 4 && reads > 50, ..row }
    };
    vec![
        shared(PSRW, (0, 0), 4, 100, &RW_PEERS, 1.0),
        shared("psrw-distributed", (0, 0), 4, 100, ONE_WORD, 2.0),
        shared("psrw-distributed", (0, 0), 8, 100, ONE_WORD, 2.0),
        shared(PSRW, (10, 0), 4, 20, &RW_PEERS, 1.2),
        shared(PSRW, (10, 0), 4, 50, &RW_PEERS, 1.2),
        shared(PSRW, (10, 0), 4, 80, &RW_PEERS, 1.2),
    ]
}

/// Its readers at the top do not wait for those at the bottom, nor for all the writers of a queue,
/// and signals are kept off for as long as handlers are shut out, no longer.
fn readers_in_order() -> Vec<Promise> {
    let growth = |lock, runs: [Run; 2], figure, bound, name: &str, what: &str| {
        let [few, many] = runs.map(|run| of(lock, Cell::Rw(run)));
        versus(many, few, figure, Bound::AtMost(bound), name, what.into())
    };
    let behind = |lock, probe, class: &str| {
        let runs = [1, 3000].map(|hold_us| Run::Invariance { hold_us, probe });
        let what = format!("{class}: p99.9 wait behind Bulk readers of 3 ms by that behind readers of 1 us");
        growth(lock, runs, Figure::TopP999, 3.0, &format!("invariance/{class}"), &what)
    };
    let probe = Probe::Urgent;
    let writers = [1, 8].map(|writers| Run::Queue { writers, probe });
    let what = "Urgent: p99 wait beside 8 queued writers by that beside one";
    let contention = |lock| of(lock, Cell::Rw(Run::Contention(None)));
    let masked = Cell::Rw(Run::Behind);
    vec![
        Promise { quick: true, ..behind(PSRW, Probe::Urgent, "Urgent") },
        behind("psrw-handler", Probe::Handler, "Handler"),
        growth(PSRW, writers, Figure::TopP99, 1.5, "queue/Urgent", what),
        versus(
            contention(PSRW),
            contention("pthread-rw"),
            Figure::WritesPerSecond,
            Bound::AtLeast(3.0),
            "contention/writes",
            "high contention: writes by those of pthread-rw".into(),
        ),
        versus_best(
            of("psrw-timed", masked),
            all_of(MASKED, masked),
            Figure::MaskedMax,
            Bound::AtMost(1.0 / 50.0),
            &format!("masked/{}", Run::Behind.name()),
            "a writer behind a reader of 3 ms: longest masked time by the best that masks for the whole \
             acquisition"
                .into(),
        ),
    ]
}

/// `SemArray`: as much as the kernel's where every thread waits, and a place in the queue for a
/// thread that wants several semaphores at once.
fn arrays() -> Vec<Promise> {
    const SIZE: &str = "sembench, 256 threads, 200 wakes a round";
    let cell = |order| Cell::Sem(semaphores::Run::Wakes { threads: 256, wakes: 200, order });
    let wakes = |other, figure, bound, name: &str, what: &str| {
        let [mine, other_one] = [SEMARRAY, other].map(|lock| of(lock, cell(Order::Fifo)));
        let what = format!("{SIZE}: {what} by {other}");
        let name = format!("sembench/256/200/{name}");
        Promise { quick: true, ..versus(mine, other_one, figure, bound, &name, what) }
    };
    let [random, fifo] = [Order::Random, Order::Fifo].map(|order| of(SEMARRAY, cell(order)));
    let [random_name, fifo_name] = [Order::Random, Order::Fifo].map(Order::name);
    let own = semaphores::Run::Own { threads: 4, poster: true };
    let [mine, posix] = [SEMARRAY, POSIX].map(|lock| of(lock, Cell::Sem(own)));
    let manager = semaphores::Run::Manager { workers: 8, hold_us: 10 };
    let what = format!("{manager}: turns of the manager by those of a worker, {STRICT}");
    let share = at_most(of(STRICT, Cell::Sem(manager)), Figure::Share, 0.0, &manager.name(), what);
    vec![
        wakes(KERNEL, Figure::PerSecond, Bound::AtLeast(1.0), KERNEL, "posts"),
        wakes(KERNEL, Figure::CpuPerOp, Bound::AtMost(1.0), "cpu", "CPU time a post"),
        wakes(FUTEX, Figure::PerSecond, Bound::AtLeast(2.0), FUTEX, "posts"),
        versus(
            random,
            fifo,
            Figure::PerSecond,
            Bound::Within(1.15),
            &format!("sembench/256/200/{random_name}-{fifo_name}"),
            format!("{SIZE}: posts {random_name} by {fifo_name}"),
        ),
        versus(
            mine,
            posix,
            Figure::PerSecond,
            Bound::AtLeast(0.9),
            &own.name(),
            format!("{own}: turns by {POSIX}"),
        ),
        Promise {
            lock: SEMARRAY,
            name: format!("{SEMARRAY}/{}", manager.name()),
            bound: Bound::AtLeast(0.2),
            ..share
        },
    ]
}
