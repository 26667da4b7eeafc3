//! Random little programs.

use super::op::{ADDRESS, Op, Program};
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

    /// Whether something happens that does so `n` times in 10. Nothing is drawn if it never does.
    fn happens(&mut self, n: usize) -> bool {
        n > 0 && self.below(10) < n
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
    /// In 10: how many stores store an address, and how many accesses go where a read points to.
    pub(super) addresses: usize,
    /// In 10: how often a thread yields before an operation.
    pub(super) yields: usize,
    /// In 10: how many loads wait for a value that the program stores there.
    pub(super) waits: usize,
    pub(super) fence_orders: &'static [Ordering],
}

const ALL_FENCES: &[Ordering] = &[Acquire, Release, AcqRel, SeqCst, SeqCst, SeqCst];

pub(super) const TWO: Class = Class {
    name: "2 threads",
    threads: 2,
    ops: 4,
    words: 2,
    sc: 0,
    updates: 3,
    fences: 2,
    depends: 0,
    addresses: 0,
    yields: 0,
    waits: 0,
    fence_orders: ALL_FENCES,
};
const THREE: Class = Class { name: "3 threads", threads: 3, ops: 3, updates: 2, fences: 3, ..TWO };

#[rustfmt::skip]
pub(super) const CLASSES: &[Class] = &[
    TWO,
    Class { name: "2 threads, SC accesses", sc: 5, ..TWO },
    Class { name: "2 threads, SC fences", sc: 1, updates: 1, fences: 4, fence_orders: &[SeqCst], ..TWO },
    Class { name: "2 threads, other fences", updates: 1, fences: 4, fence_orders: &[Acquire, Release], ..TWO },
    THREE,
    Class { name: "3 threads, SC accesses", sc: 6, fences: 2, fence_orders: &[SeqCst], ..THREE },
    Class { name: "3 threads, nothing but SC", ops: 2, sc: 10, updates: 1, fences: 0, fence_orders: &[SeqCst], ..THREE },
    Class { name: "3 threads, 3 words", words: 3, sc: 3, updates: 1, ..THREE },
    Class { name: "4 threads", threads: 4, ops: 2, sc: 4, updates: 2, fence_orders: &[SeqCst], ..TWO },
];

const DEPENDENT: Class = Class { sc: 2, updates: 2, fences: 1, depends: 5, ..TWO };
const POINTED: Class = Class { sc: 2, updates: 2, fences: 1, addresses: 6, ..TWO };

/// Threads whose stores copy what they have read, that end where a condition does not hold, and
/// that go where an address leads that they have read.
#[rustfmt::skip]
pub(super) const DEPENDENTS: &[Class] = &[
    Class { name: "2 threads that depend", ..DEPENDENT },
    Class { name: "3 threads that depend", threads: 3, ops: 3, ..DEPENDENT },
    Class { name: "4 threads that depend", threads: 4, ops: 2, fence_orders: &[SeqCst], ..DEPENDENT },
    Class { name: "2 threads, addresses", words: 3, ..POINTED },
    Class { name: "3 threads, addresses", threads: 3, ops: 3, ..POINTED },
];

/// Threads that yield, and threads that wait. The memory knows neither.
#[rustfmt::skip]
#[allow(dead_code, reason = "for the exploration's tests")]
pub(super) const SCHEDULED: &[Class] = &[
    Class { name: "2 threads that yield", yields: 5, ..TWO },
    Class { name: "3 threads that yield", yields: 4, ..THREE },
    Class { name: "2 threads that wait", waits: 6, ..TWO },
    Class { name: "3 threads that wait", waits: 6, ..THREE },
    Class { name: "2 threads, all of it", depends: 2, addresses: 4, yields: 3, waits: 4, ..POINTED },
    Class { name: "3 threads, all of it", threads: 3, ops: 3, depends: 2, addresses: 4, yields: 3, waits: 4, ..POINTED },
];

pub(super) fn generate(random: &mut Random, class: Class) -> Program {
    let mut value = 0;
    let mut program: Program = (0..class.threads)
        .map(|_| {
            let ops = 1 + random.below(class.ops).max(random.below(class.ops));
            let (mut thread, mut reads) = (Vec::new(), 0);
            for _ in 0..ops {
                if random.happens(class.yields) {
                    thread.push(Op::Yield);
                }
                let depends = reads > 0 && random.happens(class.depends);
                let op = operation(random, class, &mut value);
                let points = reads > 0 && random.happens(class.addresses);
                let op = match op {
                    Op::Load(_, order) if points => Op::LoadAt(random.below(reads), order),
                    Op::Store(_, value, order) if points => Op::StoreAt(random.below(reads), value, order),
                    op => op,
                };
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
                reads += usize::from(op.returns());
            }
            thread
        })
        .collect();
    if class.waits > 0 {
        add_waits(&mut program, random, class);
    }
    program
}

/// Makes waits of loads, each for a value that another thread stores to the word.
fn add_waits(program: &mut Program, random: &mut Random, class: Class) {
    for t in 0..program.len() {
        for i in 0..program[t].len() {
            let Op::Load(x, order) = program[t][i] else { continue };
            let others = program.iter().enumerate().filter(|&(other, _)| other != t);
            let stored = others.flat_map(|(_, ops)| ops).filter_map(|op| match *op {
                Op::Store(word, value, _) | Op::Swap(word, value, _) if word == x => Some(value),
                Op::Cas { x: word, new, .. } if word == x => Some(new),
                _ => None,
            });
            let stored: Vec<u64> = stored.collect();
            if !stored.is_empty() && random.happens(class.waits) {
                program[t][i] = Op::Await(x, random.one_of(&stored), order);
            }
        }
    }
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
            // What is added to an address is none.
            1 if class.addresses == 0 => Op::Add(x, 100, both),
            0 | 1 => Op::Swap(x, *value, both),
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
    if random.below(2) == 0 {
        return Op::Load(x, load);
    }
    let is_address = random.happens(class.addresses);
    let stored = if is_address { ADDRESS + random.below(class.words) as u64 } else { *value };
    Op::Store(x, stored, store)
}
