//! Random little programs, class by class, in both worlds and before the axioms.

use crate::axioms;
use crate::program::{FAILED, Op, Outcome, Program, by_loom, by_machine};
use core::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::collections::{BTreeSet, HashSet};

struct Random(u64);

impl Random {
    /// SplitMix64.
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }
}

/// The writes of a class beside stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Updates {
    None,
    /// A word is either stored to or updated.
    Apart,
    Anywhere,
}

/// How often a thread accesses a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Once,
    Again,
}

/// What is demanded of loom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    /// It reaches exactly the outcomes there are.
    IsRight,
    /// It reaches no others.
    MayMiss,
    /// It reaches them all.
    MayInvent,
    MayBeWrong,
}

use Claim::{IsRight, MayBeWrong, MayInvent, MayMiss};
use Updates::{Anywhere, Apart};

#[derive(Clone, Copy, Debug)]
struct Class {
    name: &'static str,
    loom: Claim,
    programs: usize,
    threads: usize,
    ops: usize,
    words: usize,
    access: Access,
    updates: Updates,
    exchanges: bool,
    fences: &'static [Ordering],
    /// Whether half of the accesses are SC.
    sc: bool,
}

const BASE: Class = Class {
    name: "",
    loom: IsRight,
    programs: 100,
    threads: 2,
    ops: 3,
    words: 3,
    access: Access::Once,
    updates: Updates::None,
    exchanges: false,
    fences: &[],
    sc: false,
};
/// Fences, but none that are SC.
const FENCES: &[Ordering] = &[Acquire, Release, AcqRel];
const ALL_FENCES: &[Ordering] = &[Acquire, Release, AcqRel, SeqCst, SeqCst, SeqCst];
/// Loom takes some thousand executions for one of these.
const THREE: Class = Class { threads: 3, ops: 2, words: 2, programs: 3, ..BASE };
const AGAIN: Class =
    Class { access: Access::Again, ops: 4, words: 2, loom: MayBeWrong, programs: 60, ..BASE };

const CLASSES: &[Class] = &[
    Class { name: "once", ..BASE },
    Class { name: "once, fences", ops: 4, fences: FENCES, ..BASE },
    Class { name: "once, updates apart", updates: Apart, ..BASE },
    Class { name: "once, updates apart, fences", ops: 4, updates: Apart, fences: FENCES, ..BASE },
    Class { name: "once, 3 threads", ..THREE },
    Class { name: "once, 3 threads, fences", fences: FENCES, ops: 3, ..THREE },
    Class { name: "once, 3 threads, updates apart", updates: Apart, ..THREE },
    Class { name: "once, SC fences", ops: 4, updates: Apart, fences: ALL_FENCES, loom: MayMiss, ..BASE },
    Class { name: "once, exchanges", updates: Apart, exchanges: true, loom: MayMiss, ..BASE },
    Class { name: "once, SC accesses", sc: true, loom: MayInvent, ..BASE },
    Class { name: "once, updates anywhere", updates: Anywhere, loom: MayBeWrong, ..BASE },
    Class { name: "again", ..AGAIN },
    Class { name: "again, 1 word", words: 1, programs: 30, ..AGAIN },
    Class { name: "again, updates apart", updates: Apart, ..AGAIN },
    Class { name: "again, updates anywhere", updates: Anywhere, ..AGAIN },
    Class { name: "again, SC fences", updates: Anywhere, fences: ALL_FENCES, ..AGAIN },
    Class {
        name: "again, everything",
        updates: Anywhere,
        exchanges: true,
        fences: ALL_FENCES,
        sc: true,
        ..AGAIN
    },
];

impl Class {
    fn generate(&self, random: &mut Random) -> Program {
        let mut value = 0;
        let updated: Vec<bool> = (0..self.words).map(|_| random.below(2) == 0).collect();
        (0..self.threads)
            .map(|_| {
                let mut words: Vec<usize> = (0..self.words).collect();
                let mut ops = Vec::new();
                for _ in 0..1 + random.below(self.ops).max(random.below(self.ops)) {
                    if !self.fences.is_empty() && random.below(10) < 3 {
                        ops.push(Op::Fence(random.one_of(self.fences)));
                    } else if !words.is_empty() {
                        let place = random.below(words.len());
                        let x = words[place];
                        if self.access == Access::Once {
                            words.remove(place);
                        }
                        value += 1;
                        ops.push(self.access(random, x, value, updated[x]));
                    }
                }
                ops
            })
            .collect()
    }

