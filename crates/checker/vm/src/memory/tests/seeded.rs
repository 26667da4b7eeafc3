//! A check that cannot fail proves nothing: the litmus table and the random programs find bugs that
//! are put in.

use super::super::Memory;
use super::super::seed::Bug;
use super::axioms;
use super::fuzz::{CLASSES, Random, cut_twins, generate};
use super::litmus::TABLE;
use super::program::{Op, Outcome, Program, explore, explore_with};
use crate::choice::Kind;
use core::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::collections::BTreeSet;

/// Where a bug is.
#[derive(Clone, Copy)]
enum Place {
    /// In the memory.
    Memory(Bug),
    /// In what it makes of an operation: it does another one.
    Meaning(fn(Op) -> Op),
    /// In the choices: it never takes any but the first of this kind.
    Tame(Kind),
}

const BUGS: &[(&str, Place)] = &[
    ("no release sequences", Place::Memory(Bug::ReleaseSequence)),
    ("two updates of one message", Place::Memory(Bug::TakenTwice)),
    ("a store between", Place::Memory(Bug::StoreBetween)),
    ("forgotten reads", Place::Memory(Bug::ForgottenReads)),
    ("one view of all SC fences", Place::Memory(Bug::FencesInOrder)),
    ("SC fences without eco", Place::Memory(Bug::FencesWithoutEco)),
    ("nothing before a fence that saw more", Place::Memory(Bug::NoWayBack)),
    ("psc with all of hb", Place::Memory(Bug::AllOfHappensBefore)),
    ("psc without hb|loc", Place::Memory(Bug::NotOnOneWord)),
    (
        "SC fences as AcqRel",
        Place::Meaning(|op| match op {
            Op::Fence(SeqCst) => Op::Fence(AcqRel),
            op => op,
        }),
    ),
    (
        "SC accesses as AcqRel",
        Place::Meaning(|op| with_order(op, |order| if order == SeqCst { AcqRel } else { order })),
    ),
    (
        "release stores are relaxed",
        Place::Meaning(|op| match op {
            Op::Store(x, value, Release) => Op::Store(x, value, Relaxed),
            op => op,
        }),
    ),
    (
        "acquire loads are relaxed",
        Place::Meaning(|op| match op {
            Op::Load(x, Acquire) => Op::Load(x, Relaxed),
            op => op,
        }),
    ),
    (
        "acquire fences do nothing",
        Place::Meaning(|op| match op {
            Op::Fence(Acquire) => Op::Fence(Release),
            op => op,
        }),
    ),
    (
        "release fences do nothing",
        Place::Meaning(|op| match op {
            Op::Fence(Release) => Op::Fence(Acquire),
            op => op,
        }),
    ),
    (
        "failed exchanges use the success ordering",
        Place::Meaning(|op| match op {
            Op::Cas { x, expected, new, success, weak, .. } => {
                let failure = match success {
                    AcqRel => Acquire,
                    Release => Relaxed,
                    order => order,
                };
                Op::Cas { x, expected, new, success, failure, weak }
            }
            op => op,
        }),
    ),
    ("no weak failures", Place::Tame(Kind::WeakFailure)),
    ("the newest message only", Place::Tame(Kind::Message)),
    ("stores at the end only", Place::Tame(Kind::Place)),
];

/// The same operation; the ordering is fitted to what it can be.
fn with_order(op: Op, map: fn(Ordering) -> Ordering) -> Op {
    match op {
        Op::Load(x, order) => Op::Load(x, if map(order) == AcqRel { Acquire } else { order }),
        Op::Store(x, value, order) => Op::Store(x, value, if map(order) == AcqRel { Release } else { order }),
        Op::Swap(x, value, order) => Op::Swap(x, value, map(order)),
        Op::Add(x, value, order) => Op::Add(x, value, map(order)),
        Op::Cas { x, expected, new, success, failure, weak } => {
            let failure = if map(failure) == AcqRel { Acquire } else { failure };
            Op::Cas { x, expected, new, success: map(success), failure, weak }
        }
        Op::Copy(x, read, order) => Op::Copy(x, read, if map(order) == AcqRel { Release } else { order }),
        other @ (Op::Fence(_) | Op::If(..)) => other,
    }
}

fn outcomes(program: &Program, place: Place, cut_twins: bool) -> BTreeSet<Outcome> {
    match place {
        Place::Memory(bug) => explore(program, || Memory::strange(1 << 32, 16, Some(bug)), cut_twins).0,
        Place::Meaning(meaning) => {
            let program = program.iter().map(|ops| ops.iter().map(|&op| meaning(op)).collect()).collect();
            explore(&program, Memory::new, cut_twins).0
        }
        Place::Tame(kind) => explore_with(program, Memory::new, cut_twins, |asked| asked != kind).0,
    }
}

#[test]
fn the_table_finds_every_bug() {
    for &(name, place) in BUGS {
        let fails = |litmus: &&super::litmus::Litmus| {
            litmus.written(&outcomes(&litmus.program(), place, false)) != litmus.allowed()
        };
        let failing: Vec<_> = TABLE.iter().filter(fails).map(|litmus| litmus.name).collect();
        println!("{name:42} found by {:2} tests: {}", failing.len(), failing.join(" "));
        assert!(!failing.is_empty(), "no litmus test finds: {name}");
    }
}

#[test]
fn random_programs_find_every_bug() {
    const LIMIT: usize = 5000;
    let mut random = Random(6);
    // What is allowed is worked out once for all bugs, as far as it is asked for.
    let mut programs: Vec<(Program, BTreeSet<Outcome>)> = Vec::new();
    for &(name, place) in BUGS {
        let found = (0..LIMIT).find(|&n| {
            if n == programs.len() {
                let program = generate(&mut random, CLASSES[n % CLASSES.len()]);
                let allowed = axioms::outcomes(&program);
                programs.push((program, allowed));
            }
            let (program, allowed) = &programs[n];
            outcomes(program, place, cut_twins(program)) != *allowed
        });
        println!("{name:42} found by random program {found:?}");
        assert!(found.is_some(), "no random program finds: {name}");
    }
}
