mod toy;

use super::super::footprint::{is_covered, is_covered_if_newest};
use super::super::rng::Rng;
use super::super::share::Claims;
use super::*;
use Footprint::{Clock, Everything, Fence, Futex, Local, Newest, Read, Update, Write};
use core::cell::Cell;
use core::fmt::Debug;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use toy::{Access, Op, System, Weak, execute, explore, reachable};

fn all(relation: Relation) -> Exhaustive {
    Exhaustive::new(u64::MAX, relation)
}

/// Nothing changes places, so that every order is tried.
fn nothing(_: Footprint, _: Footprint) -> bool {
    false
}

fn newest_systems(count: u64, length: usize, with_picks: bool) -> impl Iterator<Item = toy::Newest> {
    (0..count).map(move |seed| toy::Newest::random(&mut Rng::new(seed), length, with_picks))
}

fn weak_systems(count: u64) -> impl Iterator<Item = Weak> {
    (0..count).map(move |seed| Weak::random(&mut Rng::new(seed), 3))
}

#[test]
fn every_outcome_is_found_where_values_are_the_newest() {
    for system in newest_systems(2_000, 4, true) {
        let mut strategy = all(is_covered_if_newest);
        assert_eq!(explore(&system, &mut strategy), reachable(&system), "{system:?}");
        assert!(strategy.coverage().is_complete);
    }
}

#[test]
fn every_outcome_is_found_in_a_machine_of_views() {
    for system in weak_systems(2_000) {
        let mut strategy = all(is_covered);
        assert_eq!(explore(&system, &mut strategy), reachable(&system), "{system:?}");
        assert!(strategy.coverage().is_complete);
    }
}

/// Holds what is found of the executions that keep to a limit against all of them. How many there
/// were, and how many without leaving any out.
fn nothing_is_lost_within<S: System + Debug>(systems: impl Iterator<Item = S>, most: u32) -> (u64, u64) {
    let (mut with, mut without) = (0, 0);
    for mut system in systems {
        *system.surprises() = Some(most);
        let (mut strategy, mut plain) = (all(is_covered_if_newest), all(nothing));
        assert_eq!(explore(&system, &mut strategy), reachable(&system), "{most} {system:?}");
        explore(&system, &mut plain);
        let Coverage { executions, redundant, is_complete } = strategy.coverage();
        assert!(is_complete);
        with += executions + redundant;
        without += plain.coverage().executions;
    }
    (with, without)
}

#[test]
fn every_outcome_within_a_limit_is_found_where_values_are_the_newest() {
    for most in 0..4 {
        let (with, without) = nothing_is_lost_within(newest_systems(500, 4, true), most);
        println!("{most}: {with} of {without}");
        assert!(most == 0 || with < without, "{with} of {without}");
    }
}

/// A holder that loses its turn gets it back for nothing, since the other thread waits for the
/// lock. To lose it after the release would take another preemption.
#[test]
fn a_holder_that_lost_its_turn_is_tried_when_the_other_waits() {
    let holder = vec![Op::Write(1), Op::Lock, Op::Unlock, Op::Write(0)];
    let other = vec![Op::Read(1), Op::Read(0), Op::Lock, Op::Read(0)];
    let system = toy::Newest::new(vec![holder, other]);
    for most in 0..4 {
        nothing_is_lost_within([system.clone()].into_iter(), most);
    }
}

#[test]
fn every_outcome_within_a_limit_is_found_in_a_machine_of_views() {
    for most in 0..4 {
        let (with, without) = nothing_is_lost_within(weak_systems(500), most);
        println!("{most}: {with} of {without}");
        assert!(most == 0 || with < without, "{with} of {without}");
    }
}

#[test]
fn what_covers_in_one_direction_saves_executions_over_what_changes_places_in_both() {
    fn both_ways(a: Footprint, b: Footprint) -> bool {
        is_covered(a, b) && is_covered(b, a)
    }
    let (mut with, mut without) = (0, 0);
    for system in weak_systems(200) {
        let (mut one, mut two) = (all(is_covered), all(both_ways));
        assert_eq!(explore(&system, &mut one), explore(&system, &mut two));
        assert!(one.coverage().executions <= two.coverage().executions, "{system:?}");
        with += one.coverage().executions;
        without += two.coverage().executions;
    }
    assert!(with * 10 < without * 9, "{with} of {without}");
}

