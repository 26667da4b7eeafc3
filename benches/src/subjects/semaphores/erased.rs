//! Semaphores without their type, and the loops that are compiled for each.

use super::{Array, Block, Poster, Semaphores};
use crate::subjects::laps::Lap;
use crate::subjects::locks::time;
use std::hint::black_box;
use ulocks_semarray::Op;

fn converted<A: Array>(set: &[Op]) -> Vec<A::Op> {
    set.iter().map(|&op| op.into()).collect()
}

#[inline]
fn perform<A: Array>(array: &A, op: Op) {
    array.apply(&[op.into()]);
}

impl<A: Array> Semaphores for A {
    fn set<'a>(&'a self, set: &[Op]) -> Box<dyn Fn() + 'a> {
        let set = converted::<A>(set);
        Box::new(move || self.apply(&set))
    }

    fn poster(&self, per_call: usize) -> Poster<'_> {
        let mut set = Vec::with_capacity(per_call);
        Box::new(move |semaphores| {
            for some in semaphores.chunks(per_call) {
                set.clear();
                set.extend(some.iter().map(|&index| A::Op::from(Op::add(index, 1).no_wait())));
                self.apply(&set);
            }
            semaphores.len().div_ceil(per_call) as u64
        })
    }

    fn turns(&self, first: &[Op], second: &[Op], lap: &mut Lap<'_>) {
        // Single operations as a program has them: it knows which they are.
        match (first, second) {
            ([a], [b]) if (a.change(), b.change()) == (-1, 1) => lap.run(|| {
                perform(self, Op::sub(a.index(), 1));
                perform(self, Op::add(b.index(), 1));
            }),
            _ => {
                let (first, second) = (converted::<A>(first), converted::<A>(second));
                lap.run(|| {
                    self.apply(&first);
                    self.apply(&second);
                });
            }
        }
    }

    fn block(self: Box<Self>, ops: u32, one_by_one: bool) -> Option<Block> {
        if one_by_one || ops == 1 {
            return Some(Box::new(move || {
                let array = black_box(&*self);
                let round = timed(BLOCK / ops, || {
                    (0..ops as usize).for_each(|index| perform(array, Op::sub(index, 1)));
                    (0..ops as usize).for_each(|index| perform(array, Op::add(index, 1)));
                });
                round / f64::from(ops)
            }));
        }
        let of =
            |op: fn(usize, u32) -> Op| (0..ops as usize).map(|i| A::Op::from(op(i, 1))).collect::<Vec<_>>();
        let (take, give) = (of(Op::sub), of(Op::add));
        let block = move || {
            let array = black_box(&*self);
            timed(BLOCK / ops, || array.pair(black_box(&take), black_box(&give)))
        };
        A::SETS.then_some(Box::new(block))
    }

    fn values(&self) -> Vec<u32> {
        Array::values(self)
    }
}

/// Operations of a block: pairs of sets by operations of a set. Some tens of microseconds, far from
/// what a clock read takes and from a time slice.
const BLOCK: u32 = 4_000;

/// The time of so many pairs, for one of them, in nanoseconds.
#[inline]
fn timed(times: u32, pair: impl FnMut()) -> f64 {
    time(times, pair).as_nanos() as f64 / f64::from(times)
}
