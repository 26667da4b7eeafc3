//! What the lock protects: variables that are all equal whenever no thread writes.
//!
//! A reader checks that they are, a writer checks and then sets all of them to the low bits of the
//! cycle counter, as in the seed. So every run is a test of the lock as well.

use crate::run::clock;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// The seed's NR_VARS.
pub const COUNT: usize = 100;

/// The variables. Relaxed atomics: under a lock that works no test can tell them from plain ones,
/// and under one that does not, a torn state is counted rather than undefined.
#[derive(Debug)]
pub struct SharedData([AtomicU32; COUNT]);

impl SharedData {
    /// All equal.
    pub const fn new() -> Self {
        Self([const { AtomicU32::new(0) }; COUNT])
    }

    /// Whether all are equal.
    #[inline]
    pub fn are_equal(&self) -> bool {
        let first = self.0[0].load(Relaxed);
        self.0.iter().fold(true, |equal, var| equal & (var.load(Relaxed) == first))
    }

    /// Checks, and gives all of them another value; says whether they were equal.
    #[inline]
    pub fn change(&self) -> bool {
        let equal = self.are_equal();
        let value = clock::now() as u32;
        self.0.iter().for_each(|var| var.store(value, Relaxed));
        equal
    }
}
