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
    elders: UnsafeCell<(*const Node, *const Node)>,
}

impl ArrayLock {
    pub fn new() -> Self {
        Self { word: Futex::new(0), elders: UnsafeCell::new((ptr::null(), ptr::null())) }
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
        self.word.load(Relaxed) == 0 && self.eldest().is_null()
    }

    /// The oldest of the elders, for the holder of `C`.
    pub fn eldest(&self) -> *const Node {
        // SAFETY: only holders of C come here, and none of them in the middle of a change.
        self.elders.with(|elders| unsafe { (*elders).0 })
    }

    /// Makes an elder of `node`, for the holder of `C`. It goes before those that are younger, of
    /// which there are few: they grew old sooner.
    ///
    /// # Safety
    /// The node is in a queue, alive until it leaves the elders, and its links are the caller's.
    pub unsafe fn insert_aged(&self, node: *const Node) {
        // SAFETY: the elders are alive, and the caller's with C.
        unsafe {
            let mut younger: *const Node = ptr::null();
            let mut older = self.elders.with(|elders| (*elders).1);
            while !older.is_null() && (*node).is_older(&*older) {
                younger = older;
                older = (*older).links(|links| links.older);
            }
            (*node).links(|links| {
                links.elder = true;
                (links.older, links.younger) = (older, younger);
            });
            self.set_younger(older, node);
            self.set_older(younger, node);
        }
    }

    /// Takes `node` out of the elders, if it is among them, for the holder of `C`.
    ///
    /// # Safety
    /// The node's links are the caller's.
    pub unsafe fn remove_aged(&self, node: *const Node) {
        // SAFETY: as above.
        unsafe {
            let (was, older, younger) =
                (*node).links(|links| (core::mem::take(&mut links.elder), links.older, links.younger));
            if was {
                self.set_younger(older, younger);
                self.set_older(younger, older);
            }
        }
    }

    /// # Safety
    /// The caller has `C`; `node` is null or an elder.
    unsafe fn set_younger(&self, node: *const Node, younger: *const Node) {
        // SAFETY: as the caller says.
        unsafe {
            if node.is_null() {
                self.elders.with_mut(|elders| (*elders).0 = younger);
            } else {
                (*node).links(|links| links.younger = younger);
            }
        }
    }

    /// # Safety
    /// As `set_younger`.
    unsafe fn set_older(&self, node: *const Node, older: *const Node) {
        // SAFETY: as the caller says.
        unsafe {
            if node.is_null() {
                self.elders.with_mut(|elders| (*elders).1 = older);
            } else {
                (*node).links(|links| links.older = older);
            }
        }
    }
}
