use super::*;
use crate::report::Kind;
use std::collections::HashSet;

/// The plan of a machine with so many CPUs and the usual locks.
fn usual(mode: Mode, cpus: u32, given: Given) -> Plan {
    let wish = Wish {
        mode,
        locks: super::super::usual_locks(mode),
        workloads: default_workloads(mode),
        threads: default_threads(cpus, mode),
        given,
    };
    Plan::new(wish, cpus)
}

fn plan(mode: Mode, cpus: u32) -> Plan {
    usual(mode, cpus, Given::default())
}

/// The seconds of a plan, counted trial by trial.
fn counted_s(plan: &Plan) -> f64 {
    let mut all_s = 0.0;
    for round in 0..plan.rounds() {
        for (_, cell) in plan.round(u64::from(round)) {
            all_s += (plan.window_ms + plan.warmup_ms) as f64 / 1e3 + overhead_s(&plan.cells[cell]);
        }
    }
    all_s
}

#[test]
fn thread_counts_double_and_end_oversubscribed() {
    assert_eq!(default_threads(1, Mode::Full), [1, 2, 8]);
    assert_eq!(default_threads(2, Mode::Full), [1, 2, 4, 16]);
    assert_eq!(default_threads(6, Mode::Full), [1, 2, 4, 8, 12, 48]);
    assert_eq!(default_threads(64, Mode::Full), [1, 2, 4, 8, 16, 32, 64, 128, 512]);
}

#[test]
fn the_bare_workload_has_a_cell_without_clock_reads() {
    let cells = Cell::all(&default_workloads(Mode::Full), &[1, 2]);
    assert_eq!(cells.len(), 10);
    assert_eq!(cells.iter().filter(|c| !c.timed).count(), 2);
    assert!(cells.iter().all(|c| c.timed || c.workload.is_bare()));
    assert_eq!(cells.iter().filter(|c| c.is_main()).count(), 8);
}

#[test]
fn a_round_has_every_lock_in_every_cell_once() {
    let plan = plan(Mode::Full, 2);
    for seed in 0..20 {
        let round = plan.round(seed);
        assert_eq!(round.len(), plan.trials());
        assert_eq!(round.iter().collect::<HashSet<_>>().len(), plan.trials());
        assert_eq!(round, plan.round(seed));
        assert_ne!(round, plan.round(seed + 1));
    }
}

#[test]
fn any_machine_keeps_the_time() {
    for mode in [Mode::Full, Mode::Quick, Mode::Smoke] {
        for cpus in [1, 2, 4, 8, 16, 48, 64, 128, 256, 512] {
            let plan = plan(mode, cpus);
            let meant = effort(mode).0.budget.as_secs_f64();
            assert!(counted_s(&plan) <= meant, "{cpus} CPUs, {mode:?}: {plan}");
            assert!(!plan.to_string().contains("more than"), "{plan}");
            assert!(plan.rounds() >= plan.min_rounds && plan.locks.iter().any(|l| l.kind == Kind::Family));
        }
    }
}

#[test]
fn few_cpus_leave_out_nothing() {
    for mode in [Mode::Full, Mode::Quick] {
        for cpus in [1, 2, 4] {
            let plan = plan(mode, cpus);
            assert!(plan.left_out.is_empty(), "{cpus} CPUs: {plan}");
            assert_eq!(plan.threads, default_threads(cpus, mode));
        }
    }
    assert!(plan(Mode::Full, 2).rounds() >= 6, "{}", plan(Mode::Full, 2));
}

#[test]
fn many_cpus_shrink_windows_then_rounds_then_thread_counts_then_locks() {
    let (effort, _) = effort(Mode::Full);
    let windows = [1, 2, 64].map(|cpus| plan(Mode::Full, cpus).window_ms);
    assert!(windows.is_sorted_by(|a, b| a >= b) && windows[0] > windows[2], "{windows:?}");
    let big = plan(Mode::Full, 64);
    assert_eq!((big.window_ms, big.rounds()), (effort.min_window_ms, MIN_ROUNDS));
    assert_eq!(big.locks, super::super::usual_locks(Mode::Full));
    assert_eq!(
        (&big.left_out.join(", ")[..], &big.threads[..]),
        ("4 threads, 16 threads, 32 threads", &[1, 2, 8, 64, 128, 512][..])
    );
    let said = big.to_string();
    let line = said.lines().find(|line| line.starts_with("left out, ")).unwrap();
    assert!(line.ends_with("; --full measures all") && line.contains("4 threads"), "{line}");
    let huge = plan(Mode::Full, 256);
    assert_eq!(huge.locks, super::super::usual_locks(Mode::Full));
    assert_eq!(
        (&huge.left_out.join(", ")[..], &huge.threads[..]),
        (
            "4 threads, 16 threads, 64 threads, 128 threads, 8 threads, 32 threads, 2048 threads",
            &[1, 2, 256, 512][..]
        )
    );
}

