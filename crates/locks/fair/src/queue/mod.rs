//! The queue of a lock: nodes on the stacks of the waiters, linked from the newest to the oldest.
//! `FairMutex` and `Semaphore` share it.
//!
//! ```text
//!  word ──► newest ──older──► … ──older──► second ──older──► oldest
//!              ◄──newer── …      ◄──newer──      ◄──newer──
//!              └─────────────────oldest──────────────────────►
//! ```
//!
//! An arriving thread writes `older` and publishes its node by one compare-exchange of the word. It
//! touches no other node. The word that names the newest node is the caller's: the mutex has three
//! bits in it, the semaphore none. [`Newest`] is all that this file knows of it.
//!
//! At most one thread holds the *queue lock*, a bit of the caller's. The queue-lock holder alone
//! completes the links `newer` and `oldest`, and detaches nodes. It walks from the newest node to
//! the first one that knows the oldest. The last walk began there, so each node is walked over
//! once.
//!
//! # Which thread touches a node
//! | the node | its links | its status is changed by |
//! |---|---|---|
//! | not in the word yet | its thread | its thread |
//! | queued | the queue-lock holder | its thread: `Waiting`, `WokenAhead` -> `Parked`; each of the three -> `Leaving`. The queue-lock holder: each of the three -> `WokenAhead` |
//! | detached | the thread that detached it, also after it has released the queue lock | that thread, by the answer |
//! | answered: `Granted`, `Removed` | its thread | no thread |
//!
//! `linked` is apart from the links: while a node is queued or detached, each queue-lock holder may
//! read it.
//!
//! # Invariants
//! 1. Of the nodes from the newest on, the first that knows an `oldest` knows the right one. From
//!    that node on all `newer` links are right. So a queue-lock holder that detaches the newest
//!    node tells the next one what it knew.
//! 2. The oldest node has no `older`. The `newer` of the newest node says nothing: it may name a
//!    node that was detached.
//! 3. A node lives until the thread that detached it answers, which it does once; a waiter that has
//!    detached its own node needs no answer. The caller sees to it that no waiter unwinds before.
//! 4. A thread that claims a node (`linked` becomes false) detaches it before it releases the queue
//!    lock. So while the queue lock is free, a node is claimed if and only if it is detached.
//! 5. `Removed` is answered only to a waiter that is `Leaving`, or, by a semaphore that is closed,
//!    to each. So a waiter whose time is up waits for one of the two answers.
//! 6. A waiter that is `Parked` or `Leaving` is woken by the thread that changes that.
//!
//! An arriving thread may find in the word an address that it has read before, although the node
//! there is another one by now. It links to that other node, which is right. It never looks inside.
//!
//! # Ordering
//! - (answer), the answer, releases, and each look of a waiter at its status acquires. So what the
//!   answering thread did to the node happens before the waiter returns.
//! - The caller releases as it pushes a node, and acquires as it reads the newest one: the
//!   queue-lock holder sees the links of each node. The links pass from one queue-lock holder to
//!   the next by the queue lock.
//! - A change of the word in [`Newest::replace`] may be Relaxed. It is a read-modify-write, so it
//!   continues the releases of the pushes before it.
//! - `Leaving` is published by the caller, which asks for the answer by a bit of its word.
//! - All other changes of a status order nothing: no thread reads anything by them.
//!
//! # Sources
//! The links are those of the Rust standard library's `sys::sync::rwlock::queue` (J. Wunder, 2023)
//! and of J. Fang's `usync`: newest first, completed when needed. Here: nodes that leave, and a
//! word that is not the queue's.

mod status;

pub(crate) use status::{Cpu, Kind, Status};

use core::ptr;
use ulocks_core::futex::{Futex, FutexKey, Local};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::UnsafeCell;

/// A waiter's place in the queue, on its stack. On a cache line of its own: the waiter spins on it.
#[repr(align(64))]
pub(crate) struct Node {
    /// A [`Status`]; the waiter sleeps on it.
    pub(crate) status: Futex<Local>,
    /// How many permits it waits for.
    pub(crate) wanted: u32,
    links: UnsafeCell<Links>,
    /// False once a queue-lock holder has claimed the node.
    linked: UnsafeCell<bool>,
}

#[derive(Clone, Copy)]
struct Links {
    older: *const Node,
    newer: *const Node,
    oldest: *const Node,
    /// The next one of [`Departures`].
    departs: *const Node,
}

/// The word that names the newest node, in the hands of the queue-lock holder.
pub(crate) trait Newest {
    /// The newest node, read with Acquire, or null.
    fn newest(&mut self) -> *const Node;