    fn access(&self, random: &mut Random, x: usize, value: u64, is_updated: bool) -> Op {
        let is_sc = self.sc && random.below(2) == 0;
        let mut order = |orders: &[Ordering]| if is_sc { SeqCst } else { random.one_of(orders) };
        let load = order(&[Relaxed, Acquire]);
        let store = order(&[Relaxed, Release]);
        let both = order(&[Relaxed, Acquire, Release, AcqRel]);
        let is_update = match self.updates {
            Updates::None => false,
            Updates::Apart => is_updated,
            Updates::Anywhere => random.below(2) == 0,
        };
        match random.below(if self.exchanges { 5 } else { 4 }) {
            0 | 1 => Op::Load(x, load),
            _ if !is_update => Op::Store(x, value, store),
            2 => Op::Swap(x, value, both),
            3 => Op::Add(x, 100, both),
            _ => {
                let expected = random.below(2) as u64 * (value - 1);
                Op::Cas { x, expected, new: value, success: both, failure: load, weak: false }
            }
        }
    }
}

/// Holds both worlds, and the axioms, against each other on random programs of a class.
fn compare(class: &Class, programs: usize) {
    let mut random = Random(number("ULOCKS_VM_SEED").unwrap_or(1));
    let mut seen = HashSet::new();
    for _ in 0..50 * programs {
        let program = class.generate(&mut random);
        if seen.len() == programs || !seen.insert(program.clone()) {
            continue;
        }
        let (ours, loom, allowed) = (by_machine(&program), by_loom(&program), axioms::outcomes(&program));
        let none = |from: &BTreeSet<Outcome>, without: &BTreeSet<Outcome>, what: &str| {
            let first = from.difference(without).next();
            assert!(first.is_none(), "{}: {what} {:?} of {program:#?}", class.name, first.expect("some"));
        };
        none(&allowed, &ours, "the machine misses");
        none(&ours, &allowed, "the machine invents");
        if matches!(class.loom, IsRight | MayInvent) {
            none(&ours, &loom, "loom misses");
        }
        if matches!(class.loom, IsRight | MayMiss) {
            none(&loom, &ours, "loom invents");
        }
    }
}

/// The number in the variable `name`, if it is set.
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text}: not a number")))
}

#[test]
fn random_programs() {
    for class in CLASSES {
        compare(class, number("ULOCKS_VM_FUZZ").map_or(class.programs, |n| n as usize));
    }
}

/// One program for each thing that loom is known not to do, or to do too much.
#[test]
fn known_programs() {
    let (load, store) = (|x| Op::Load(x, Relaxed), |x, value| Op::Store(x, value, Relaxed));
    let (add, swap) = (|x| Op::Add(x, 100, Relaxed), |x, value| Op::Swap(x, value, Relaxed));
    let cas = |x, expected, new| {
        let (success, failure) = (Relaxed, Relaxed);
        Op::Cas { x, expected, new, success, failure, weak: false }
    };
    let fence = Op::Fence(SeqCst);
    let (sc_load, sc_store) = (|x| Op::Load(x, SeqCst), |x, value| Op::Store(x, value, SeqCst));
    let outcome = |reads: [&[u64]; 2], last: &[u64]| Outcome {
        reads: reads.map(<[u64]>::to_vec).to_vec(),
        last: last.to_vec(),
    };
    let check = |what: &str, program: Program, outcome: Outcome, is_allowed: bool| {
        let does = |found: BTreeSet<Outcome>| found.contains(&outcome);
        assert_eq!(does(axioms::outcomes(&program)), is_allowed, "{what}: by the axioms");
        assert_eq!(does(by_machine(&program)), is_allowed, "{what}: by the machine");
        assert_eq!(does(by_loom(&program)), !is_allowed, "{what}: loom is right now");
    };
    check(
        "loom remembers one access to a word (#166)",
        vec![vec![load(0)], vec![load(0), store(0, 1)]],
        outcome([&[1], &[0]], &[1]),
        true,
    );
    check(
        "loom puts a store between the halves of an update (#254)",
        vec![vec![store(0, 1)], vec![add(0), load(1)]],
        outcome([&[], &[0, 0]], &[100, 0]),
        false,
    );
    check(
        "loom's modification order is not transitive",
        vec![vec![store(0, 1), store(0, 2)], vec![store(0, 3), load(0)]],
        outcome([&[], &[1]], &[1]),
        false,
    );
    check(
        "loom's update reads the newest value",
        vec![vec![store(0, 1), store(1, 1)], vec![load(1), swap(0, 2)]],
        outcome([&[], &[1, 0]], &[1, 1]),
        true,
    );
    check(
        "loom's exchange that fails reads the newest value",
        vec![vec![swap(0, 1), swap(1, 1)], vec![load(1), cas(0, 5, 6)]],
        outcome([&[0, 0], &[1, FAILED]], &[1, 1]),
        true,
    );
    check(
        "loom orders SC fences among themselves",
        vec![vec![load(0), fence, store(1, 3)], vec![store(1, 4), store(0, 6), fence]],
        outcome([&[6], &[]], &[6, 4]),
        true,
    );
    check(
        "loom's SC accesses are acquire and release (#180)",
        vec![vec![sc_store(0, 1), sc_load(1)], vec![sc_store(1, 1), sc_load(0)]],
        outcome([&[0], &[0]], &[1, 1]),
        false,
    );
}
