//! The queue of the locks of one process: nodes on the stacks of the waiters, linked from the
//! newest to the oldest. `FairMutex`, the default mutex and `Calock`, their condition variables,
//! and `Semaphore` share it.
//!
//! ```text
//!  word ──► newest ──older──► … ──older──► second ──older──► oldest
//!              ◄──newer── …      ◄──newer──      ◄──newer──
//!              └─────────────────oldest──────────────────────►
//! ```
//!
//! An arriving thread writes `older` and publishes its node by one compare-exchange of the word. It
//! touches no other node. The word that names the newest node is the caller's: the mutex and the
//! condition variable have bits in it, the semaphore none. [`Newest`] is all that this file knows
//! of it.
//!
//! At most one thread holds the *queue lock*, a bit of the caller's. The queue-lock holder alone
//! completes the links `newer` and `oldest`, and detaches nodes, but for a node that is alone. To
//! complete them it walks from the newest node to the first one that has an `oldest`: there the
//! last walk began. So each node is walked over once.
//!
//! A lock in order has a [`Window`] too, which names the oldest node. So a hand-over needs no walk,
//! but where the links are used up.
//!
//! # Which thread touches a node
//! | the node | its links | its status is changed by |
//! |---|---|---|
//! | not in the word yet | its thread | its thread |
//! | *moved*: detached from a condition variable, and in no other queue yet | the thread that detached it | that thread, by the answer; its thread: `Waiting` -> `Parked` |
//! | queued | the queue-lock holder | its thread: `Waiting`, `WokenAhead` -> `Parked`; each of the three -> `Leaving`; not `LATE`. The queue-lock holder: each of the three -> `WokenAhead` |
//! | detached | the thread that detached it, also after it has released the queue lock | that thread, by the answer |
//! | answered: `Granted`, `Removed`, `Chosen`, `Notified` | its thread | no thread |
//!
//! `linked` is apart from the links: while a node is queued or detached, each queue-lock holder may
//! read it. A waiter may be a task: `TASKS.md` has what is different then.
//!
//! # Invariants
//! 1. Of the nodes from the newest on, the first that has an `oldest` has all `newer` links right
//!    from it to the oldest node. That is named by the window; without one, by the `oldest` found.
//!    So a queue-lock holder that detaches the newest node tells the next one what it knew.
//! 2. A walk from the newest node meets such a node, or the oldest, whose `older` is null then.
//!    Once such a node was there, the `older` of the oldest node may name a node that is gone. No
//!    walk follows it.
//! 3. `newer` of a queued node is right, or null. A lock without a window looks at it after a walk
//!    only.
//! 4. A node lives until the thread that detached it answers, which it does once, unless it moves
//!    the node to another queue. A waiter that has detached its own node needs no answer. The
//!    caller sees to it that no waiter unwinds before.
//! 5. A thread that detaches a node makes it known before it releases the queue lock: it claims it
//!    (`linked` becomes false), or has answered it, or the node was alone (`older` is null, and the
//!    queue does not end with it). While the queue lock is free, no queued node is claimed. So
//!    [`remove`] can tell a queued node.
//! 6. `Removed` is answered only to a waiter that is `Leaving`, or, by a semaphore that is closed,
//!    to each. So a waiter whose time is up waits for an answer.
//! 7. A waiter that is `Parked` or `Leaving` is woken by the thread that changes that. (A task that
//!    is polled, or leaves, changes that itself.)
//!
//! An arriving thread may find in the word an address that it has read before, although the node
//! there is another one by now. It links to that other node, which is right. It never looks inside.
//!
//! # Ordering
//! - (answer), the answer, releases, and each look of a waiter at its status acquires. So what the
//!   answering thread did to the node happens before the waiter returns.
//! - The caller releases as it pushes a node, and acquires as it reads the newest one: the
//!   queue-lock holder sees the links of each node. The links pass from one queue-lock holder to
//!   the next by the queue lock, and so do the window and the answers (invariant 5).
//! - `Leaving` is published by the caller, which asks for the answer by a bit of its word.
//! - All other changes of a status order nothing: no thread reads anything by them.
//!
//! # Sources
//! The links are those of the Rust standard library's `sys::sync::rwlock::queue` (J. Wunder, 2023)
//! and of J. Fang's `usync`: newest first, completed when needed. J. Mellor-Crummey and M. Scott,
//! "Algorithms for Scalable Synchronization" (1991): each waiter polls a word of its own. Here:
//! nodes that leave, a word that is not the queue's, and the window.