    /// Puts `next` in the place of `newest`. False if another node is the newest by now, or the
    /// word has changed otherwise.
    fn replace(&mut self, newest: *const Node, next: *const Node) -> bool;
}

impl Node {
    /// A node of a thread on the CPU `last`, which waits for `wanted` permits.
    pub(crate) fn new(last: Cpu, wanted: u32) -> Self {
        let links =
            Links { older: ptr::null(), newer: ptr::null(), oldest: ptr::null(), departs: ptr::null() };
        Self {
            status: Futex::new(Status::waiting(last).0),
            wanted,
            links: UnsafeCell::new(links),
            linked: UnsafeCell::new(true),
        }
    }

    /// Access to the links of `node`.
    ///
    /// # Safety
    /// The node is alive, and its links belong to the caller (table "Which thread touches a node").
    #[inline]
    unsafe fn links<R>(node: *const Self, access: impl FnOnce(&mut Links) -> R) -> R {
        // SAFETY: the node is alive, by the contract.
        let cell = unsafe { &(*node).links };
        // SAFETY: no other thread accesses the links, by the contract; `access`, which is in this
        // file, accesses no others.
        cell.with_mut(|links| access(unsafe { &mut *links }))
    }

    /// Links `node` to the newest one, before a push.
    ///
    /// # Safety
    /// The node is the caller's, and not in the word yet.
    #[inline]
    pub(crate) unsafe fn follow(node: *const Self, newest: *const Self) {
        // SAFETY: the contract.
        unsafe { Self::links(node, |links| links.older = newest) };
    }

    /// The node that came after `node`.
    ///
    /// # Safety
    /// The caller is the queue-lock holder and has completed the links. `node` is queued, and is
    /// not the newest.
    pub(crate) unsafe fn newer(node: *const Self) -> *const Self {
        // SAFETY: the contract.
        unsafe { Self::links(node, |links| links.newer) }
    }

    /// Claims `node`; false if it was claimed before. The caller detaches it before it releases the
    /// queue lock (invariant 4).
    ///
    /// # Safety
    /// The caller is the queue-lock holder. `node` was pushed, and is alive.
    pub(crate) unsafe fn claim(node: *const Self) -> bool {
        // SAFETY: the node is alive, and only the queue-lock holder accesses the cell.
        unsafe { (*node).linked.with_mut(|linked| linked.replace(false)) }
    }

    /// The status, acquiring: pairs with (answer).
    #[inline]
    pub(crate) fn look(&self) -> Status {
        Status(self.status.load(Acquire))
    }

    /// Sets `Leaving`, unless the waiter is answered first: then `None`.
    pub(crate) fn ask_to_leave(&self) -> Option<Status> {
        let mut seen = self.look();
        loop {
            if seen.is_answer() {
                return None;
            }
            let leaving = seen.with(Kind::Leaving);
            match self.status.compare_exchange(seen.0, leaving.0, Relaxed, Acquire) {
                Ok(_) => return Some(leaving),
                Err(now) => seen = Status(now),
            }
        }
    }

    /// Waits for the answer to `leaving`; true if it is `Granted` (invariant 5).
    pub(crate) fn await_answer(&self, leaving: Status) -> bool {
        loop {
            match self.look() {
                status if status.is(Kind::Granted) => return true,
                status if status.is(Kind::Removed) => return false,
                _ => self.status.wait(leaving.0, None),
            };
        }
    }

    /// (answer): answers `kind` to the thread of `node`, which may free the node from then on.
    /// Returns by what to wake that thread if it is asleep.
    ///
    /// # Safety
    /// The caller has detached `node`, and has not answered yet.
    pub(crate) unsafe fn answer(node: *const Self, kind: Kind) -> Option<FutexKey<Local>> {
        // SAFETY: alive until it is answered.
        let status = unsafe { &(*node).status };
        let key = status.key();
        let seen = Status(status.swap(kind as u32, Release));
        let asleep = seen.is(Kind::Parked) || seen.is(Kind::Leaving);
        asleep.then_some(key)
    }

    /// Writes to the node after its answer: a model then reports an access of another thread.
    pub(crate) fn take_back(&self) {
        // SAFETY: the node is the caller's again.
        unsafe { Self::links(self, |links| links.newer = ptr::null()) };
    }
}

