//! The numbers of atomics that are narrower than a number would have to be.
//!
//! The bytes of an atomic hold the number of its history, so that an atomic may be moved, and may
//! lie in a page that is mapped twice. In one byte there is room for 255 numbers. Up to so many
//! atomics at a time, each has a number of its own. What ended gives its number back, and numbers
//! are taken again as late as possible. Beyond that, atomics share a number, and those that share
//! one are told apart by their addresses:
//!
//! 1. An atomic that was never used has no address yet. Of those with one number, all were made by
//!    one thread and hold one value, so which is which makes no difference but for the moment at
//!    which they were made. The oldest is taken first.
//! 2. At its first use an atomic is bound to its address.
//! 3. An atomic that shares its number must not be moved after its first use.

use crate::memory::Loc;
use std::collections::VecDeque;

/// The thread that made an atomic, and the value; `None` if it was zeroed memory, and so is used
/// at once.
pub(super) type Class = Option<(usize, u64)>;

struct Named {
    loc: Loc,
    class: Class,
    address: Option<usize>,
    has_ended: bool,
}

/// The atomics of `BITS` bits.
#[derive(Default)]
pub(super) struct Narrow<const BITS: u32> {
    /// By number, without the shift of the run.
    named: Vec<Vec<Named>>,
    /// Numbers that no atomic has, longest free first.
    free: VecDeque<usize>,
}

impl<const BITS: u32> Narrow<BITS> {
    /// Numbers that are not 0.
    const COUNT: usize = (1 << BITS) - 1;

    /// Gives `loc` a number.
    pub(super) fn number(&mut self, loc: Loc, class: Class, run: u64) -> u64 {
        let named = Named { loc, class, address: None, has_ended: false };
        let index = if self.named.len() < Self::COUNT {
            self.named.push(vec![]);
            self.named.len() - 1
        } else if let Some(index) = self.free.pop_front() {
            self.named[index].clear();
            index
        } else {
            let fits = |one: &Named| one.has_ended || one.address.is_some() || one.class == class;
            let fitting = (0..self.named.len()).filter(|&index| self.named[index].iter().all(fits));
            let fewest = fitting.min_by_key(|&index| self.named[index].len());
            fewest.expect("too many atomics of one or two bytes that were made and never used")
        };
        self.named[index].push(named);
        // Numbers differ from run to run, so that a word that outlived its run is noticed.
        1 + (index as u64 + run) % Self::COUNT as u64
    }

    /// The history of the atomic at `address` whose bytes hold `bits`.
    pub(super) fn find(&mut self, bits: u64, address: usize, run: u64) -> Option<Loc> {
        let count = Self::COUNT as u64;
        let index = (bits.checked_sub(1)? + count - run % count) % count;
        let all = self.named.get_mut(index as usize)?;
        let is_here = |one: &Named| !one.has_ended && one.address == Some(address);
        let is_new = |one: &Named| !one.has_ended && one.address.is_none();
        let chosen = match all.len() {
            1 => 0,
            _ => all.iter().position(is_here).or_else(|| all.iter().position(is_new))?,
        };
        let chosen = all.get_mut(chosen)?;
        chosen.address = Some(address);
        Some(chosen.loc)
    }

    /// The atomic has ended. Its number still leads to it, until another atomic takes the number.
    pub(super) fn end(&mut self, loc: Loc) {
        for (index, all) in self.named.iter_mut().enumerate() {
            if let Some(one) = all.iter_mut().find(|one| one.loc == loc) {
                one.has_ended = true;
                if all.iter().all(|one| one.has_ended) {
                    self.free.push_back(index);
                }
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::explore::{Config, explore};
    use crate::sync::Ordering::Relaxed;
    use crate::sync::{AtomicBool, AtomicI8, AtomicU8, AtomicU16};

    #[test]
    fn three_hundred_flags_keep_their_values() {
        explore(Config::sampled(3), || {
            let flags: Vec<_> = (0..300).map(|_| AtomicBool::new(false)).collect();
            for (i, flag) in flags.iter().enumerate() {
                flag.store(i % 2 == 0, Relaxed);
            }
            for (i, flag) in flags.iter().enumerate() {
                assert_eq!(flag.load(Relaxed), i % 2 == 0, "flag {i}");
            }
        });
    }

    #[test]
    fn one_after_the_other_there_is_no_limit() {
        explore(Config::sampled(3), || {
            for i in 0..1_000 {
                let byte = AtomicU8::new(i as u8);
                let half = AtomicU16::new(i);
                assert_eq!((byte.load(Relaxed), half.load(Relaxed)), (i as u8, i));
            }
        });
    }

    #[test]
    fn bytes_with_many_values_are_told_apart() {
        explore(Config::sampled(3), || {
            let bytes: Vec<_> = (0..1_000).map(|i| AtomicI8::new((i % 100) as i8)).collect();
            for round in 0..2 {
                for (i, byte) in bytes.iter().enumerate() {
                    assert_eq!(byte.fetch_add(1, Relaxed), (i % 100) as i8 + round);
                }
            }
        });
    }
}
