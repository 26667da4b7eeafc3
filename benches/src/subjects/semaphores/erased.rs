//! Semaphores without their type, and the loops that are compiled for each.

use super::{Array, Block, Semaphores, Singles};
use crate::subjects::laps::Lap;
use anyhow::Result;
use std::hint::black_box;
use std::time::Instant;
use ulocks_semarray::Op;

/// What takes sets.
pub(super) struct Sets<A>(pub A);

/// What has one semaphore at a time.
pub(super) struct OneByOne<S>(pub S);

fn converted<A: Array>(set: &[Op]) -> Vec<A::Op> {
    set.iter().map(|&op| A::op(op)).collect()
}

impl<A: Array> Singles for Sets<A> {
    #[inline]
    fn down(&self, index: usize) {
        self.0.apply(&[A::op(Op::sub(index, 1))]);
    }

    #[inline]
    fn up(&self, index: usize) {
        self.0.apply(&[A::op(Op::add(index, 1))]);
    }

    fn values(&self) -> Result<Vec<u32>> {
        self.0.values()
    }
}

impl<A: Array> Semaphores for Sets<A> {
    fn set<'a>(&'a self, set: &[Op]) -> Box<dyn Fn() + 'a> {
        let set = converted::<A>(set);
        Box::new(move || self.0.apply(&set))
    }

    fn poster<'a>(&'a self, per_call: usize) -> Box<dyn FnMut(&[usize]) -> u64 + 'a> {
        let mut set = Vec::with_capacity(per_call);
        Box::new(move |semaphores| {
            for some in semaphores.chunks(per_call) {
                set.clear();
                set.extend(some.iter().map(|&index| A::op(Op::add(index, 1).no_wait())));
                self.0.apply(&set);
            }
            semaphores.len().div_ceil(per_call) as u64
        })
    }

    fn turns(&self, first: &[Op], second: &[Op], lap: &mut Lap<'_>) {
        if let ([first], [second]) = (first, second) {
            return one_and_one(self, *first, *second, lap);
        }
        let (first, second) = (converted::<A>(first), converted::<A>(second));
        lap.run(|| {
            self.0.apply(&first);
            self.0.apply(&second);
        });
    }

    fn block(self: Box<Self>, ops: u32, one_by_one: bool) -> Option<Block> {
        if one_by_one || ops == 1 {
            return Some(single(*self, ops));
        }
        let of = |op: fn(usize, u32) -> Op| (0..ops as usize).map(|i| A::op(op(i, 1))).collect::<Vec<_>>();
        let (take, give) = (of(Op::sub), of(Op::add));
        Some(Box::new(move || {
            let array = black_box(&self.0);
            timed(BLOCK / ops, || {
                array.apply(black_box(&take));
                array.apply(black_box(&give));
            })
        }))
    }

    fn values(&self) -> Result<Vec<u32>> {
        self.0.values()
    }
}

impl<S: Singles> Semaphores for OneByOne<S> {
    fn set<'a>(&'a self, set: &[Op]) -> Box<dyn Fn() + 'a> {
        let set = set.to_vec();
        let one = |op: &Op| if op.change() < 0 { self.0.down(op.index()) } else { self.0.up(op.index()) };
        Box::new(move || set.iter().for_each(one))
    }

    fn poster<'a>(&'a self, _: usize) -> Box<dyn FnMut(&[usize]) -> u64 + 'a> {
        Box::new(|semaphores| {
            semaphores.iter().for_each(|&index| self.0.up(index));
            semaphores.len() as u64
        })
    }

    fn turns(&self, first: &[Op], second: &[Op], lap: &mut Lap<'_>) {
        if let ([first], [second]) = (first, second) {
            return one_and_one(&self.0, *first, *second, lap);
        }
        let (first, second) = (self.set(first), self.set(second));
        lap.run(|| {
            first();
            second();
        });
    }

    fn block(self: Box<Self>, ops: u32, one_by_one: bool) -> Option<Block> {
        if one_by_one || ops == 1 { Some(single(self.0, ops)) } else { self.0.sets(ops) }
    }

    fn values(&self) -> Result<Vec<u32>> {
        self.0.values()
    }
}

/// Two single operations by turns, one of which takes what the other gives.
fn one_and_one(s: &impl Singles, first: Op, second: Op, lap: &mut Lap<'_>) {
    let (a, b) = (first.index(), second.index());
    if first.change() < 0 {
        lap.run(|| {
            s.down(a);
            s.up(b);
        });
    } else {
        lap.run(|| {
            s.up(a);
            s.down(b);
        });
    }
}

/// Operations of a block: pairs of sets by operations of a set. Some tens of microseconds, far from
/// what a clock read takes and from a time slice.
pub(super) const BLOCK: u32 = 4_000;

/// The time of so many pairs, for one of them, in nanoseconds.
#[inline]
pub(super) fn timed(times: u32, mut pair: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..times {
        pair();
    }
    start.elapsed().as_nanos() as f64 / f64::from(times)
}

/// One operation on each of so many semaphores, and then its opposite on each.
fn single(s: impl Singles, semaphores: u32) -> Block {
    Box::new(move || {
        let s = black_box(&s);
        let rounds = timed(BLOCK / semaphores, || {
            (0..semaphores as usize).for_each(|index| s.down(index));
            (0..semaphores as usize).for_each(|index| s.up(index));
        });
        rounds / f64::from(semaphores)
    })
}