/// The relation of the test, wrong in one entry.
fn wrong(left_out: Footprint, ran: Footprint) -> bool {
    let (relation, pair) = WRONG.get();
    relation(left_out, ran) || (class(left_out), class(ran)) == pair
}

thread_local! {
    static WRONG: Cell<(Relation, (usize, usize))> = const { Cell::new((nothing, (0, 0))) };
}

fn class(footprint: Footprint) -> usize {
    match footprint {
        Local | Fence => 0,
        Read(_) => 1,
        Write(_) => 2,
        Update(_) => 3,
        Futex { .. } => 4,
        Clock => 5,
        Everything => 6,
        Newest(_) => 7,
    }
}

/// The entries that could be wrong in `relation`, among `footprints`, without one of `systems`
/// losing an outcome.
fn unnoticed<S: System>(
    relation: Relation,
    footprints: &[Footprint],
    systems: &[S],
) -> Vec<(Footprint, Footprint)> {
    let expected: Vec<_> = systems.iter().map(reachable).collect();
    let pairs = footprints.iter().flat_map(|&left_out| footprints.iter().map(move |&ran| (left_out, ran)));
    let entries: Vec<_> = pairs.filter(|&(left_out, ran)| !relation(left_out, ran)).collect();
    assert!(entries.len() >= 4, "{entries:?}");
    let is_noticed = |&(left_out, ran): &(Footprint, Footprint)| {
        WRONG.set((relation, (class(left_out), class(ran))));
        systems.iter().zip(&expected).any(|(system, expected)| explore(system, &mut all(wrong)) != *expected)
    };
    entries.into_iter().filter(|entry| !is_noticed(entry)).collect()
}

#[test]
fn a_wrong_entry_in_the_relation_of_newest_values_is_noticed() {
    let systems: Vec<_> = newest_systems(1_000, 3, false).chain(newest_systems(1_000, 4, false)).collect();
    let footprints = [Read(0), Write(0), Update(0), Newest(0), Footprint::futex(&[0]), Clock, Everything];
    assert_eq!(unnoticed(is_covered_if_newest, &footprints, &systems), []);
}

#[test]
fn a_wrong_entry_in_the_relation_of_views_is_noticed() {
    let systems: Vec<_> = weak_systems(300).collect();
    assert_eq!(unnoticed(is_covered, &[Read(0), Write(0), Update(0)], &systems), []);
}

/// What an operation reads or writes, written down once more: the words, 10 for the kernel, 11 for
/// the clock.
fn touched(op: Op) -> (Vec<u32>, bool) {
    match op {
        Op::Local | Op::SkipIfOdd | Op::Pick(_) => (vec![], false),
        Op::Read(word) | Op::Await(word) => (vec![word], false),
        Op::Write(word) | Op::Add(word) | Op::Settle(word) | Op::Give(word) => (vec![word], true),
        Op::Sleep(word) | Op::Notify(word) => (vec![word, 10, 11], true),
        Op::Wake => (vec![10, 11], true),
        Op::Tick => (vec![11], true),
        Op::Lock | Op::Unlock => (vec![3], true),
        Op::Everything => (vec![0, 1, 2, 3, 10, 11], true),
    }
}

fn depend(a: Op, b: Op) -> bool {
    let ((of_a, a_writes), (of_b, b_writes)) = (touched(a), touched(b));
    (a_writes || b_writes) && of_a.iter().any(|resource| of_b.contains(resource))
}

/// An event: thread, which of its operations, and what it is.
type Event = (usize, usize, Op);

/// The traces of a system without picks: of each schedule, which of two dependent events came
/// first.
fn traces(
    system: &toy::Newest,
    events: &mut Vec<Event>,
    found: &mut BTreeSet<Vec<(usize, usize, usize, usize)>>,
) {
    let enabled = system.enabled();
    if enabled.is_empty() {
        let mut order = Vec::new();
        for (later, &(thread, which, op)) in events.iter().enumerate() {
            for &(before, nth, other) in &events[..later] {
                if before != thread && depend(op, other) {
                    order.push((before, nth, thread, which));
                }
            }
        }
        order.sort_unstable();
        // Which operations took place at all belongs to the trace.
        order.extend(system.counters.iter().map(|&counter| (usize::MAX, 0, 0, counter)));
        found.insert(order);
    }
    for candidate in enabled {
        let thread = candidate.thread;
        events.push((thread, system.counters[thread], system.next(thread).unwrap()));
        let mut next = system.clone();
        next.step(thread, &mut |_, _| unreachable!("no picks"));
        traces(&next, events, found);
        events.pop();
    }
}

