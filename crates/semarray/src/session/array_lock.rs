//! `C`: what belongs to an array as a whole, and the mutex for it.
//!
//! | word | meaning |
//! |---|---|
//! | 0 | free |
//! | 1 | taken |
//! | 2 | taken, and somebody may sleep for it |
//!
//! The mutex is Molnar's of 2005: whoever has slept takes it as 2, so the mark is never lost (law
//! 5). It is released by an exchange, and whoever it wakes is woken when the cells are published
//! too.

use crate::node::Node;
use core::ptr;
use ulocks_core::futex::{self, Futex, FutexKey};
use ulocks_core::spin::{self, Look};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::UnsafeCell;
use ulocks_core::{Private, spin::Patience};

/// What is done with `C` takes microseconds at most, unless its holder is preempted.
type Briefly = Private<Patience<5_000>>;

pub(crate) struct ArrayLock {
    word: Futex<futex::Private>,
    /// The oldest and the youngest of the sets that have slept too long.
    pub(super) aged: UnsafeCell<(*const Node, *const Node)>,
}

impl ArrayLock {
    pub fn new() -> Self {
        Self { word: Futex::new(0), aged: UnsafeCell::new((ptr::null(), ptr::null())) }
    }

    /// (A1)
    pub fn lock(&self) {
        if self.word.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
            return;
        }
        let free =
            || self.word.load(Relaxed) == 0 && self.word.compare_exchange(0, 1, Acquire, Relaxed).is_ok();
        if spin::closely::<Briefly>(|| if free() { Look::Acquired } else { Look::Taken }) {
            return;
        }
        while self.word.swap(2, Acquire) != 0 {
            self.word.wait(2, None);
        }
    }

    /// (A2): where one is to be woken, if somebody may sleep for `C`.
    pub fn unlock_without_waking(&self) -> Option<FutexKey<futex::Private>> {
        let key = self.word.key();
        (self.word.swap(0, Release) == 2).then_some(key)
    }

    /// Whether nobody has `C`, and there are no elders.
    pub fn is_at_rest(&self) -> bool {
        self.word.load(Relaxed) == 0 && self.oldest_aged().is_null()
    }
}
