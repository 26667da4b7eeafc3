use super::judge::{Verdict, judge};
use super::promise::{Bound, Claim, Subject};
use super::*;
use crate::programs::harness::{asked, keeps_the_time, plan};
use crate::run::syscalls::Calls;
use crate::workloads::Workload;
use crate::workloads::cell::{Answer, Cell, Trial};
use crate::workloads::figure::Figure;
use crate::workloads::handoff::HandoffResult;
use crate::workloads::hogs::{Hogs, HogsResult, Place};
use crate::workloads::trial::{TrialResult, Waits, Workers};
use crate::workloads::uncontended::PairsResult;
use std::collections::HashSet;

const HANDOFF: Cell = Cell::Handoff;
const HOGS: Cell = Cell::Hogs(Hogs { hogs: 1, victims: 1, hold_ns: 100_000, place: Place::Apart });

const LOOP: Cell = Cell::Loop {
    workload: Workload { hold_ns: 0, non_hold_ns: 0 },
    workers: Workers::Threads(2),
    second: false,
};

/// A trial of `lock` in which its rate was `per_s`.
fn rate(round: u32, lock: &str, per_s: f64) -> Trial {
    let answer = Answer::Handoff(HandoffResult { per_s });
    Trial { round, locks: vec![lock.into()], cell: HANDOFF, answer }
}

/// A trial of `lock` in which the victim's median wait was `ns`, and its longest ten times that.
fn wait(round: u32, lock: &str, ns: u64) -> Trial {
    let waits = Waits { p50: ns, p99: 5 * ns, p999: 9 * ns, max: 10 * ns, mean: ns as f64 };
    let answer = Answer::Hogs(HogsResult { hogs: vec![100], victims: vec![10], waits, elapsed_s: 1.0 });
    Trial { round, locks: vec![lock.into()], cell: HOGS, answer }
}

fn promise(figure: Figure, claim: Claim, bound: Bound) -> Promise {
    Promise {
        lock: "unfair",
        name: "unfair/test".into(),
        what: "a test".into(),
        figure,
        claim,
        bound,
        quick: false,
        obstacle: None,
    }
}

