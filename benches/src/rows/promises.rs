//! `promises`: what each lock is said to do, as data: the sentences that somebody would quote.
//! Nothing here is measured, nothing elsewhere is promised but what [`shared`](super::shared) says
//! of locks between processes.

use super::claims::{self, Bound, Claim, Place, With, place};
use super::{Row, Turns, Wish, turns};
use crate::engine::record::{Mode, Record};
use crate::report::units;
use crate::run::syscalls;
use crate::workloads::hogs::Hogs;
use crate::workloads::pairs::Pairs;
use crate::workloads::{Scenario, Times, Workers};

pub const ROW: Row = Row {
    name: "promises",
    about: "each lock against what is promised of it",
    share_s: (136, 20),
    jobs: |wish: &Wish| {
        let mut claims = claims::wished(all(wish.cpus), wish);
        if wish.mode == Mode::Smoke {
            claims.retain(|claim| claim.quick && claim.figure == "pair");
        }
        claims::jobs(&claims)
    },
    drop_first: &[],
    columns: &[],
    claims: |record: &Record| all(record.machine.cpus() as u32),
    sentences: |record: &Record| claims::sentences(&ROW, record),
    notes: "What is possible is the smaller of two rates: that of the loop without a lock, and that of \
            one thread that does nothing but the work inside. A hog holds for 100 us and asks again at \
            once; a victim sleeps for 1 ms and asks.",
};

/// What general-purpose mutexes are compared with.
const PEERS: &[&str] = &["std", "parking_lot", "usync"];
/// Locks that serve strictly in order.
const FIFO_PEERS: &[&str] = &["sysv", "pthread-pi", "mcs-park"];
/// What reader-writer locks are compared with.
const RW_PEERS: &[&str] = &["std-rw", "parking_lot-rw"];
/// Those whose readers all change one word.
const ONE_WORD: &[&str] = &["std-rw", "parking_lot-rw", "usync-rw", "pthread-rw"];

/// The workloads of `scaling`.
const WORKLOADS: [Times; 4] = super::scaling::WORKLOADS;
/// Nothing inside or outside.
const BARE: Times = WORKLOADS[0];

/// How long hogs hold, and after how long a `ThroughputMutex` is owed to its candidate.
const HOG_NS: u64 = 100_000;
/// What scheduling may add to a bounded wait.
const SLACK_NS: u64 = 1_000_000;
/// How long the holder holds where holder and waiter share a CPU: far less than the median wait
/// that is allowed.
const SHORT_HOG_NS: u64 = 20_000;
/// The median wait that is allowed there.
const ON_ONE_CPU_NS: f64 = 100_000.0;

/// Every promise, on a machine with so many CPUs.
fn all(cpus: u32) -> Vec<Claim> {
    let anywhere = [uncontended(), fair(cpus), asym(), handed_over(), calock(), on_one_cpu(), readers()];
    let others = super::psrw::promises().into_iter().chain(super::semscale::promises());
    let obstacle = (cpus < 2).then_some("needs two CPUs");
    let apart = hogs().into_iter().map(|claim| Claim { obstacle, ..claim });
    anywhere.into_iter().flatten().chain(others).chain(apart).collect()
}

/// The loop of `n` threads, and what it is called.
fn a_loop(times: Times, n: u32) -> (String, Scenario) {
    let scenario = Scenario::Turns(turns(times, Workers::Threads(n)));
    (format!("{}, {n} threads", units::times(times)), scenario)
}

/// `subject` in that loop.
fn at(subject: &'static str, times: Times, n: u32) -> Place {
    let (label, scenario) = a_loop(times, n);
    place(subject, &label, scenario)
}

/// A ratio of rates to the best of `peers` in that loop.
fn against(subject: &'static str, times: Times, n: u32, peers: &[&'static str], at_least: f64) -> Claim {
    let (label, scenario) = a_loop(times, n);
    Claim::beside((subject, peers), (&label, scenario), "rate", Bound::AtLeast(at_least), "rate")
}