#[test]
fn without_picks_there_is_one_execution_for_each_mazurkiewicz_trace() {
    let mut by_count = BTreeMap::new();
    for system in newest_systems(300, 3, false) {
        let mut found = BTreeSet::new();
        traces(&system, &mut Vec::new(), &mut found);
        let mut strategy = all(is_covered_if_newest);
        explore(&system, &mut strategy);
        assert_eq!(strategy.coverage().executions, found.len() as u64, "{system:?}");
        *by_count.entry(found.len()).or_insert(0) += 1;
    }
    assert!(by_count.len() > 20, "the systems differ: {by_count:?}");
}

#[test]
fn what_is_apart_is_tried_in_one_order_and_what_is_not_in_all() {
    let writers = |word: fn(u32) -> u32| {
        toy::Newest::new(
            (0..3).map(|thread| vec![Op::Write(word(thread)), Op::Write(word(thread))]).collect(),
        )
    };
    let count = |system: &toy::Newest, relation| {
        let mut strategy = all(relation);
        explore(system, &mut strategy);
        strategy.coverage().executions
    };
    // 6! / 2!^3 orders of two steps of each of three threads.
    assert_eq!(count(&writers(|thread| thread), nothing), 90);
    assert_eq!(count(&writers(|thread| thread), is_covered_if_newest), 1);
    assert_eq!(count(&writers(|_| 0), is_covered_if_newest), 90);
    assert_eq!(count(&writers(|thread| thread / 2), is_covered_if_newest), 6, "4! / 2!^2 of the first two");
}

#[test]
fn redundant_executions_are_counted_apart() {
    let system = (0..1_000)
        .map(|seed| toy::Newest::random(&mut Rng::new(seed), 3, false))
        .find(|system| {
            let mut strategy = all(is_covered_if_newest);
            explore(system, &mut strategy);
            strategy.coverage().redundant > 0
        })
        .expect("one that needs more than one look");
    let mut strategy = all(is_covered_if_newest);
    let (mut executions, mut redundant) = (0, 0);
    while strategy.begin() {
        execute(&system, &mut strategy);
        if strategy.is_redundant() {
            redundant += 1;
            let answers = (strategy.pick(Kind::User, 3), strategy.thread(&system.enabled()));
            assert_eq!(answers, (0, 0), "it may be run on");
        } else {
            executions += 1;
        }
    }
    assert_eq!(strategy.coverage(), Coverage { executions, redundant, is_complete: true });
}

#[test]
fn where_a_thread_does_what_no_other_can_tell_no_other_order_is_tried() {
    let quiet = vec![Op::Local, Op::Pick(3), Op::Local];
    let system = toy::Newest::new(vec![quiet.clone(), quiet.clone(), quiet]);
    let mut strategy = all(is_covered_if_newest);
    assert_eq!(explore(&system, &mut strategy).len(), 27);
    assert_eq!(strategy.coverage(), Coverage { executions: 27, redundant: 0, is_complete: true });
}

#[test]
fn an_exploration_that_its_limit_cuts_is_not_complete() {
    let system = toy::Newest::new(vec![vec![Op::Add(0), Op::Pick(2)]; 3]);
    let mut whole = all(is_covered_if_newest);
    explore(&system, &mut whole);
    let Coverage { executions, redundant, .. } = whole.coverage();
    let runs = executions + redundant;
    assert_eq!(executions, 6 * 8);
    for limit in 0..runs + 3 {
        let mut strategy = Exhaustive::new(limit, is_covered_if_newest);
        let outcomes = explore(&system, &mut strategy);
        let coverage = strategy.coverage();
        assert_eq!(coverage.is_complete, limit >= runs, "{limit} of {runs}");
        assert_eq!(coverage.executions + coverage.redundant, limit.min(runs));
        assert_eq!(outcomes == reachable(&system), limit >= runs);
        assert!(!strategy.begin(), "and stays over");
    }
}