fn rates(others: &[&'static str], at_least: f64) -> Promise {
    let of = |lock| Subject { lock, cell: HANDOFF };
    let claim = Claim::Ratio { mine: of("unfair"), others: others.iter().map(|&lock| of(lock)).collect() };
    promise(Figure::PerSecond, claim, Bound::AtLeast(at_least))
}

/// Rounds in which the locks had these rates.
fn rounds_of(rates: &[(&str, &[f64])]) -> Vec<Trial> {
    let of = |&(lock, rates): &(&str, &[f64])| {
        rates.iter().enumerate().map(|(round, &per_s)| rate(round as u32, lock, per_s)).collect::<Vec<_>>()
    };
    rates.iter().flat_map(of).collect()
}

#[test]
fn a_promise_holds_if_all_of_the_interval_does() {
    let peer = [100.0, 110.0, 90.0, 105.0];
    let times = |factors: [f64; 4]| [0, 1, 2, 3].map(|i| peer[i] * factors[i]);
    for (factors, verdict) in [
        ([1.5, 1.51, 1.49, 1.5], Verdict::Holds),
        ([1.1, 1.11, 1.09, 1.1], Verdict::FallsShort),
        ([1.0, 1.4, 1.1, 1.3], Verdict::None),
    ] {
        let mine = times(factors);
        let row = judge(&rates(&["std"], 1.2), &rounds_of(&[("unfair", &mine), ("std", &peer)]));
        assert_eq!(row.verdict, verdict, "{row:?}");
        let measured = row.measured.unwrap();
        let (low, high) = measured.interval.unwrap();
        assert!(low <= measured.value && measured.value <= high && measured.rounds == 4);
    }
}

#[test]
fn the_best_peer_is_the_one_to_beat() {
    // usync is better in one round and worse over all.
    let trials = rounds_of(&[
        ("unfair", &[100.0; 4]),
        ("std", &[80.0; 4]),
        ("parking_lot", &[50.0; 4]),
        ("usync", &[90.0, 60.0, 60.0, 60.0]),
    ]);
    let row = judge(&rates(&["parking_lot", "std", "usync"], 1.2), &trials);
    let measured = row.measured.unwrap();
    assert_eq!((measured.other.unwrap().lock.as_str(), row.verdict), ("std", Verdict::Holds));
    assert!((measured.value - 1.25).abs() < 1e-9);
    // Without one of them there is no best.
    let row = judge(&rates(&["std", "sem_t"], 1.2), &trials);
    assert_eq!((row.verdict, row.measured.is_none()), (Verdict::NoData, true));
    assert_eq!(row.reason.unwrap(), "no round was completed");
}

#[test]
fn only_rounds_that_both_ran_are_compared() {
    let trials = rounds_of(&[("unfair", &[100.0, 100.0, 500.0]), ("std", &[50.0, 50.0])]);
    let measured = judge(&rates(&["std"], 1.2), &trials).measured.unwrap();
    assert_eq!((measured.value, measured.rounds), (2.0, 2));
}

#[test]
fn one_round_is_no_verdict() {
    let row = judge(&rates(&["std"], 1.2), &rounds_of(&[("unfair", &[900.0]), ("std", &[1.0])]));
    assert_eq!((row.verdict, row.measured.unwrap().interval), (Verdict::None, None));
}

#[test]
fn two_modes_are_shown_and_need_six_rounds_that_agree() {
    let fifo = [58e3, 5.6e6, 60e3, 59e3];
    let row = judge(&rates(&["std"], 1.2), &rounds_of(&[("unfair", &fifo), ("std", &[40e3; 4])]));
    assert_eq!(row.verdict, Verdict::None, "four rounds");
    let measured = row.measured.unwrap();
    let (slow, fast) = measured.mine.modes.unwrap();
    assert_eq!((slow.rounds, fast.rounds, measured.two_modes), (3, 1, true));
    assert_eq!(measured.interval.unwrap(), (58.0 / 40.0, 140.0));

    let fifo = [58e3, 5.6e6, 60e3, 59e3, 61e3, 5.5e6];
    let row = judge(&rates(&["std"], 1.2), &rounds_of(&[("unfair", &fifo), ("std", &[40e3; 6])]));
    assert_eq!(row.verdict, Verdict::Holds, "six rounds");
    let row = judge(&rates(&["std"], 1.5), &rounds_of(&[("unfair", &fifo), ("std", &[40e3; 6])]));
    assert_eq!(row.verdict, Verdict::None, "one of six does not");
}

#[test]
fn a_figure_by_itself_is_held_to_its_bound() {
    let of = |bound| {
        let claim = Claim::Value(Subject { lock: "unfair", cell: HOGS });
        promise(Figure::WaitP50, claim, Bound::AtMost(bound))
    };
    let trials: Vec<Trial> =
        [9, 12, 10].iter().enumerate().map(|(round, &ns)| wait(round as u32, "unfair", ns)).collect();
    for (bound, verdict) in [(12.0, Verdict::Holds), (11.0, Verdict::None), (8.0, Verdict::FallsShort)] {
        let row = judge(&of(bound), &trials);
        assert_eq!((row.verdict, row.measured.unwrap().value), (verdict, 10.0));
    }
}

#[test]
fn two_that_are_to_be_alike_may_differ_by_a_factor_either_way() {
    let alike = |mine: [f64; 4]| {
        let promise = Promise { bound: Bound::Within(1.15), ..rates(&["std"], 0.0) };
        judge(&promise, &rounds_of(&[("unfair", &mine), ("std", &[100.0; 4])])).verdict
    };
    for (mine, verdict) in [
        ([90.0, 91.0, 89.0, 90.0], Verdict::Holds),
        ([112.0, 111.0, 110.0, 113.0], Verdict::Holds),
        ([120.0, 121.0, 119.0, 122.0], Verdict::FallsShort),
        ([80.0, 81.0, 79.0, 80.0], Verdict::FallsShort),
        ([80.0, 120.0, 90.0, 110.0], Verdict::None),
    ] {
        assert_eq!(alike(mine), verdict, "{mine:?}");
    }
}

#[test]
fn less_is_better_where_the_bound_is_above() {
    let of = |lock| Subject { lock, cell: HOGS };
    let claim = Claim::Ratio { mine: of("unfair"), others: vec![of("std")] };
    let promise = promise(Figure::WorstWait, claim, Bound::AtMost(0.05));
    let trials = |ns| -> Vec<Trial> {
        (0..4).flat_map(|round| [wait(round, "unfair", ns), wait(round, "std", 1000)]).collect()
    };
    let row = judge(&promise, &trials(10));
    let side = row.measured.unwrap().mine;
    // The longest of all rounds, and never two modes: waits differ by more than that in every lock.
    assert_eq!((row.verdict, side.value, side.modes), (Verdict::Holds, 100.0, None));
    assert_eq!(judge(&promise, &trials(100)).verdict, Verdict::FallsShort);
}

/// A loop of `lock` with so many operations, CPU time, and futex calls.
fn cost(round: u32, lock: &str, operations: u64, cpu_s: f64, futexes: Option<Calls>) -> Trial {
    let result = TrialResult {
        counts: vec![operations / 2, operations - operations / 2],
        elapsed_s: 1.0,
        cpu_s: Some(cpu_s),
        futexes,
        ..TrialResult::default()
    };
    Trial { round, locks: vec![lock.into()], cell: LOOP, answer: Answer::Loop(result) }
}

#[test]
fn cpu_time_and_futex_calls_are_per_operation() {
    let calls = |waits, wakes| Some(Calls { waits, refused: waits, wakes });
    let trial = cost(0, "std", 1000, 2e-3, calls(200, 100));
    assert_eq!(trial.figure("std", Figure::CpuPerOp), Some(2000.0));
    assert_eq!(trial.figure("std", Figure::FutexesPerOp), Some(0.3));
    // None in the window may be as many as one; what was not counted is not none.
    let seen = |calls| cost(0, "std", 1000, 2e-3, calls).figure("std", Figure::FutexesPerOp);
    assert_eq!((seen(calls(0, 0)), seen(None)), (Some(0.001), None));
}

#[test]
fn of_several_costs_the_least_is_to_be_beaten() {
    let of = |lock| Subject { lock, cell: LOOP };
    let claim = Claim::Ratio { mine: of("unfair"), others: vec![of("std"), of("parking_lot")] };
    let promise = promise(Figure::CpuPerOp, claim, Bound::AtMost(1.0));
    let of = |lock, cpu_s| (0..3).map(move |round| cost(round, lock, 1000, cpu_s, None));
    let trials: Vec<Trial> =
        of("unfair", 3e-3).chain(of("std", 6e-3)).chain(of("parking_lot", 2e-3)).collect();
    let row = judge(&promise, &trials);
    let measured = row.measured.unwrap();
    assert_eq!((measured.other.unwrap().lock.as_str(), row.verdict), ("parking_lot", Verdict::FallsShort));
    assert!((measured.value - 1.5).abs() < 1e-9);
}

#[test]
fn what_is_possible_is_the_least_limit_of_each_round() {
    let of = |lock| Subject { lock, cell: HANDOFF };
    let claim = Claim::Share { mine: of("unfair"), limits: vec![of("none"), of("std")] };
    let promise = promise(Figure::PerSecond, claim, Bound::AtLeast(0.9));
    // The second round of one limit is missing: that round does not count.
    let trials =
        rounds_of(&[("unfair", &[95.0, 60.0, 95.0]), ("std", &[100.0, 100.0, 160.0]), ("none", &[200.0])]);
    let trials: Vec<Trial> = trials.into_iter().chain([rate(2, "none", 100.0)]).collect();
    let row = judge(&promise, &trials);
    let measured = row.measured.unwrap();
    assert_eq!((measured.rounds, row.ratio, row.verdict), (2, true, Verdict::Holds));
    assert!((measured.value - 0.95).abs() < 1e-9, "{measured:?}");
    let other = measured.other.unwrap();
    assert_eq!((other.lock.as_str(), other.value.round()), ("possible", 100.0));
    // Without one of the limits nothing is known.
    assert_eq!(judge(&promise, &rounds_of(&[("unfair", &[1.0; 3]), ("std", &[1.0; 3])])).measured, None);
}

#[test]
fn pairs_have_a_figure_for_each_lock() {
    let answer = Answer::Pairs(PairsResult { ns: vec![5.0, 10.0] });
    let trial = Trial { round: 0, locks: vec!["unfair".into(), "std".into()], cell: Cell::Pairs, answer };
    assert_eq!(trial.figure("std", Figure::PairNs), Some(10.0));
    assert_eq!(trial.figure("sem_t", Figure::PairNs), None);
    assert_eq!(trial.figure("std", Figure::PerSecond), None);
}

#[test]
fn what_the_machine_cannot_do_says_so() {
    const ONE_CPU: &str = "needs two CPUs";
    let with = |cpus, obstacle| list::all(cpus).into_iter().filter(move |p| p.obstacle == Some(obstacle));
    let apart: Vec<Promise> = with(1, ONE_CPU).collect();
    assert!(!apart.is_empty() && with(2, ONE_CPU).count() == 0);
    let row = judge(&apart[0], &[]);
    assert_eq!((row.verdict, row.reason.as_deref()), (Verdict::NoData, Some(ONE_CPU)));
}

#[test]
fn names_are_unique_and_locks_exist() {
    for cpus in [1, 2, 64] {
        let promises = list::all(cpus);
        let names: HashSet<&str> = promises.iter().map(|promise| promise.name.as_str()).collect();
        assert_eq!(names.len(), promises.len());
        for promise in &promises {
            for other in promise.claim.subjects() {
                let is_known = locks::Entry::find(other.lock).is_ok()
                    || crate::subjects::rwlocks::Entry::find(other.lock).is_ok()
                    || crate::subjects::semaphores::Entry::find(other.lock).is_ok();
                assert!(is_known, "{}: {}", promise.name, other.lock);
            }
        }
    }
}

#[test]
fn each_trial_runs_once_a_round_and_pairs_together() {
    let promises = list::all(2);
    let plan = plan::<Promises>(&asked::<Promises>(&[], Mode::Full).0, Mode::Full, &promises, 1000.0);
    for (index, a) in plan.probes.iter().enumerate() {
        assert!(plan.probes[..index].iter().all(|b| a.cell != b.cell || a.locks != b.locks), "{a:?}");
        assert_eq!(a.locks.len() > 1, a.cell.is_pairs(), "{a:?}");
    }
    let pairs: Vec<_> = plan.probes.iter().filter(|probe| probe.cell == Cell::Pairs).collect();
    assert_eq!(pairs.len(), 1);
    let locks = ["asym", "std", "calock", "semaphore", "sem_t", "psrw", "std-rw", "parking_lot-rw"];
    assert_eq!(pairs[0].locks, locks);
    let reads: Vec<_> = plan.probes.iter().filter(|probe| probe.cell == Cell::ReadPairs).collect();
    assert_eq!(reads.len(), 1);
    let round = plan.round(0, 7);
    assert_eq!(round.len(), plan.probes.len());
    assert!(plan.probes.iter().all(|probe| round.contains(&probe)));
}

#[test]
fn the_time_there_is_is_kept() {
    keeps_the_time::<Promises>(6.0, 3);
    // What is asked for is done, however long it takes.
    let (cli, promises) = asked::<Promises>(&["--seconds", "0.5", "--rounds", "9"], Mode::Full);
    let plan = plan::<Promises>(&cli, Mode::Full, &promises, 1000.0);
    assert_eq!((plan.lengths.window_ms, plan.rounds), (500, 9));
}

#[test]
fn rows_are_chosen_by_name_and_by_lock() {
    let (_, hogs) = asked::<Promises>(&["--only", "throughput/hog/"], Mode::Quick);
    assert_eq!(hogs.len(), 6);
    let (_, promises) = asked::<Promises>(&["--locks", "byte-0,std"], Mode::Full);
    let names: Vec<String> = promises.into_iter().map(|promise| promise.name).collect();
    assert_eq!(names, ["byte/one-cpu"]);
}