/// Acquisitions and releases where no thread is in the way.
fn uncontended() -> Vec<Claim> {
    let claim = |subject, peers: &[&'static str], reads, bound| {
        let scenario = Scenario::Pairs(Pairs { reads, processes: false });
        let label = if reads { "uncontended shared pair" } else { "uncontended pair" };
        Claim::beside((subject, peers), (label, scenario), "pair", Bound::AtMost(bound), "time").quick()
    };
    vec![
        claim("throughput", &["std"], false, 1.05),
        claim("unfair", &["std"], false, 1.05),
        claim("asym", &["std"], false, 0.55),
        claim("calock", &["std"], false, 1.05),
        claim("semaphore", &["sem_t"], false, 1.05),
        claim("psrw", RW_PEERS, true, 1.05),
        claim("psrw", RW_PEERS, false, 1.05),
    ]
}

/// `ThroughputMutex`: no thread starves. How fast it is, the tables of `scaling` say.
fn hogs() -> Vec<Claim> {
    let mut list = Vec::new();
    for (victims, words) in [(1, "hog and victim on different CPUs"), (31, "1 hog, 31 victims")] {
        let scenario = Scenario::Hogs(Hogs { hogs: 1, victims, hold_ns: HOG_NS, together: false });
        let by_std = |figure, bound, what| {
            Claim::beside(("throughput", &["std"]), (words, scenario), figure, bound, what)
        };
        list.extend([
            by_std("wait-max", Bound::AtMost(1.0 / 20.0), "longest wait"),
            by_std("hog-rate", Bound::AtLeast(0.95), "hogs' rate"),
            // Owed to the victim after as long as a hog holds, and then one hold.
            Claim::of(
                place("throughput", words, scenario),
                "wait-p99",
                Bound::AtMost((2 * HOG_NS + SLACK_NS) as f64),
                format!("{words}: p99 wait, owed after 100 us + one hold + 1 ms"),
            ),
        ]);
    }
    list
}

/// `FairMutex`: no thread overtakes, and where a CPU is left it costs nothing.
fn fair(cpus: u32) -> Vec<Claim> {
    const FAIR: &str = "fair";
    let mut list =
        vec![against(FAIR, Times::us(1, 9), 2, PEERS, 0.95), against(FAIR, Times::us(3, 7), 2, PEERS, 0.95)];
    for times in WORKLOADS {
        let claim =
            against(FAIR, times, 2 * cpus, FIFO_PEERS, if times.think_ns == 7_000 { 2.0 } else { 1.2 });
        list.push(Claim { quick: times.think_ns == 7_000, ..claim });
    }
    // A thousand waiters. The naive ticket lock falls to a fifth; half is far from that and from
    // what noise does.
    let [few, crowd] = [32, 1000].map(|n| at(FAIR, Times::us(1, 9), n));
    let what = "(1, 9) us: rate of 1000 threads by that of 32 threads".into();
    list.push(Claim::versus(crowd, vec![few], "rate", Bound::AtLeast(0.5), what));
    let second = Turns { least_ms: 1000, ..turns(Times::us(1, 0), Workers::Threads(8)) };
    let words = "COV of 8 threads over a second, hold 1 us";
    let crew = place(FAIR, words, Scenario::Turns(second));
    list.push(Claim::of(crew, "cov", Bound::AtMost(0.02), words.into()));
    list
}

/// `AsymMutex`: the gain of a release that only stores.
fn asym() -> Vec<Claim> {
    vec![against("asym", BARE, 2, PEERS, 1.3).quick(), against("asym", BARE, 8, PEERS, 1.3)]
}

/// `Semaphore` and `PiMutex` against what the C library has, where two threads do nothing but
/// contend: work outside would hide the lock.
fn handed_over() -> Vec<Claim> {
    let handed = ("contended hand-overs", Scenario::Handoff);
    vec![
        Claim::beside(("semaphore", &["sem_t"]), handed, "rate", Bound::AtLeast(1.0), "rate").quick(),
        against("pi", BARE, 2, &["pthread-pi"], 1.5),
        against("pi", Times::us(10, 0), 2, &["pthread-pi"], 1.5),
    ]
}