/// All executions of `system` by three searches in turn, an execution each.
fn by_three<S: System>(system: &S, relation: Relation) -> (BTreeSet<Vec<u64>>, u64) {
    let claims = Arc::new(Claims::new(u64::MAX));
    let mut searches = [(); 3].map(|()| Exhaustive::sharing(relation, Arc::clone(&claims)));
    let (mut owners, mut outcomes, mut executions) = (BTreeMap::new(), BTreeSet::new(), 0);
    let mut is_left = true;
    while is_left {
        is_left = false;
        for (number, search) in searches.iter_mut().enumerate() {
            if !search.begin() {
                continue;
            }
            is_left = true;
            let end = execute(system, search);
            let Some(part) = search.part() else { continue };
            assert_eq!(*owners.entry(part).or_insert(number), number, "two searches run one part");
            if !search.is_redundant() {
                executions += 1;
                outcomes.insert(end.outcome());
            }
        }
    }
    (outcomes, executions)
}

#[test]
fn several_searches_run_each_part_once_and_all_together() {
    for system in weak_systems(300) {
        let mut alone = all(is_covered);
        assert_eq!(by_three(&system, is_covered).0, explore(&system, &mut alone), "{system:?}");
    }
    for system in newest_systems(300, 3, true) {
        let mut alone = all(is_covered_if_newest);
        let outcomes = explore(&system, &mut alone);
        let together = by_three(&system, is_covered_if_newest);
        assert_eq!(together, (outcomes, alone.coverage().executions), "{system:?}");
    }
}

#[test]
fn the_first_execution_has_no_surprises() {
    let store = |word| Access::Store { word, release: false };
    let load = |word| Access::Load { word, acquire: false };
    let system = Weak::new(vec![vec![store(0), load(1)], vec![store(1), load(0)]]);
    let mut strategy = super::super::Recorder::new(all(is_covered));
    assert!(strategy.begin());
    let first = execute(&system, &mut strategy);
    assert!(strategy.begin());
    assert_ne!(execute(&system, &mut strategy), first);
    assert_eq!(strategy.strategy().coverage().executions, 2);
}

fn asks(strategy: &mut Exhaustive, thread: bool, n: usize) {
    let enabled: Vec<_> = (0..n).map(|thread| Candidate { thread, footprint: Everything }).collect();
    if thread {
        strategy.thread(&enabled)
    } else {
        strategy.pick(Kind::User, n)
    };
}

/// What is said of a model that asks `second` after the same answers as `first`.
fn difference(first: &[(bool, usize)], second: &[(bool, usize)]) -> NotDeterministic {
    let mut strategy = all(nothing);
    let payload = catch_unwind(AssertUnwindSafe(|| {
        for questions in [first, second, &[]] {
            strategy.begin();
            for &(thread, n) in questions {
                asks(&mut strategy, thread, n);
            }
        }
    }));
    *payload.expect_err("it is noticed").downcast().expect("the payload says how")
}

#[test]
fn another_number_of_answers_is_noticed() {
    let NotDeterministic { before, now } = difference(&[(false, 2)], &[(false, 3)]);
    assert_eq!((&*before, &*now), ("one of 2 (User)", "one of 3 (User)"));
}

#[test]
fn another_thread_is_noticed() {
    let NotDeterministic { before, now } = difference(&[(true, 3)], &[(true, 2)]);
    assert!(before.contains("thread 2 (Everything)") && !now.contains("thread 2"), "{before}, {now}");
}

#[test]
fn another_question_is_noticed() {
    let NotDeterministic { before, now } = difference(&[(true, 2)], &[(false, 2)]);
    assert!(before.starts_with("which goes next of thread 0") && now == "one of 2 (User)", "{before}, {now}");
}

#[test]
fn an_execution_that_asks_less_is_noticed() {
    let NotDeterministic { before, now } = difference(&[(true, 2), (false, 2)], &[(true, 2)]);
    assert_eq!((&*before, &*now), ("one of 2 (User)", "it came to its end"));
}