mod condvar;
mod departures;
mod mutex;
mod notified;
mod plan;
mod rule;
mod serve;
mod status;
mod task;
mod wait;
mod wake;
mod window;
mod word;

pub use condvar::QueueCondvar;
pub use departures::{Departures, remove_leavers};
pub use mutex::QueueMutex;
pub use notified::Notified;
pub use rule::{Advice, After, Every, HandOff, InOrder, Planned, Rule};
pub use status::{Cpu, Kind, Status};
pub use task::{LockAsync, Stage, TaskNode};
pub use wake::{Wake, Wakers};
pub use window::{Granted, Sleepers, Window, advance, here};

use crate::sys::futex::{Futex, FutexKey, Local};
use crate::sys::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sys::sync::UnsafeCell;
use core::ptr;
use window::Inside;

/// A waiter's place in the queue, on its stack. On a cache line of its own: the waiter spins on it.
#[repr(align(64))]
pub struct Node {
    /// A [`Status`]; the waiter sleeps on it.
    pub status: Futex<Local>,
    /// How many permits it waits for.
    pub wanted: u32,
    /// Whether it is that of a task, as its status says until the answer. To look at the status
    /// before a hand-over costs the line twice. (The cost model, 16 CPUs, nothing inside or
    /// outside: `FairMutex` 0.86 of the rate.)
    is_task: bool,
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
    /// Of the oldest node: which waiters are awake, and more.
    inside: Inside,
}

impl Links {
    const NONE: Self = Self {
        older: ptr::null(),
        newer: ptr::null(),
        oldest: ptr::null(),
        departs: ptr::null(),
        inside: Inside::NONE,
    };
}

// A waiter polls the line of its node, and the others are for other nodes.
const _: () = assert!(size_of::<Node>() == 64 || cfg!(not(world = "machine")));

/// The word that names the newest node, in the hands of the queue-lock holder.
pub trait Newest {
    /// The newest node, read with Acquire, or null.
    fn newest(&mut self) -> *const Node;

    /// Puts `next` in the place of `newest`. False if another node is the newest by now, or the
    /// word has changed otherwise.
    fn replace(&mut self, newest: *const Node, next: *const Node) -> bool;

    /// The window of the lock, if it has one.
    fn window(&self) -> Option<&Window>;
}

