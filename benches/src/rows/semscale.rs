//! `semscale`: one array and several threads, on semaphores of their own or in sets; and what a set
//! costs where nothing stands in its way.

use super::claims::{Bound, Claim, place};
use super::sembench::job;
use super::{Row, Wish, against, by_best, by_peer, doubled, in_order, named, no_claims, of};
use crate::engine::cell::{Cell, Job};
use crate::engine::record::{Mode, Record};
use crate::report::units;
use crate::subjects::semaphores::{FLOOR, FUTEX, KERNEL, POSIX, SEMARRAY, STRICT};
use crate::workloads::semaphores::{Order, Run};
use crate::workloads::sets::Sets;
use crate::workloads::{Scenario, Workers};

pub const ROW: Row = Row {
    name: "semscale",
    about: "one semaphore array over thread counts: own semaphores, sets, starvation",
    share_s: (34, 10),
    jobs,
    drop_first: &[],
    columns: &[of("rate"), by_peer("rate"), of("cpu"), of("cov"), of("share"), of("pair"), by_peer("pair")],
    claims: no_claims,
    sentences,
    notes: "The thread beside the others is a poster, which adds one to each of 64 other semaphores of the \
            array and takes that back, or a manager, which wants both of two semaphores of which each \
            worker wants one. Its turns are not in the rate.",
};

const OWN: &str = "Each thread on a semaphore of its own";
const BESIDE: &str = "The same beside a poster to 64 others";
const MANAGER: &str = "8 workers and a manager";
const SETS: &str = "Uncontended: a set, and its opposite";

/// Thread counts: doubled up to twice the CPUs, with the CPUs themselves.
fn counts(wish: &Wish) -> Vec<u32> {
    match (&wish.threads, wish.mode) {
        (Some(threads), _) => threads.clone(),
        (None, Mode::Smoke) => vec![2],
        (None, Mode::Quick) => in_order(vec![1, wish.cpus.max(1)]),
        (None, Mode::Full) => doubled(wish.cpus, &[1, 2]),
    }
}

fn jobs(wish: &Wish) -> Vec<Job> {
    let (full, mut jobs) = (wish.mode == Mode::Full, Vec::new());
    for (section, poster) in [(OWN, false), (BESIDE, true)] {
        for threads in counts(wish) {
            let label = if threads == 1 { "1 thread".into() } else { format!("{threads} threads") };
            let run = Run::Own { threads, poster };
            jobs.extend(job(wish, section, &label, Some(threads), run, |_| true));
        }
    }
    for (label, hold_us) in [("each holds 10 us", 10), ("no work", 0)] {
        if full || hold_us > 0 {
            let run = Run::Manager { workers: 8, hold_us };
            jobs.extend(job(wish, MANAGER, label, None, run, |_| true));
        }
    }
    jobs.extend([1, 2, 8, 64, 256].into_iter().filter(|ops| full || [1, 8].contains(ops)).filter_map(
        |ops| {
            let posix = (ops == 1).then_some(POSIX);
            let subjects = named(wish, [SEMARRAY, KERNEL, FLOOR].into_iter().chain(posix), &[KERNEL])?;
            let label = if ops == 1 { "1 operation".into() } else { format!("{ops} operations") };
            let scenario = Scenario::Sets(Sets { ops, one_by_one: false });
            let cell = Cell { section: SETS.into(), label, x: Some(ops.into()), scenario };
            Some(Job { cell, subjects })
        },
    ));
    jobs
}

fn sentences(record: &Record) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut say = |section, subject, figure, words: &str| {
        // The cell with most threads or operations, the last.
        let Some(at) = record.cells_of(section).last() else { return };
        let label = &record.cells[at].label;
        let ratio = by_best(record, at, subject, figure).map(|(ratio, peer)| against(ratio, peer));
        sentences.extend(ratio.map(|ratio| format!("{words}, {label}: {subject} has {ratio}.")));
    };
    say(OWN, SEMARRAY, "rate", "Own semaphores");
    say(BESIDE, SEMARRAY, "rate", "Beside a poster");
    let manager = record.cells_of(MANAGER).next();
    for (at, subject) in manager.into_iter().flat_map(|at| [(at, SEMARRAY), (at, STRICT)]) {
        let share = record.measured(at, subject, "share").map(|share| units::digits(share.value));
        let words =
            |share| format!("A manager beside 8 workers has {share} of a worker's turns with {subject}.");
        sentences.extend(share.map(words));
    }
    // Times: less is better, so a verdict would say the opposite.
    for at in record.cells_of(SETS) {
        let (label, ratio) = (&record.cells[at].label, record.ratio((at, SEMARRAY), (at, KERNEL), "pair"));
        let words =
            |ratio| format!("Uncontended, {label}: {} of the time of sysv.", units::ratio(Some(ratio)));
        sentences.extend(ratio.map(words));
    }
    sentences
}

/// What is promised of `SemArray`: a set costs less than the kernel's, it posts as much where every
/// thread waits, and a thread that wants several semaphores at once has its turns.
pub(super) fn promises() -> Vec<Claim> {
    const SIZE: &str = "sembench, 256 threads, 200 wakes a round";
    let sets = |words: &str, ops, one_by_one, other, bound| {
        let what = format!("uncontended {words} and its opposite: time by that of {other}");
        let at = |subject| place(subject, words, Scenario::Sets(Sets { ops, one_by_one }));
        Claim::versus(at(SEMARRAY), vec![at(other)], "pair", Bound::AtMost(bound), what)
    };
    let wake = |order| Scenario::Semaphores(Run::Wakes { workers: Workers::Threads(256), wakes: 200, order });
    let wakes = |other, figure, bound, what: &str| {
        Claim::beside((SEMARRAY, &[other]), (SIZE, wake(Order::Fifo)), figure, bound, what)
    };
    let mut claims = vec![
        sets("single operation", 64, true, KERNEL, 0.05),
        sets("single operation", 64, true, POSIX, 1.3),
        sets("set of 8", 8, false, KERNEL, 0.2),
        sets("set of 64", 64, false, KERNEL, 0.2),
        wakes(KERNEL, "rate", Bound::AtLeast(1.0), "posts"),
        wakes(KERNEL, "cpu", Bound::AtMost(1.0), "CPU time a post"),
        wakes(FUTEX, "rate", Bound::AtLeast(2.0), "posts"),
    ];
    claims = claims.into_iter().map(Claim::quick).collect();
    let [random, fifo] = [Order::Random, Order::Fifo].map(|order| place(SEMARRAY, SIZE, wake(order)));
    let what = format!("{SIZE}: posts random by fifo");
    claims.push(Claim::versus(random, vec![fifo], "rate", Bound::Within(1.15), what));
    let words = "4 threads on their own, and a poster of 64";
    let own = Scenario::Semaphores(Run::Own { threads: 4, poster: true });
    let posix = (SEMARRAY, [POSIX].as_slice());
    claims.push(Claim::beside(posix, (words, own), "rate", Bound::AtLeast(0.9), "turns"));
    let words = "8 workers and a manager, each holds 10 us";
    let manager = place(STRICT, words, Scenario::Semaphores(Run::Manager { workers: 8, hold_us: 10 }));
    let what = format!("{words}: turns of the manager by those of a worker");
    claims.push(Claim::of(manager, "share", Bound::AtLeast(0.2), what));
    claims
}