/// `Calock`: however many contend, as fast as the work allows, and at the price of a few.
fn calock() -> Vec<Claim> {
    const CALOCK: &str = "calock";
    const FEW: u32 = 4;
    const CROWD: u32 = 1000;
    let mut list = Vec::new();
    for (times, n) in [(Times::us(1, 9), FEW), (Times::us(1, 9), CROWD), (Times::us(10, 0), CROWD)] {
        let alone = at("none", Times { think_ns: 0, ..times }, 1);
        let limits = if times.think_ns > 0 { vec![alone, at("none", times, n)] } else { vec![alone] };
        let mine = at(CALOCK, times, n);
        let what = format!("{}: rate by the greatest rate that is possible", mine.1.label);
        let claim = Claim::of(mine, "rate", Bound::AtLeast(0.95), what);
        list.push(Claim { with: With::Least(limits), quick: n == FEW, ..claim });
    }
    list.push(against(CALOCK, BARE, CROWD, &["std"], 2.5));
    let [crowd, few] = [CROWD, FEW].map(|n| at(CALOCK, Times::us(1, 9), n));
    let what = format!("(1, 9) us: rate of {CROWD} threads by that of {FEW}");
    list.push(Claim::versus(crowd, vec![few], "rate", Bound::AtLeast(0.9), what));
    for times in [BARE, Times::us(1, 9)] {
        let ((label, scenario), most) = (a_loop(times, 100), Bound::AtMost(1.0));
        let words = "CPU time an operation";
        list.push(Claim::beside((CALOCK, &["std", "parking_lot"]), (&label, scenario), "cpu", most, words));
    }
    let ((label, scenario), words) = (a_loop(Times::us(1, 9), 100), "sleeps and wakes an operation");
    let calls = Claim::beside((CALOCK, &["std"]), (&label, scenario), "futexes", Bound::AtMost(0.5), words);
    let uncountable = (!syscalls::countable()).then_some("futex calls are counted on x86-64 only");
    list.push(Claim { obstacle: uncountable, ..calls });
    list
}

/// Holder and waiter on one CPU: the waiter must not yield to threads that it does not wait for.
fn on_one_cpu() -> Vec<Claim> {
    let scenario = Scenario::Hogs(Hogs { hogs: 1, victims: 1, hold_ns: SHORT_HOG_NS, together: true });
    let words = "holder and waiter on one CPU: median wait";
    let claim = |subject| {
        let mine = place(subject, words, scenario);
        Claim::of(mine, "wait-p50", Bound::AtMost(ON_ONE_CPU_NS), words.into()).quick()
    };
    ["unfair", "throughput", "asym", "byte", "fair", "semaphore", "pi"].map(claim).into()
}

/// `PsRwLock`: readers that are no slower than a word that all of them change, or much faster.
fn readers() -> Vec<Claim> {
    let claim = |subject, times: Times, n, reads, peers: &[&'static str], least| {
        let run = Turns { read_share: reads, ..turns(times, Workers::Threads(n)) };
        let label = format!("{}, {n} threads, {reads} % reads", units::times(times));
        let run = (label.as_str(), Scenario::Turns(run));
        let claim = Claim::beside((subject, peers), run, "rate", Bound::AtLeast(least), "rate");
        Claim { quick: n == 4 && reads > 50, ..claim }
    };
    let held = Times::us(10, 0);
    vec![
        claim("psrw", BARE, 4, 100, RW_PEERS, 1.0),
        claim("psrw", BARE, 8, 100, ONE_WORD, 2.0),
        claim("psrw", held, 4, 20, RW_PEERS, 1.2),
        claim("psrw", held, 4, 80, RW_PEERS, 1.2),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixty_promises_at_most_and_each_once() {
        let all = all(16);
        assert!((30..=60).contains(&all.len()), "{}", all.len());
        let whats: std::collections::HashSet<_> =
            all.iter().map(|claim| (claim.mine.0, &claim.what)).collect();
        assert_eq!(whats.len(), all.len());
        assert!(all.iter().filter(|claim| claim.quick).count() < all.len() / 2 + 5);
    }
}