/// Completes the links of the queue that begins at `newest`, and returns the oldest node.
///
/// # Safety
/// The caller is the queue-lock holder. `newest` is not null, and was read from the word with
/// Acquire; since then this thread has not detached it.
pub(crate) unsafe fn complete(newest: *const Node) -> *const Node {
    // SAFETY: queued nodes are alive, and their links belong to the queue-lock holder.
    unsafe {
        let mut node = newest;
        let oldest = loop {
            let links = Node::links(node, |links| *links);
            if !links.oldest.is_null() {
                break links.oldest;
            }
            if links.older.is_null() {
                break node;
            }
            Node::links(links.older, |older| older.newer = node);
            node = links.older;
        };
        Node::links(newest, |links| links.oldest = oldest);
        oldest
    }
}

/// Detaches `node`. If it is the newest, this only prepares that, and returns the node that is to
/// be the newest in its place, or null. Then the caller changes the word, or detaches `node` again.
///
/// # Safety
/// The caller is the queue-lock holder and has claimed `node`, which is queued.
/// [`complete`]`(newest)` has just returned `oldest`.
pub(crate) unsafe fn detach(
    node: *const Node,
    newest: *const Node,
    oldest: *const Node,
) -> Option<*const Node> {
    // SAFETY: as in `complete`. The links are complete, so `newer` and `older` are queued nodes.
    unsafe {
        let Links { older, newer, .. } = Node::links(node, |links| *links);
        if node == newest {
            if !older.is_null() {
                Node::links(older, |links| links.oldest = oldest); // invariant 1
            }
            return Some(older);
        }
        Node::links(newer, |links| links.older = older);
        if node == oldest {
            Node::links(newest, |links| links.oldest = newer); // invariant 1
        } else {
            Node::links(older, |links| links.newer = newer);
        }
        None
    }
}

/// Detaches `node`, which the caller has claimed, and takes it out of the word if it is the newest.
///
/// # Safety
/// As [`detach`].
unsafe fn detach_from(word: &mut impl Newest, node: *const Node) {
    loop {
        let newest = word.newest();
        // SAFETY: the contract; `newest` acquires.
        let next = unsafe { detach(node, newest, complete(newest)) };
        if next.is_none_or(|next| word.replace(newest, next)) {
            return;
        }
    }
}

/// Claims and detaches `node`; false if that was done before.
///
/// # Safety
/// The caller is the queue-lock holder. `node` was pushed, and is alive.
pub(crate) unsafe fn remove(word: &mut impl Newest, node: *const Node) -> bool {
    // SAFETY: the contract; a node that was not claimed is queued (invariant 4).
    unsafe {
        let claimed = Node::claim(node);
        if claimed {
            detach_from(word, node);
        }
        claimed
    }
}

/// Detaches each node whose waiter is `Leaving`, for the answer `Removed`; returns how many.
///
/// # Safety
/// The caller is the queue-lock holder, and answers `gone`.
#[cold]
pub(crate) unsafe fn remove_leavers(word: &mut impl Newest, gone: &mut Departures) -> u32 {
    let (mut node, mut count) = (word.newest(), 0);
    while !node.is_null() {
        // SAFETY: queued nodes are alive and their links are the caller's. The walk ends by
        // invariant 2. A node may be claimed already, by this thread only (invariant 4).
        unsafe {
            let older = Node::links(node, |links| links.older);
            if Status((*node).status.load(Relaxed)).is(Kind::Leaving) {
                Node::claim(node);
                detach_from(word, node);
                gone.push(node);
                count += 1;
            }
            node = older;
        }
    }
    count
}

/// Nodes that were detached and not answered yet, in the order of their detaching.
pub(crate) struct Departures {
    first: *const Node,
    last: *const Node,
}

impl Departures {
    pub(crate) fn new() -> Self {
        Self { first: ptr::null(), last: ptr::null() }
    }

    /// Adds `node`.
    ///
    /// # Safety
    /// The caller has detached it, and answers it by this list only.
    pub(crate) unsafe fn push(&mut self, node: *const Node) {
        if self.first.is_null() {
            self.first = node;
        } else {
            // SAFETY: the caller detached the last one too, and has not answered it.
            unsafe { Node::links(self.last, |links| links.departs = node) };
        }
        self.last = node;
    }

    /// Answers `kind` to each node, and wakes its thread.
    pub(crate) fn answer_each(self, kind: Kind) {
        let mut node = self.first;
        while !node.is_null() {
            // SAFETY: by the contract of `push` it is alive until its answer, its links are the
            // caller's, and it has no answer yet.
            let (next, key) = unsafe { (Node::links(node, |links| links.departs), Node::answer(node, kind)) };
            key.map(|key| key.wake(1));
            node = next;
        }
    }
}
