//! Random little programs, class by class, in both worlds and before the axioms.

use crate::axioms;
use crate::program::{FAILED, Op, Outcome, Program, by_interleaving, by_loom, by_machine};
use core::fmt;
use core::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::collections::{BTreeSet, HashSet};
use std::time::Instant;

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

/// What was found in a class.
#[derive(Default)]
struct Tally {
    programs: usize,
    outcomes: usize,
    equal: usize,
    /// Programs of which loom misses an outcome, and of these those of which it misses one of
    /// interleaving.
    missed: usize,
    missed_interleaving: usize,
    /// Programs of which it reaches an outcome that there is not.
    invented: usize,
    executions: [u64; 2],
    seconds: [f64; 2],
    /// The shortest program of which loom misses an outcome, and the shortest with one too many.
    examples: [Option<Example>; 2],
}

/// A program on which loom is wrong, and an outcome that it misses or invents.
struct Example(Program, Outcome);

impl Example {
    fn keep_shorter(slot: &mut Option<Self>, program: &Program, outcome: Option<&Outcome>) {
        let length = |program: &Program| program.iter().map(Vec::len).sum::<usize>();
        if let Some(outcome) = outcome
            && slot.as_ref().is_none_or(|shortest| length(program) < length(&shortest.0))
        {
            *slot = Some(Self(program.clone(), outcome.clone()));
        }
    }
}

impl fmt::Display for Example {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(program, outcome) = self;
        let threads: Vec<String> = program
            .iter()
            .map(|ops| ops.iter().map(|op| format!("{op:?}")).collect::<Vec<_>>().join("; "))
            .collect();
        write!(f, "{outcome:?} of {}", threads.join(" || "))
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>8} {:>8} {:>6} {:>12} {:>12} {:>8} {:>10} {:>10} {:>7.2} {:>6.2}",
            self.programs,
            self.outcomes,
            self.equal,
            self.missed,
            self.missed_interleaving,
            self.invented,
            self.executions[0],
            self.executions[1],
            self.seconds[0],
            self.seconds[1],
        )
    }
}

type Outcomes = BTreeSet<Outcome>;

fn timed(seconds: &mut f64, run: impl FnOnce() -> (Outcomes, u64)) -> (Outcomes, u64) {
    let start = Instant::now();
    let found = run();
    *seconds += start.elapsed().as_secs_f64();
    found
}

fn compare(class: &Class, programs: usize) -> Tally {
    let mut random = Random(number("ULOCKS_VM_SEED").unwrap_or(1));
    let (mut tally, mut seen) = (Tally::default(), HashSet::new());
    let mut left = 50 * programs;
    while tally.programs < programs && left > 0 {
        left -= 1;
        let program = class.generate(&mut random);
        if !seen.insert(program.clone()) {
            continue;
        }
        let [mut ours_s, mut loom_s] = tally.seconds;
        let (ours, executions) = timed(&mut ours_s, || by_machine(&program));
        let (loom, looms_executions) = timed(&mut loom_s, || by_loom(&program));
        tally.seconds = [ours_s, loom_s];
        tally.executions[0] += executions;
        tally.executions[1] += looms_executions;

        let allowed = axioms::outcomes(&program);
        let none = |from: &Outcomes, without: &Outcomes, what: &str| {
            let first = from.difference(without).next();
            assert!(first.is_none(), "{}: {what} {:?} of {program:#?}", class.name, first.expect("some"));
        };
        none(&allowed, &ours, "the machine misses");
        none(&ours, &allowed, "the machine invents");
        let interleaved = by_interleaving(&program);
        none(&interleaved, &ours, "the machine misses, by interleaving,");

        if matches!(class.loom, IsRight | MayInvent) {
            none(&ours, &loom, "loom misses");
        }
        if matches!(class.loom, IsRight | MayMiss) {
            none(&loom, &ours, "loom invents");
        }
        tally.programs += 1;
        let [missed, invented] = &mut tally.examples;
        Example::keep_shorter(missed, &program, ours.difference(&loom).next());
        Example::keep_shorter(invented, &program, loom.difference(&ours).next());
        tally.outcomes += ours.len();
        tally.equal += usize::from(loom == ours);
        tally.missed += usize::from(!loom.is_superset(&ours));
        tally.missed_interleaving += usize::from(!loom.is_superset(&interleaved));
        tally.invented += usize::from(!loom.is_subset(&ours));
    }
    tally
}

/// The number in the variable `name`, if it is set.
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text}: not a number")))
}

#[test]
fn random_programs() {
    println!(
        "{:<30} {:>8} {:>8} {:>6} {:>12} {:>12} {:>8} {:>10} {:>10} {:>7} {:>6}",
        "", "", "", "loom", "", "misses an", "", "executions", "executions", "s", "s"
    );
    println!(
        "{:<30} {:>8} {:>8} {:>6} {:>12} {:>12} {:>8} {:>10} {:>10} {:>7} {:>6}",
        "class",
        "programs",
        "outcomes",
        "right",
        "misses",
        "interleaving",
        "invents",
        "machine",
        "loom",
        "machine",
        "loom"
    );
    for class in CLASSES {
        let programs = number("ULOCKS_VM_FUZZ").map_or(class.programs, |n| n as usize);
        let tally = compare(class, programs);
        println!("{:<30} {tally}", class.name);
        for (what, example) in ["misses", "invents"].into_iter().zip(&tally.examples) {
            if let Some(example) = example {
                println!("    loom {what} {example}");
            }
        }
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
        let does = |found: Outcomes| found.contains(&outcome);
        assert_eq!(does(axioms::outcomes(&program)), is_allowed, "{what}: by the axioms");
        assert_eq!(does(by_machine(&program).0), is_allowed, "{what}: by the machine");
        assert_eq!(does(by_loom(&program).0), !is_allowed, "{what}: loom is right now");
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
