//! The line: nodes on the stacks of those who wait, linked from the newest to the oldest.
//!
//! ```text
//!  word ──► newest ──older──► … ──older──► second ──older──► oldest
//!              ◄──newer── …      ◄──newer──      ◄──newer──
//!              └─────────────────oldest──────────────────────►
//! ```
//!
//! An arrival writes `older` and publishes its node with one compare-exchange of the word; it
//! touches nobody else's. What points the other way is filled in by the tender: it walks from the
//! newest node as far as the last walk came, which is where it finds the first node that knows the
//! oldest, so every node is walked over once.
//!
//! # Who owns a node
//! | state of the node | links belong to | turn may be changed by |
//! |---|---|---|
//! | not yet in the word | its thread | its thread |
//! | in line | the tender | its thread (`Waiting`, `Called` -> `Parked`; any of these -> `Leaving`), the tender (`Waiting`, `Called`, `Parked` -> `Called`) |
//! | out of line (`linked` is false) | nobody; its thread reads `linked`, if it is the tender | the tender that took it out |
//! | `Granted`, `Left` | its thread | nobody; the swap that said so was the last touch by another |
//!
//! # Invariants
//! 1. The first node from the newest on that knows an `oldest` knows the right one, and all nodes
//!    from there on have right `newer` links. So whoever takes the newest node out tells the next
//!    what it knew.
//! 2. The oldest node has no `older`. The `newer` of the newest says nothing: it may be one that
//!    has left.

use super::turn::{Cpu, Turn};
use core::ptr;
use ulocks_core::futex::{Futex, Private};
use ulocks_core::sync::UnsafeCell;

/// A place in line. On a cache line of its own: its thread spins on it.
#[repr(align(64))]
pub(super) struct Waiter {
    /// A [`Turn`]. What its thread sleeps on.
    pub(super) turn: Futex<Private>,
    links: UnsafeCell<Links>,
    /// The next one on a tender's list of those it lets go. Not among the links, because the tender
    /// walks that list when it is not the tender any more.
    left: UnsafeCell<*const Waiter>,
}

/// The links of a place in line.
pub(super) struct Links {
    pub(super) older: *const Waiter,
    pub(super) newer: *const Waiter,
    pub(super) oldest: *const Waiter,
    /// False once a tender took it out of line.
    pub(super) linked: bool,
}

impl Waiter {
    pub(super) fn new(home: Cpu) -> Self {
        let links = Links { older: ptr::null(), newer: ptr::null(), oldest: ptr::null(), linked: true };
        Self {
            turn: Futex::new(Turn::waiting(home).0),
            links: UnsafeCell::new(links),
            left: UnsafeCell::new(ptr::null()),
        }
    }

    /// Access to the links of `this`.
    ///
    /// # Safety
    /// The node is alive, and its links belong to the caller (table "Who owns a node"), who is in
    /// no other access.
    #[inline]
    pub(super) unsafe fn links<R>(this: *const Self, access: impl FnOnce(&mut Links) -> R) -> R {
        // SAFETY: the node is alive, by the contract.
        let cell = unsafe { &(*this).links };
        // SAFETY: nobody else accesses the links, by the contract.
        cell.with_mut(|links| access(unsafe { &mut *links }))
    }

    /// Puts `node` on the list that begins with `list`.
    ///
    /// # Safety
    /// The caller has taken `node` out of line, and has not said so yet.
    pub(super) unsafe fn push_left(node: *const Self, list: &mut *const Self) {
        let before = core::mem::replace(list, node);
        // SAFETY: the node is alive until its turn is `Left`, and nobody else accesses this cell.
        unsafe { (*node).left.with_mut(|left| *left = before) };
    }

    /// The node after `node` on such a list.
    ///
    /// # Safety
    /// As [`push_left`](Self::push_left).
    pub(super) unsafe fn next_left(node: *const Self) -> *const Self {
        // SAFETY: as in `push_left`.
        unsafe { (*node).left.with(|left| *left) }
    }

    /// Completes the links of the line that begins at `newest`, and returns the oldest.
    ///
    /// # Safety
    /// The caller is the tender and has read `newest` from the word, acquiring.
    pub(super) unsafe fn oldest(newest: *const Self) -> *const Self {
        // SAFETY: nodes in line are alive, and their links are the tender's.
        unsafe {
            let mut node = newest;
            let oldest = loop {
                let (known, older) = Self::links(node, |links| (links.oldest, links.older));
                if !known.is_null() {
                    break known;
                }
                if older.is_null() {
                    break node;
                }
                Self::links(older, |links| links.newer = node);
                node = older;
            };
            Self::links(newest, |links| links.oldest = oldest);
            oldest
        }
    }

    /// Takes the oldest out of a line of at least two and returns the second, which is the oldest
    /// now.
    ///
    /// # Safety
    /// The caller is the tender, and `Self::oldest(newest)` has just returned `oldest`, which is
    /// not `newest`.
    pub(super) unsafe fn take_oldest(newest: *const Self, oldest: *const Self) -> *const Self {
        // SAFETY: as in `oldest`. The links are complete, so that `newer` is a node in line.
        unsafe {
            let second = Self::links(oldest, |links| {
                links.linked = false;
                links.newer
            });
            Self::links(second, |links| links.older = ptr::null());
            Self::links(newest, |links| links.oldest = second); // invariant 1
            second
        }
    }

    /// Takes `node` out of the line, unless it is the newest: then only prepares that, and returns
    /// the one that is to be the newest in its place, or null.
    ///
    /// # Safety
    /// The caller is the tender, and `Self::oldest(newest)` has just returned `oldest`; `node` is
    /// in line.
    pub(super) unsafe fn take(
        node: *const Self,
        newest: *const Self,
        oldest: *const Self,
    ) -> Option<*const Self> {
        // SAFETY: as in `take_oldest`.
        unsafe {
            let (older, newer) = Self::links(node, |links| (links.older, links.newer));
            if node == newest {
                if !older.is_null() {
                    Self::links(older, |links| links.oldest = oldest); // invariant 1
                }
                return Some(older);
            }
            Self::links(node, |links| links.linked = false);
            Self::links(newer, |links| links.older = older);
            if node == oldest {
                Self::links(newest, |links| links.oldest = newer);
            } else {
                Self::links(older, |links| links.newer = newer);
            }
            None
        }
    }
}
