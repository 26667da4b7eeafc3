//! Executions that are too long for all of their like to be enumerated: each is one graph, which
//! the axioms admit.
//!
//! This is where labels run out, where old SC events are dropped, and where SC events are many.

use super::super::{Loc, Memory, MsgId};
use super::axioms::{self, Observed};
use super::program::{Program, step, words};
use super::random::{Class, Random, TWO, generate};
use core::panic::Location;
use core::sync::atomic::Ordering::{self, AcqRel, Acquire, Release, SeqCst};
use std::collections::BTreeMap;

const NO_SC: Class = Class {
    name: "no SC",
    threads: 4,
    ops: 18,
    words: 3,
    updates: 2,
    fences: 1,
    fence_orders: &[Acquire, Release, AcqRel],
    ..TWO
};
const SC_FENCES: Class = Class { name: "SC fences", fences: 3, fence_orders: &[SeqCst], ..NO_SC };
const SC_ACCESSES: Class = Class { name: "SC accesses", threads: 3, ops: 20, sc: 6, fences: 0, ..NO_SC };
const ALL: Class = Class {
    name: "all",
    words: 2,
    sc: 4,
    fences: 3,
    fence_orders: &[Acquire, Release, AcqRel, SeqCst],
    ..SC_ACCESSES
};

/// One execution of `program`, which is of `class`, at random.
fn run(program: &Program, class: Class, mut memory: Memory, random: &mut Random) -> Observed {
    let parent = memory.spawn(None);
    let locs: Vec<Loc> = (0..words(program)).map(|_| memory.create_zeroed()).collect();
    let threads: Vec<usize> = program.iter().map(|_| memory.spawn(Some(parent))).collect();
    memory.end(parent);
    let mut next = vec![0; program.len()];
    let mut writers: BTreeMap<MsgId, (usize, usize)> = BTreeMap::new();
    let mut observed = Observed::default();
    // How long a thread runs, and how stale its reads are, is drawn once for the execution.
    let (stay, newest) = (random.below(8), random.below(10));
    let mut t = 0;
    while next.iter().zip(program).any(|(&next, ops)| next < ops.len()) {
        while next[t] == program[t].len() || random.below(8) >= stay {
            t = random.below(program.len());
            if next[t] < program[t].len() {
                break;
            }
        }
        for _ in 0..random.below(6) {
            let order = if random.below(10) < class.sc { SeqCst } else { Release };
            churn(&mut memory, threads[t], order);
        }
        let op = (t, next[t]);
        let mut choose = |_, n: usize| if random.below(10) < newest { 0 } else { random.below(n) };
        let done = step(&mut memory, threads[t], &locs, program[t][next[t]], &mut choose);
        if let Some(written) = done.written {
            writers.insert(written, op);
        }
        if let Some(read) = done.read {
            observed.sources.insert(op, writers.get(&read).copied());
        }
        next[t] += 1;
        if next[t] == program[t].len() {
            memory.end(threads[t]);
        }
    }
    observed.orders = locs
        .iter()
        .map(|loc| {
            memory.words[loc.index()].messages[1..].iter().map(|message| writers[&message.id]).collect()
        })
        .collect();
    observed
}

/// An atomic that no other thread sees comes and goes: its slot is used by many.
fn churn(memory: &mut Memory, thread: usize, order: Ordering) {
    let at = Location::caller();
    let loc = memory.create(thread, 1, at);
    memory.store(thread, loc, 2, order, at, &mut |_, n| n - 1).expect("no fault");
    let value = memory.load(thread, loc, Acquire, at, &mut |_, n| n - 1).expect("no fault").value;
    assert_eq!(value, 2, "a thread overlooks its own store");
    memory.retire(thread, loc, true, at).expect("no fault");
}

/// The first of `limit` executions that the axioms do not admit.
fn first_bad(class: Class, limit: usize, memory: impl Fn() -> Memory) -> Option<(Program, usize)> {
    let mut random = Random(1);
    (0..limit).find_map(|n| {
        let program = generate(&mut random, class);
        let observed = run(&program, class, memory(), &mut random);
        (!axioms::admit(&program, &observed)).then_some((program, n))
    })
}

#[test]
fn long_executions_are_what_the_axioms_admit() {
    let limit = if cfg!(debug_assertions) { 150 } else { 1000 };
    for class in [NO_SC, SC_FENCES, SC_ACCESSES, ALL] {
        for (gap, sweep) in [(1 << 32, 16), (2, 0)] {
            let bad = first_bad(class, limit, || Memory::strange(gap, sweep));
            assert!(bad.is_none(), "{}, gap {gap}, sweep {sweep}: {bad:#?}", class.name);
        }
    }
}