#[test]
fn things_are_left_out_in_the_order_of_the_rule() {
    let lock = |name: &str, kind| Lock { name: name.into(), kind, about: String::new() };
    let mut wish = Wish {
        mode: Mode::Full,
        locks: vec![
            lock("ours", Kind::Family),
            lock("parking_lot", Kind::Peer),
            lock("a", Kind::Peer),
            lock("b", Kind::Peer),
            lock("std", Kind::Peer),
            lock("none", Kind::Baseline),
        ],
        workloads: default_workloads(Mode::Full),
        threads: default_threads(32, Mode::Full),
        given: Given::default(),
    };
    let mut same_locks = wish.clone();
    same_locks.given.locks = true;
    let order = |wish: &mut Wish| Vec::from_iter(std::iter::from_fn(|| wish.leave_out(32)));
    let counts = ["4 threads", "16 threads", "8 threads", "256 threads"];
    assert_eq!(order(&mut wish), [&counts[..], &["b", "a", "64 threads"]].concat());
    assert_eq!(wish.threads, [1, 2, 32]);
    let names: Vec<_> = wish.locks.iter().map(|lock| lock.name.as_str()).collect();
    assert_eq!(names, ["ours", "parking_lot", "std", "none"]);
    assert_eq!(order(&mut same_locks), [&counts[..], &["64 threads"]].concat());
}

#[test]
fn what_is_given_stays_and_the_plan_says_how_long_it_takes() {
    let both = Given { threads: true, locks: true, ..Given::default() };
    let window = Given { window_ms: Some(1000), ..Given::default() };
    let rounds = Given { rounds: Some(9), ..Given::default() };
    for given in [both, window, rounds] {
        let plan = usual(Mode::Full, 256, given);
        assert_eq!(plan.threads, default_threads(256, Mode::Full));
        assert_eq!((plan.left_out.len(), plan.locks.len()), (0, super::super::usual_locks(Mode::Full).len()));
        let clock = report::clock(effort(Mode::Full).0.budget.as_secs_f64());
        assert!(plan.to_string().contains(&format!("more than the {clock} min meant for it")), "{plan}");
    }
    assert_eq!(usual(Mode::Full, 2, window).window_ms, 1000);
    assert_eq!(usual(Mode::Full, 2, rounds).rounds(), 9);
}

#[test]
fn a_run_that_takes_twice_as_long_as_it_should_ends_unless_its_rounds_are_given() {
    let window = Given { window_ms: Some(1000), ..Given::default() };
    for (given, cpus) in [(Given::default(), 2), (Given::default(), 64), (window, 64)] {
        let plan = usual(Mode::Quick, cpus, given);
        let limit_s = plan.limit().unwrap().as_secs_f64();
        let meant_s = effort(Mode::Quick).0.budget.as_secs_f64();
        assert!(limit_s >= 1.99 * meant_s && limit_s >= 1.99 * plan.estimate_s(), "{limit_s} s, {plan}");
    }
    let rounds = Given { rounds: Some(9), ..Given::default() };
    let full = Given { full: true, ..Given::default() };
    assert_eq!(usual(Mode::Quick, 64, rounds).limit(), None);
    assert_eq!(usual(Mode::Full, 64, full).limit(), None);
    assert_eq!(usual(Mode::Smoke, 64, Given::default()).limit(), None);
}

#[test]
fn a_run_in_full_has_the_longest_windows_and_no_limit() {
    let (effort, _) = effort(Mode::Full);
    for cpus in [2, 64, 256] {
        let plan = usual(Mode::Full, cpus, Given { full: true, ..Given::default() });
        assert_eq!((plan.window_ms, plan.rounds()), (effort.max_window_ms, effort.max_rounds));
        assert_eq!(plan.threads, default_threads(cpus, Mode::Full));
        assert!(plan.left_out.is_empty() && plan.budget.is_none());
        assert!(plan.to_string().ends_with(&format!("in {} min", report::clock(counted_s(&plan)))), "{plan}");
    }
}

#[test]
fn few_cells_get_long_windows_and_many_rounds() {
    let lock = Lock { name: "std".into(), kind: Kind::Peer, about: String::new() };
    let wish = Wish {
        mode: Mode::Full,
        locks: vec![lock],
        workloads: default_workloads(Mode::Full)[1..2].to_vec(),
        threads: vec![2],
        given: Given::default(),
    };
    let plan = Plan::new(wish, 2);
    assert_eq!((plan.window_ms, plan.rounds()), (500, 15));
}
