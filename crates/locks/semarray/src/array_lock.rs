//! The array lock: a mutex that excludes all other sessions with it, and guards what belongs to the
//! array as a whole.
//!
//! | word | meaning |
//! |---|---|
//! | 0 | free |
//! | 1 | locked |
//! | 2 | locked, and a thread may sleep for it |
//!
//! This is Molnar's mutex of 2005. A thread that has slept locks it as 2, so the mark is never lost
//! (law 5). The release is an exchange (release array lock). The sleeper that it finds is woken
//! later, when the cells are published, too.

use crate::node::{AGED, List, Node};
use ulocks_core::futex::{self, Futex, FutexKey};
use ulocks_core::spin::{self, Look};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::{UnsafeCell, without_unwinding};
use ulocks_core::{Private, spin::Patience};

/// The lock is held for microseconds at most, unless its holder is preempted.
type Briefly = Private<Patience<5_000>>;

/// The mutex, and the list of aged sets (`session/aged.rs`).
pub(crate) struct ArrayLock {
    word: Futex<futex::Local>,
    aged: UnsafeCell<List<AGED>>,
}

impl ArrayLock {
    pub fn new() -> Self {
        Self { word: Futex::new(0), aged: UnsafeCell::new(List::new()) }
    }

    /// (take array lock): takes the lock.
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
            // No call of an array panics, whether others depend on its thread or not.
            without_unwinding(|| self.word.wait(2, None));
        }
    }

    /// (release array lock): releases the lock. Returns where to wake a thread, if one may sleep
    /// for the lock.
    pub fn unlock_without_waking(&self) -> Option<FutexKey<futex::Local>> {
        let key = self.word.key();
        (self.word.swap(0, Release) == 2).then_some(key)
    }

    /// Whether the lock is free, and no set is aged.
    pub fn is_at_rest(&self) -> bool {
        self.word.load(Relaxed) == 0 && self.oldest_aged().is_null()
    }
}

impl ArrayLock {
    /// The oldest aged set; null if there is none. The caller has the array lock.
    pub fn oldest_aged(&self) -> *const Node {
        // SAFETY: the caller has the array lock, and is not in the middle of a change. For
        // `is_at_rest`, no thread is in a call.
        self.aged.with(|aged| unsafe { (*aged).oldest })
    }

    /// Adds `node` to the list.
    ///
    /// # Safety
    /// The caller has the array lock and what guards the links of the node. The node is in a queue,
    /// and alive until it leaves the list.
    pub unsafe fn insert_aged(&self, node: *const Node) {
        // SAFETY: the aged sets are alive, and the caller's with the array lock.
        unsafe {
            (*node).links(|links| links.aged = true);
            self.aged.with_mut(|aged| (*aged).insert(node));
        }
    }

    /// Takes `node` out of the list, if it is in it.
    ///
    /// # Safety
    /// The caller has the array lock and what guards the links of the node.
    pub unsafe fn remove_aged(&self, node: *const Node) {
        // SAFETY: as above.
        unsafe {
            if (*node).links(|links| core::mem::take(&mut links.aged)) {
                self.aged.with_mut(|aged| (*aged).remove(node));
            }
        }
    }
}
