//! Random little programs: the memory and the axioms give the same outcomes.

use super::super::Memory;
use super::axioms;
use super::program::{Op, Program, explore};
use core::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

pub(super) struct Random(pub(super) u64);

impl Random {
    /// SplitMix64.
    pub(super) fn below(&mut self, n: usize) -> usize {
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

/// What programs are made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Class {
    pub(super) name: &'static str,
    pub(super) threads: usize,
    pub(super) ops: usize,
    pub(super) words: usize,
    /// In 10: how many accesses are SC.
    pub(super) sc: usize,
    pub(super) updates: usize,
    pub(super) fences: usize,
    /// In 10: how often a condition stands before an operation, or a store copies what was read.
    pub(super) depends: usize,
    pub(super) fence_orders: &'static [Ordering],
}

const ALL_FENCES: &[Ordering] = &[Acquire, Release, AcqRel, SeqCst, SeqCst, SeqCst];

#[rustfmt::skip]
pub(super) const CLASSES: &[Class] = &[
    Class { name: "2 threads", threads: 2, ops: 4, words: 2, sc: 0, updates: 3, fences: 2, fence_orders: ALL_FENCES, depends: 0 },
    Class { name: "2 threads, SC accesses", threads: 2, ops: 4, words: 2, sc: 5, updates: 3, fences: 2, fence_orders: ALL_FENCES, depends: 0 },
    Class { name: "2 threads, SC fences", threads: 2, ops: 4, words: 2, sc: 1, updates: 1, fences: 4, fence_orders: &[SeqCst], depends: 0 },
    Class { name: "2 threads, other fences", threads: 2, ops: 4, words: 2, sc: 0, updates: 1, fences: 4, fence_orders: &[Acquire, Release], depends: 0 },
    Class { name: "3 threads", threads: 3, ops: 3, words: 2, sc: 0, updates: 2, fences: 3, fence_orders: ALL_FENCES, depends: 0 },
    Class { name: "3 threads, SC accesses", threads: 3, ops: 3, words: 2, sc: 6, updates: 2, fences: 2, fence_orders: &[SeqCst], depends: 0 },
    Class { name: "3 threads, nothing but SC", threads: 3, ops: 2, words: 2, sc: 10, updates: 1, fences: 0, fence_orders: &[SeqCst], depends: 0 },
    Class { name: "3 threads, 3 words", threads: 3, ops: 3, words: 3, sc: 3, updates: 1, fences: 3, fence_orders: ALL_FENCES, depends: 0 },
    Class { name: "4 threads", threads: 4, ops: 2, words: 2, sc: 4, updates: 2, fences: 2, fence_orders: &[SeqCst], depends: 0 },
];

/// Threads whose stores copy what they have read, and that end where a condition does not hold.
#[rustfmt::skip]
pub(super) const DEPENDENT: &[Class] = &[
    Class { name: "2 threads that depend", threads: 2, ops: 4, words: 2, sc: 2, updates: 2, fences: 1, fence_orders: ALL_FENCES, depends: 5 },
    Class { name: "3 threads that depend", threads: 3, ops: 3, words: 2, sc: 2, updates: 2, fences: 1, fence_orders: ALL_FENCES, depends: 5 },
    Class { name: "4 threads that depend", threads: 4, ops: 2, words: 2, sc: 2, updates: 2, fences: 1, fence_orders: &[SeqCst], depends: 5 },
];

/// Whether to leave out the twins: where there are many interleavings.
pub(super) fn cut_twins(program: &Program) -> bool {
    let (mut interleavings, mut length) = (1.0, 0.0);
    for ops in program {
        for n in 1..=ops.len() {
            length += 1.0;
            interleavings *= length / n as f64;
        }
    }
    interleavings > 100.0
}

pub(super) fn generate(random: &mut Random, class: Class) -> Program {
    let mut value = 0;
    (0..class.threads)
        .map(|_| {
            let ops = 1 + random.below(class.ops).max(random.below(class.ops));
            let (mut thread, mut reads) = (Vec::new(), 0);
            for _ in 0..ops {
                let depends = reads > 0 && class.depends > 0 && random.below(10) < class.depends;
                let op = operation(random, class, &mut value);
                match op {
                    Op::Store(x, _, order) if depends => thread.push(Op::Copy(x, random.below(reads), order)),
                    op if depends => {
                        // The value is one of the program, or the initial one: else it never holds.
                        let read = random.below(reads);
                        let wanted = random.below(2) * random.below(value as usize);
                        thread.extend([Op::If(read, wanted as u64), op]);
                    }
                    op => thread.push(op),
                }
                reads += usize::from(!matches!(op, Op::Store(..) | Op::Fence(_)));
            }
            thread
        })
        .collect()
}

fn operation(random: &mut Random, class: Class, value: &mut u64) -> Op {
    let x = random.below(class.words);
    *value += 1;
    let is_sc = random.below(10) < class.sc;
    let mut order = |orders: &[Ordering]| if is_sc { SeqCst } else { random.one_of(orders) };
    let (load, store, both) =
        (order(&[Relaxed, Acquire]), order(&[Relaxed, Release]), order(&[Relaxed, Acquire, Release, AcqRel]));
    let kind = random.below(10);
    if kind < class.fences {
        return Op::Fence(random.one_of(class.fence_orders));
    }
    if kind < class.fences + class.updates {
        return match random.below(4) {
            0 => Op::Swap(x, *value, both),
            1 => Op::Add(x, 100, both),
            _ => Op::Cas {
                x,
                expected: random.below(2) as u64 * (*value - 1),
                new: *value,
                success: both,
                failure: load,
                weak: random.below(3) == 0,
            },
        };
    }
    if random.below(2) == 0 { Op::Load(x, load) } else { Op::Store(x, *value, store) }
}

/// How many programs of each class: enough to catch every planted bug, in a few seconds.
fn budget() -> usize {
    let default = if cfg!(debug_assertions) { 200 } else { 600 };
    std::env::var("ULOCKS_VM_FUZZ").map_or(default, |n| n.parse().expect("ULOCKS_VM_FUZZ is a number"))
}

/// A memory without room between labels, without patience with old SC events, and whose slots were
/// all used before.
pub(super) fn worn() -> Memory {
    let at = core::panic::Location::caller();
    let mut memory = Memory::strange(2, 0);
    let thread = memory.spawn(None);
    for value in 0..70 {
        let loc = memory.create(thread, value, at);
        memory.store(thread, loc, 1, Relaxed, at, &mut |_, _| 0).expect("no fault");
        memory.retire(thread, loc, true, at).expect("no fault");
    }
    memory.end(thread);
    memory
}

#[test]
fn random_programs_do_what_the_axioms_allow() {
    let seed = std::env::var("ULOCKS_VM_SEED").map_or(1, |n| n.parse().expect("ULOCKS_VM_SEED is a number"));
    for &class in CLASSES.iter().chain(DEPENDENT) {
        let mut random = Random(seed);
        let start = std::time::Instant::now();
        let (mut machine_time, mut outcomes, mut most) = (core::time::Duration::ZERO, 0, 0);
        for n in 0..budget() {
            let program = generate(&mut random, class);
            let begun = std::time::Instant::now();
            let memory = || match n % 8 {
                0 => worn(),
                1..4 => Memory::strange(2, 0),
                _ => Memory::new(),
            };
            let (machine, _) = explore(&program, memory, cut_twins(&program));
            machine_time += begun.elapsed();
            let allowed = axioms::outcomes(&program);
            outcomes += allowed.len();
            most = most.max(allowed.len());
            assert_eq!(
                machine.difference(&allowed).next(),
                None,
                "{} {n}: the memory invents an outcome of {program:#?}",
                class.name
            );
            assert_eq!(
                allowed.difference(&machine).next(),
                None,
                "{} {n}: the memory misses an outcome of {program:#?}",
                class.name
            );
        }
        println!(
            "{}: {} programs, {outcomes} outcomes, at most {most}; {:.2?}, of which the memory {machine_time:.2?}",
            class.name,
            budget(),
            start.elapsed()
        );
    }
}
