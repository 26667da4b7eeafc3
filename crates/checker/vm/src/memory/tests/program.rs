//! Little programs, and all they can do: every interleaving, times every choice that the memory
//! offers.

use super::super::{Loc, Memory, MsgId};
pub(super) use super::op::{FAILED, Op, Outcome, Program, pointee, words};
use crate::choice::Kind;
use crate::engine::Update;
use core::panic::Location;
use std::collections::BTreeSet;

/// A depth-first walk through a tree of choices, by re-execution.
#[derive(Default)]
pub(super) struct Walk {
    path: Vec<(usize, usize)>,
    at: usize,
}

impl Walk {
    pub(super) fn choose(&mut self, n: usize) -> usize {
        if self.at == self.path.len() {
            self.path.push((0, n));
        }
        let (index, of) = self.path[self.at];
        assert_eq!(of, n, "an execution does not repeat itself");
        self.at += 1;
        index
    }

    /// Goes on to the next leaf; whether there is one.
    pub(super) fn next(&mut self) -> bool {
        self.at = 0;
        while let Some((index, of)) = self.path.pop() {
            if index + 1 < of {
                self.path.push((index + 1, of));
                return true;
            }
        }
        false
    }
}

/// All outcomes of `program`, on memories that `memory` makes, and how many executions it took. All
/// words begin as zero. Either all executions are made, or only those that are no twins of others.
///
/// Two executions are twins if they are one graph: the same reads from the same, in the same
/// modification orders. A step can be exchanged with the one before it, of another thread, unless
/// it reads what that wrote. So of two such steps the one of the lower thread goes first, and what
/// departs from this is cut.
pub(super) fn explore(
    program: &Program,
    memory: impl Fn() -> Memory,
    cut_twins: bool,
) -> (BTreeSet<Outcome>, usize) {
    let mut found = BTreeSet::new();
    let mut walk = Walk::default();
    let mut executions = 0;
    loop {
        if let Some(outcome) = execute(program, memory(), &mut walk, cut_twins) {
            found.insert(outcome);
            executions += 1;
        }
        if !walk.next() {
            return (found, executions);
        }
    }
}

fn execute(program: &Program, mut memory: Memory, walk: &mut Walk, cut_twins: bool) -> Option<Outcome> {
    let locs: Vec<Loc> = (0..words(program)).map(|_| memory.create_zeroed()).collect();
    let threads: Vec<usize> = program.iter().map(|_| memory.spawn(None)).collect();
    let mut next = vec![0; program.len()];
    let mut outcome = Outcome { reads: vec![Vec::new(); program.len()], last: Vec::new() };
    let mut before: Option<(usize, Done)> = None;
    loop {
        let enabled: Vec<usize> = (0..program.len()).filter(|&t| next[t] < program[t].len()).collect();
        if enabled.is_empty() {
            break;
        }
        let t = enabled[if enabled.len() == 1 { 0 } else { walk.choose(enabled.len()) }];
        let returned = |read: usize| outcome.reads[t][read] % FAILED;
        let op = match program[t][next[t]] {
            Op::Copy(x, read, order) => Op::Store(x, returned(read), order),
            Op::LoadAt(read, order) => Op::Load(pointee(returned(read)).expect("an address"), order),
            Op::StoreAt(read, value, order) => {
                Op::Store(pointee(returned(read)).expect("an address"), value, order)
            }
            op => op,
        };
        let done = step(&mut memory, threads[t], &locs, op, &mut |_, n| walk.choose(n));
        next[t] += 1;
        outcome.reads[t].extend(done.returned);
        // A condition is no step: nothing of it is in memory. So the thread ends before an access
        // that leads nowhere.
        while let Some(&op) = program[t].get(next[t]) {
            let returned = |read: usize| outcome.reads[t][read] % FAILED;
            let holds = match op {
                Op::If(read, value) => returned(read) == value,
                Op::LoadAt(read, _) | Op::StoreAt(read, ..) => pointee(returned(read)).is_some(),
                _ => break,
            };
            if !holds {
                next[t] = program[t].len();
            } else if let Op::If(..) = op {
                next[t] += 1;
            } else {
                break;
            }
        }
        if next[t] == program[t].len() {
            memory.end(threads[t]);
        }
        if cut_twins
            && let Some((other, earlier)) = before
            && t < other
            && (done.read.is_none() || done.read != earlier.written)
        {
            return None;
        }
        before = Some((t, done));
    }
    outcome.last = locs.iter().map(|&loc| memory.newest(loc)).collect();
    // As after each execution: the next one must find nothing of it.
    if !memory.is_strange() {
        memory.recycle();
        let next = Memory::new();
        assert!(next.is_blank(), "an execution is kept: {next:?}");
        next.recycle();
    }
    Some(outcome)
}

/// What an operation did.
#[derive(Clone, Copy, Default)]
pub(super) struct Done {
    returned: Option<u64>,
    pub(super) read: Option<MsgId>,
    pub(super) written: Option<MsgId>,
}

pub(super) fn step(
    memory: &mut Memory,
    thread: usize,
    locs: &[Loc],
    op: Op,
    choose: &mut dyn FnMut(Kind, usize) -> usize,
) -> Done {
    let at = Location::caller();
    let mut update = |x: usize, success, failure, weak, change: &dyn Fn(u64) -> Option<u64>| {
        let update = Update { name: "test", success, failure, weak, change };
        let updated = memory.update(thread, locs[x], &update, at, choose).expect("no fault");
        let failed = if updated.written.is_none() { FAILED } else { 0 };
        Done {
            returned: Some(updated.read.value | failed),
            read: Some(updated.read.message),
            written: updated.written.map(|written| written.message),
        }
    };
    match op {
        Op::Load(x, order) => {
            let read = memory.load(thread, locs[x], order, at, choose).expect("no fault");
            Done { returned: Some(read.value), read: Some(read.message), written: None }
        }
        Op::Store(x, value, order) => {
            let written = memory.store(thread, locs[x], value, order, at, choose).expect("no fault");
            Done { written: Some(written.message), ..Done::default() }
        }
        Op::Swap(x, value, order) => update(x, order, order, false, &|_| Some(value)),
        Op::Add(x, value, order) => update(x, order, order, false, &|before| Some(before + value)),
        Op::Cas { x, expected, new, success, failure, weak } => {
            update(x, success, failure, weak, &|before| (before == expected).then_some(new))
        }
        Op::Fence(order) => {
            memory.fence(thread, order);
            Done::default()
        }
        Op::Copy(..) | Op::If(..) | Op::LoadAt(..) | Op::StoreAt(..) => {
            unreachable!("depends on the thread: `execute` replaces it")
        }
        Op::Await(..) | Op::Yield => unreachable!("is no matter of memory"),
    }
}