impl Node {
    /// A node of a thread on the CPU `last`, which waits for `wanted` permits.
    pub fn new(last: Cpu, wanted: u32) -> Self {
        Self {
            status: Futex::new(Status::waiting(last).0),
            wanted,
            is_task: false,
            links: UnsafeCell::new(Links::NONE),
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
    pub unsafe fn follow(node: *const Self, newest: *const Self) {
        // SAFETY: the node is the caller's, so it is alive, and no other thread has its links.
        unsafe { Self::links(node, |links| links.older = newest) };
    }

    /// Makes `node` as one that was never queued.
    ///
    /// # Safety
    /// The node is in no queue, and it is the caller's, or the caller has detached it and has not
    /// answered it.
    unsafe fn renew(node: *const Self) {
        // SAFETY: no other thread accesses a node that is in no queue, but its thread, which
        // accesses the status alone.
        unsafe {
            (*node).linked.with_mut(|linked| *linked = true);
            Self::links(node, |links| *links = Links::NONE);
        }
    }

    /// Sets `MOVED` in the status.
    ///
    /// # Safety
    /// The caller has detached the node from a condition variable, and has not answered it.
    unsafe fn mark_moved(node: *const Self) {
        // SAFETY: a node lives until it is answered.
        let status = unsafe { &(*node).status };
        let mut seen = Status(status.load(Relaxed));
        while let Err(now) = status.compare_exchange(seen.0, seen.moved().0, Relaxed, Relaxed) {
            seen = Status(now);
        }
    }

    /// The node that came before `node`.
    ///
    /// # Safety
    /// The caller is the queue-lock holder. `node` is queued, and is not the oldest.
    unsafe fn older(node: *const Self) -> *const Self {
        // SAFETY: queued nodes are alive, and their links belong to the queue-lock holder.
        unsafe { Self::links(node, |links| links.older) }
    }

    /// Claims `node`; false if it was claimed before. The caller detaches it before it releases the
    /// queue lock (invariant 5).
    ///
    /// # Safety
    /// The caller is the queue-lock holder. `node` was pushed, and is alive.
    pub unsafe fn claim(node: *const Self) -> bool {
        // SAFETY: the node is alive, and only the queue-lock holder accesses the cell.
        unsafe { (*node).linked.with_mut(|linked| linked.replace(false)) }
    }

    /// The status, acquiring: pairs with (answer).
    #[inline]
    pub fn look(&self) -> Status {
        Status(self.status.load(Acquire))
    }

    /// Sets `Leaving`, unless the waiter is answered first, or moved: then `None`.
    pub fn ask_to_leave(&self) -> Option<Status> {
        let mut seen = self.look();
        loop {
            if seen.is_answer() || seen.is_moved() {
                return None;
            }
            let leaving = seen.with(Kind::Leaving);
            match self.status.compare_exchange(seen.0, leaving.0, Relaxed, Relaxed) {
                Ok(_) => return Some(leaving),
                Err(now) => seen = Status(now),
            }
        }
    }

    /// Waits for the answer to `leaving` (invariant 6), or until the waiter is moved.
    pub fn await_answer(&self, leaving: Status) -> Status {
        loop {
            let seen = self.look();
            if seen != leaving {
                return seen;
            }
            self.status.wait(leaving.0, None);
        }
    }

    /// As [`answer`](Self::answer), and returns what the status was.
    ///
    /// # Safety
    /// As [`answer`](Self::answer).
    unsafe fn answer_with(node: *const Self, kind: Kind) -> (Status, Option<FutexKey<Local>>) {
        // SAFETY: alive until it is answered.
        let status = unsafe { &(*node).status };
        let key = status.key();
        let seen = Status(status.swap(kind as u32, Release));
        (seen, seen.is_asleep().then_some(key))
    }

    /// (answer): answers `kind` to the waiter of `node`, which may free the node from then on.
    /// Returns by what to wake it if it waits to be woken.
    ///
    /// # Safety
    /// The caller has detached `node`, and has not answered yet.
    pub unsafe fn answer(node: *const Self, kind: Kind) -> Option<Wake> {
        // SAFETY: the caller's contract is the callee's.
        let (seen, key) = unsafe { Self::answer_with(node, kind) };
        if seen.is_task() && seen.is(Kind::Parked) {
            // SAFETY: the status was `Parked`, and `TASK`, before this answer.
            return Some(Wake::Task(unsafe { TaskNode::take_waker(node, kind) }));
        }
        key.map(Wake::Thread)
    }

    /// Whether the waiter of `node` is a task.
    ///
    /// # Safety
    /// The caller is the queue-lock holder, and `node` is queued.
    unsafe fn is_task(node: *const Self) -> bool {
        // SAFETY: queued nodes are alive.
        unsafe { (*node).is_task }
    }

    /// Writes to the node after its answer: a model then reports an access of another thread.
    pub fn take_back(&self) {
        // SAFETY: `self` is alive. It is in no queue after its answer, so its links are its
        // thread's.
        unsafe { Self::links(self, |links| links.newer = ptr::null()) };
    }
}

/// Completes the links of the queue that begins at `newest`, and returns the oldest node.
///
/// # Safety
/// The caller is the queue-lock holder. `newest` is not null, and was read from the word with
/// Acquire; since then this thread has not detached it.
pub unsafe fn complete(word: &impl Newest, newest: *const Node) -> *const Node {
    // SAFETY: queued nodes are alive, and their links belong to the queue-lock holder.
    unsafe {
        let (mut node, mut nodes) = (newest, 0);
        let mut oldest = loop {
            let links = Node::links(node, |links| *links);
            if !links.oldest.is_null() {
                break links.oldest;
            }
            if links.older.is_null() {
                break node;
            }
            Node::links(links.older, |older| older.newer = node);
            (node, nodes) = (links.older, nodes + 1);
        };
        if let Some(window) = word.window() {
            match window.first() {
                first if first.is_null() => window.set_first(oldest),
                first => oldest = first,
            }
            if window.is_closed() {
                Node::links(oldest, |links| links.inside.link(nodes));
            }
        }
        Node::links(newest, |links| links.oldest = oldest);
        oldest
    }
}

/// The only node is about to be detached: claims it, and forgets it as the first.
///
/// # Safety
/// The caller is the queue-lock holder, and `node` is queued.
unsafe fn empty(word: &impl Newest, node: *const Node) {
    // SAFETY: the caller is the queue-lock holder; a queued node was pushed, and is alive.
    unsafe { Node::claim(node) };
    if let Some(window) = word.window() {
        window.clear();
    }
}

/// The only node was not detached, after [`empty`]: the word has changed.
///
/// # Safety
/// As [`empty`].
unsafe fn not_empty(word: &impl Newest, node: *const Node) {
    // SAFETY: the node is still queued, so it is alive; only the queue-lock holder, which is the
    // caller, accesses the cell.
    unsafe { (*node).linked.with_mut(|linked| *linked = true) };
    if let Some(window) = word.window() {
        window.set_first(node);
    }
}

/// Puts `node` into the queue as the oldest, with `status`.
///
/// # Safety
/// The caller is the queue-lock holder, and `node` is its own, and in no queue. The lock has no
/// window.
unsafe fn insert_oldest(word: &mut impl Newest, node: *const Node, status: Status) {
    // SAFETY: the node is the caller's.
    unsafe { &(*node).status }.store(status.0, Relaxed);
    loop {
        let newest = word.newest();
        // SAFETY: the node is the caller's, and in no queue, until it is linked or in the word. The
        // caller is the queue-lock holder: the links of queued nodes, as the oldest and the newest,
        // are its own, and `newest` was read with Acquire.
        unsafe {
            Node::renew(node);
            if newest.is_null() {
                if word.replace(newest, node) {
                    return;
                }
                continue;
            }
            let oldest = complete(word, newest);
            Node::links(node, |links| links.newer = oldest);
            Node::links(oldest, |links| links.older = node);
            Node::links(newest, |links| links.oldest = node);
            return;
        }
    }
}

/// The oldest node of the queue that begins at `newest`.
///
/// # Safety
/// As [`complete`].
pub unsafe fn oldest(word: &impl Newest, newest: *const Node) -> *const Node {
    match word.window().map_or(ptr::null(), Window::first) {
        // SAFETY: the caller's contract is the callee's.
        first if first.is_null() => unsafe { complete(word, newest) },
        first => first,
    }
}

/// The node that came after `node`.
///
/// # Safety
/// As [`complete`]; `node` is queued, and is not `newest`.
unsafe fn newer(word: &impl Newest, node: *const Node, newest: *const Node) -> *const Node {
    // SAFETY: a queued node is alive, and its links belong to the queue-lock holder, the caller.
    // The rest of the contract is the callee's.
    unsafe {
        let known = Node::links(node, |links| links.newer);
        if !known.is_null() {
            return known;
        }
        complete(word, newest);
        Node::links(node, |links| links.newer)
    }
}

/// Detaches `node`, which is the oldest and not the newest, and returns the next one.
///
/// # Safety
/// The caller is the queue-lock holder. [`oldest`] has just returned `node` for `newest`.
pub unsafe fn detach_oldest(word: &impl Newest, node: *const Node, newest: *const Node) -> *const Node {
    // SAFETY: `node` is queued, so it was pushed and is alive, and it is not the newest, by the
    // contract. The newest node is queued, too, and its links are the queue-lock holder's.
    unsafe {
        Node::claim(node);
        let next = newer(word, node, newest);
        match word.window() {
            Some(window) => {
                window.set_first(next);
                if window.is_closed() {
                    let inside = Node::links(node, |links| links.inside);
                    Node::links(next, |links| links.inside = inside);
                }
            }
            None => Node::links(newest, |links| links.oldest = next), // invariant 1
        }
        next
    }
}

/// Detaches `node`. If it is the newest, this only prepares that, and returns the node that is to
/// be the newest in its place, or null. Then the caller changes the word, or detaches `node` again.
///
/// # Safety
/// The caller is the queue-lock holder and has claimed `node`, which is queued.
/// [`complete`]`(newest)` has just returned `oldest`.
unsafe fn detach(
    word: &impl Newest,
    node: *const Node,
    newest: *const Node,
    oldest: *const Node,
) -> Option<*const Node> {
    // SAFETY: as in `complete`. The links are complete, so `newer` and `older` are queued nodes,
    // but for the `older` of the oldest node, which is not used.
    unsafe {
        let Links { older, newer, .. } = Node::links(node, |links| *links);
        if node == newest {
            if node == oldest {
                if let Some(window) = word.window() {
                    window.clear();
                }
                return Some(ptr::null());
            }
            Node::links(older, |links| {
                links.oldest = oldest; // invariant 1
                links.newer = ptr::null();
            });
            return Some(older);
        }
        if node == oldest {
            match word.window() {
                Some(window) => window.set_first(newer),
                None => Node::links(newest, |links| links.oldest = newer), // invariant 1
            }
        } else {
            Node::links(newer, |links| links.older = older);
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
        // SAFETY: the caller is the queue-lock holder. `newest` was read with Acquire, and is not
        // null: `node` is queued. It is claimed, by the contract, and `oldest` is what was
        // returned.
        let next = unsafe {
            let oldest = complete(word, newest);
            detach(word, node, newest, oldest)
        };
        if next.is_none_or(|next| word.replace(newest, next)) {
            return;
        }
    }
}

/// Claims and detaches `node`; false if that was done before.
///
/// # Safety
/// The caller is the queue-lock holder. `node` was pushed, and is alive.
pub unsafe fn remove(word: &mut impl Newest, node: *const Node) -> bool {
    // SAFETY: the caller is the queue-lock holder; `node` was pushed, and is alive. Once it is
    // claimed here, it is queued (invariant 5).
    unsafe {
        let claimed = Node::claim(node) && is_queued(word, node);
        if claimed {
            detach_from(word, node);
            forget_inside(word);
        }
        claimed
    }
}

/// Whether `node`, which is not claimed, is queued still.
///
/// # Safety
/// As [`remove`].
unsafe fn is_queued(word: &mut impl Newest, node: *const Node) -> bool {
    let newest = word.newest();
    // SAFETY: `node` is alive, and its links are the queue-lock holder's, the caller's: it was
    // pushed. `newest` was read with Acquire, and nothing was detached since.
    unsafe {
        let answered = Status((*node).status.load(Relaxed)).is_answer();
        let was_alone = Node::links(node, |links| links.older).is_null();
        !answered && (!was_alone || (!newest.is_null() && complete(word, newest) == node))
    }
}

/// After a node was detached that was not the oldest: which waiters are awake is not known.
fn forget_inside(word: &impl Newest) {
    let first = word.window().map_or(ptr::null(), Window::first);
    if !first.is_null() {
        // SAFETY: the caller is the queue-lock holder, and the first node is queued.
        unsafe { Node::links(first, |links| links.inside.forget()) };
    }
}
