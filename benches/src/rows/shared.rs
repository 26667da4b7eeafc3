//! `shared`: locks between processes, against their peers, and what the death of a holder costs.
//!
//! Contenders are forked processes. The robust locks of `ulocks-shm` lie in regions, which the
//! processes inherit.

use super::claims::{self, Bound, Claim, place};
use super::{Row, Wish, turns};
use crate::engine::cell::Job;
use crate::engine::record::{Mode, Record};
use crate::report::units;
use crate::subjects::semaphores::{ROBUST_SET, UNDO};
use crate::workloads::pairs::Pairs;
use crate::workloads::recovery::Recovery;
use crate::workloads::sets::Sets;
use crate::workloads::{Scenario, Times, Workers};

pub const ROW: Row = Row {
    name: "shared",
    about: "locks between processes, and the death of a holder",
    share_s: (36, 17),
    jobs,
    drop_first: &[],
    columns: &[],
    claims: |_: &Record| all(),
    sentences: |record: &Record| claims::sentences(&ROW, record),
    notes: "Recovery is the time from the SIGKILL of a holder until one of the sleepers has the lock. \
            A waiter that no event wakes looks again after 200 ms.",
};

/// glibc's mutex, process-shared.
const PLAIN: &str = "pthread";
/// The same, robust.
const ROBUST: &str = "pthread-robust";

/// glibc's mutex, process-shared, that has an order: the kernel hands it over, by priority.
const IN_ORDER: &str = "pthread-pi";

/// Processes that sleep for the lock when its holder is killed.
const SLEEPERS: u32 = 5;

fn jobs(wish: &Wish) -> Vec<Job> {
    let mut claims = claims::wished(all(), wish);
    if wish.mode == Mode::Smoke {
        claims.retain(|claim| claim.figure != "rate");
    }
    claims::jobs(&claims)
}

/// Every claim.
fn all() -> Vec<Claim> {
    let all = [pairs(), sets(), loops(), recoveries()].into_iter().flatten();
    all.map(Claim::quick).chain([process_shared()]).collect()
}

/// Subject and peer, what a pair of it is, and what is promised: of its time, and of a contended
/// rate.
const BESIDE: [(&str, &str, &str, Bound, Bound); 7] = [
    ("unfair", PLAIN, "pair, process-shared", Bound::Shown, Bound::Shown),
    ("robust", ROBUST, "pair", Bound::AtMost(1.0), Bound::AtLeast(1.0)),
    ("robust-fair", ROBUST, "pair", Bound::AtMost(1.1), Bound::Shown),
    ("robust-fair", IN_ORDER, "pair", Bound::Shown, Bound::AtLeast(0.8)),
    ("robust-rw", ROBUST, "pair of a writer", Bound::Shown, Bound::Shown),
    ("robust-semaphore", UNDO, "permit, and its return", Bound::Shown, Bound::Shown),
    ("robust-semaphore", "sem_t", "permit, and its return", Bound::Shown, Bound::Shown),
];

/// Lock and unlock with no other process about.
fn pairs() -> Vec<Claim> {
    let scenario = Scenario::Pairs(Pairs { reads: false, processes: true });
    let claim = |(mine, other, what, bound, _)| {
        let what = format!("uncontended {what}: time by that of {other}");
        let [mine, other] = [mine, other].map(|subject| place(subject, "uncontended", scenario));
        Claim::versus(mine, vec![other], "pair", bound, what)
    };
    BESIDE.map(claim).into()
}

/// What it costs to be between processes; no part of a quick look, as both have the same path.
fn process_shared() -> Claim {
    let at = |processes| place("unfair", "uncontended", Scenario::Pairs(Pairs { reads: false, processes }));
    let what = "uncontended pair, process-shared: time by that within a process".into();
    Claim::versus(at(true), vec![at(false)], "pair", Bound::AtMost(1.1), what)
}

/// Sets that come back when their holder dies.
fn sets() -> Vec<Claim> {
    let scenario = Scenario::Sets(Sets { ops: 2, one_by_one: false });
    let what = format!("uncontended set of two with undo, and its return: time by that of {UNDO}");
    let [mine, other] = [ROBUST_SET, UNDO].map(|subject| place(subject, "uncontended set of two", scenario));
    vec![Claim::versus(mine, vec![other], "pair", Bound::AtMost(0.1), what)]
}

/// Processes that contend.
fn loops() -> Vec<Claim> {
    let mut list = Vec::new();
    for (subject, peer, _, _, bound) in BESIDE {
        for n in [2, 32] {
            for times in [Times::us(1, 9), Times::us(10, 0)] {
                let words = format!("{}, {n} processes", units::times(times));
                let scenario = Scenario::Turns(turns(times, Workers::Processes(n)));
                list.push(Claim::beside((subject, &[peer]), (&words, scenario), "rate", bound, "rate"));
            }
        }
    }
    list
}

/// Holders that are killed.
fn recoveries() -> Vec<Claim> {
    let scenario = Scenario::Recovery(Recovery { sleepers: SLEEPERS });
    let words = format!("SIGKILL of a holder with {SLEEPERS} sleepers");
    let rows = |subject: &'static str| {
        let of = |figure, bound, which: &str| {
            let what = format!("{words}: {which} until one has the lock");
            Claim::of(place(subject, &words, scenario), figure, bound, what)
        };
        let (median, longest) = (Bound::AtMost(2e6), Bound::AtMost(300e6));
        [of("recovery", median, "median time"), of("recovery-max", longest, "longest time")]
    };
    let peer = rows(ROBUST).map(|claim| Claim { bound: Bound::Shown, ..claim });
    ["robust", "robust-fair", "robust-rw"].into_iter().flat_map(rows).chain(peer).collect()
}
