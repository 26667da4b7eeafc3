//! Sets that no other thread stands in the way of: taken and given back, by turns with those that
//! are compared with them.
//!
//! One thread, all subjects in one process, in blocks of some hundred microseconds by turns, as
//! [uncontended locks](crate::workloads::uncontended) are.

use super::uncontended::{Pairs, Run, timed};
use crate::subjects::semaphores::arrays::{Array, Kernel, Ours, Posix, Singles};
use crate::subjects::semaphores::{self, Made};
use anyhow::{Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::ops::Range;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Sets and their opposites.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Sets {
    /// Operations of a set; the set of one is a single operation.
    pub ops: u32,
    /// Single operations instead, each on the next of so many semaphores.
    pub one_by_one: bool,
}

/// Operations of a block: pairs of sets by operations of a set.
const BLOCK: u32 = 4_000;

impl Pairs for Sets {
    fn block(&self, name: &str) -> Result<Run> {
        let Self { ops, one_by_one } = *self;
        ensure!((1..=500).contains(&ops), "sets of {ops}; allowed: 1 to 500 operations");
        let entry = semaphores::Entry::find(name)?;
        let values = vec![1; ops as usize];
        let singly = ops == 1 || one_by_one;
        match entry.made_of {
            Made::Kernel if singly => Ok(single(Kernel::new(&values)?, ops)),
            Made::Ours(fairness) if singly => Ok(single(Ours::new(&values, fairness)?, ops)),
            Made::Posix if singly => Ok(single(Posix::new(&values)?, ops)),
            Made::Floor if singly => Ok(single(Words::new(&values), ops)),
            Made::Kernel => Ok(several(Kernel::new(&values)?, ops)),
            Made::Ours(fairness) => Ok(several(Ours::new(&values, fairness)?, ops)),
            Made::Floor => Ok(locked_words(Words::new(&values), ops)),
            _ => bail!("'{name}' does not take sets"),
        }
    }
}

/// One operation on each of so many semaphores, and then its opposite on each.
fn single(s: impl Singles + 'static, semaphores: u32) -> Run {
    Box::new(move || {
        let s = black_box(&s);
        let rounds = timed(BLOCK / semaphores, || {
            (0..semaphores as usize).for_each(|index| s.down(index));
            (0..semaphores as usize).for_each(|index| s.up(index));
        });
        rounds / f64::from(semaphores)
    })
}

/// Words each on a line of its own, and nothing else: what semaphores in user space come to at
/// least.
struct Words(Box<[Word]>);

#[repr(align(64))]
struct Word(AtomicU32);

impl Words {
    fn new(values: &[u32]) -> Self {
        Self(values.iter().map(|&value| Word(AtomicU32::new(value << 1))).collect())
    }

    fn add(&self, index: usize, change: u32) {
        let word = &self.0[index].0;
        let mut now = word.load(Relaxed);
        while let Err(other) = word.compare_exchange_weak(now, now.wrapping_add(change), AcqRel, Relaxed) {
            now = other;
        }
    }
}

impl Singles for Words {
    fn down(&self, index: usize) {
        self.add(index, 0u32.wrapping_sub(2));
    }

    fn up(&self, index: usize) {
        self.add(index, 2);
    }

    fn poster(&self, semaphores: Range<usize>) -> Box<dyn FnMut() + '_> {
        Box::new(move || semaphores.clone().for_each(|index| self.up(index)))
    }

    fn values(&self) -> Result<Vec<u32>> {
        Ok(self.0.iter().map(|word| word.0.load(Relaxed) >> 1).collect())
    }
}

/// A bit set in each word of a set by a compare-exchange that changes its value too, and cleared in
/// each by a store.
fn locked_words(words: Words, ops: u32) -> Run {
    Box::new(move || {
        let words = black_box(&words.0[..ops as usize]);
        let perform = |change: u32| {
            for Word(word) in words {
                let now = word.load(Relaxed);
                let _ = word.compare_exchange(now, now.wrapping_add(change) | 1, Acquire, Relaxed);
            }
            for Word(word) in words {
                word.store(word.load(Relaxed) & !1, Release);
            }
        };
        timed(BLOCK / ops, || {
            perform(0u32.wrapping_sub(2));
            perform(2);
        })
    })
}

/// A set and its opposite.
fn several<A: Array>(array: A, ops: u32) -> Run {
    let of = |op: fn(usize, u32) -> A::Op| (0..ops as usize).map(|i| op(i, 1)).collect::<Vec<_>>();
    let (take, give) = (of(A::sub), of(A::add));
    Box::new(move || {
        let array = black_box(&array);
        timed(BLOCK / ops, || {
            array.apply(black_box(&take));
            array.apply(black_box(&give));
        })
    })
}
