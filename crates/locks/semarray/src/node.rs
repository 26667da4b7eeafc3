//! A waiting set: a node on its thread's stack, in the queue of the semaphore where the set stops.
//!
//! | links of | are guarded by |
//! |---|---|
//! | a node that is queued at a cell without `COMPLEX` | the cell's `LOCK` |
//! | a node that is queued at a cell with `COMPLEX` | the array lock, and for its neighbours the cell's `LOCK`, too |
//! | a watch | the array lock, and the `LOCK` of the cell that is watched |
//! | a node that a session has taken out of its queue | nothing: it belongs to that session until it is completed |

use crate::op::{Action, Op};
use crate::set::Ages;
use crate::sleep::groups::Seat;
use core::ptr;
use ulocks_core::queue;
use ulocks_core::sync::Ordering::{Acquire, Release};
use ulocks_core::sync::{AtomicU32, UnsafeCell};

/// How a waiting set has ended, if it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Pending,
    Done,
    WouldBlock,
    /// By the operation at this position of the set.
    OutOfRange(usize),
    Closed,
}

impl Outcome {
    const KIND_BITS: u32 = 3;
    /// The most operations of a set, so that the position of each fits the other bits.
    pub const MOST_OPS: usize = 1 << (u32::BITS - Self::KIND_BITS);

    fn encode(self) -> u32 {
        match self {
            Self::Pending => 0,
            Self::Done => 1,
            Self::WouldBlock => 2,
            Self::Closed => 3,
            Self::OutOfRange(at) => 4 | (at as u32) << Self::KIND_BITS,
        }
    }

    fn decode(word: u32) -> Self {
        match word & ((1 << Self::KIND_BITS) - 1) {
            0 => Self::Pending,
            1 => Self::Done,
            2 => Self::WouldBlock,
            3 => Self::Closed,
            _ => Self::OutOfRange((word >> Self::KIND_BITS) as usize),
        }
    }
}

/// A waiting set.
pub(crate) struct Node {
    status: AtomicU32,
    ops: *const [Op],
    /// Whether the set changes a value. Sets that change none are served first.
    alters: bool,
    /// Apart from the links: its thread reads this, under the same guard, while the session that
    /// took the node out is about to complete it.
    queued: UnsafeCell<bool>,
    links: UnsafeCell<Links>,
}

/// What sessions do with a node.
pub(crate) struct Links {
    /// The number of its arrival: its age, which it keeps when it moves.
    pub ticket: u64,
    /// Where its thread sleeps; `None` while no other thread knows the node, or if it is a task's.
    pub seat: Option<Seat>,
    /// The bell of its task, or null.
    pub bell: *const queue::Node,
    /// The position of the operation at which the set stops. The node is in the queue of that
    /// operation's semaphore.
    pub at: usize,
    /// A set of several operations, or of an array with strict fairness. Only sessions with the
    /// array lock evaluate it.
    pub complex: bool,
    /// Its neighbours in the queue of its semaphore, and in the list of aged sets.
    pub neighbours: [Neighbours; 2],
    /// The next node that its session completes.
    pub next: *const Node,
    /// One for each operation. The first `at` of them are linked.
    pub watches: *const Watch,
    /// Whether it is in the heap of a cascade.
    pub in_heap: bool,
    /// Whether the sets behind it in its queue have not been evaluated since their semaphore grew.
    pub cursor: bool,
    pub child: *const Node,
    pub sibling: *const Node,
    /// Whether it is aged.
    pub aged: bool,
    /// The clock of a task's set, of an array with strict fairness.
    pub ages: Option<Ages>,
    /// The outcome with which it is completed once the words are published.
    pub outcome: Outcome,
}

/// The next older and the next younger node of a list.
#[derive(Clone, Copy)]
pub(crate) struct Neighbours {
    pub older: *const Node,
    pub younger: *const Node,
}

impl Node {
    /// A node for `ops`, which outlives it.
    pub fn new(ops: &[Op]) -> Self {
        Self {
            status: AtomicU32::new(0),
            ops,
            alters: ops.iter().any(Op::alters),
            queued: UnsafeCell::new(false),
            links: UnsafeCell::new(Links {
                ticket: 0,
                seat: None,
                bell: ptr::null(),
                at: 0,
                complex: false,
                neighbours: [Neighbours { older: ptr::null(), younger: ptr::null() }; 2],
                next: ptr::null(),
                watches: ptr::null(),
                in_heap: false,
                cursor: false,
                child: ptr::null(),
                sibling: ptr::null(),
                aged: false,
                ages: None,
                outcome: Outcome::Pending,
            }),
        }
    }

    pub fn ops(&self) -> &[Op] {
        // SAFETY: the operations outlive the node, as `new` demands.
        unsafe { &*self.ops }
    }

    /// (read outcome): the outcome, as its thread reads it.
    #[inline]
    pub fn outcome(&self) -> Outcome {
        Outcome::decode(self.status.load(Acquire))
    }

    /// (complete): completes `node`, which may be gone from here on.
    ///
    /// # Safety
    /// The node has not been completed, and belongs to the caller.
    pub unsafe fn complete(node: *const Self, outcome: Outcome) {
        // SAFETY: the thread of a node that was taken out waits for its outcome, so the node is
        // alive until then.
        unsafe { (*node).status.store(outcome.encode(), Release) };
    }

    /// Calls `f` with the links.
    ///
    /// # Safety
    /// The caller has what guards them (see the table above), and `f` does not call this for the
    /// same node.
    #[inline]
    pub unsafe fn links<R>(&self, f: impl FnOnce(&mut Links) -> R) -> R {
        // SAFETY: no other reference to the links exists, as the caller promises.
        self.links.with_mut(|links| f(unsafe { &mut *links }))
    }

    /// Whether it is in a queue.
    ///
    /// # Safety
    /// The caller has what guards the queue that the node was put in.
    pub unsafe fn is_queued(&self) -> bool {
        // SAFETY: no other thread changes it meanwhile, as the caller promises.
        self.queued.with(|queued| unsafe { *queued })
    }

    /// # Safety
    /// As `is_queued`.
    pub unsafe fn set_queued(&self, is: bool) {
        // SAFETY: no other thread accesses it, as the caller promises.
        self.queued.with_mut(|queued| unsafe { *queued = is });
    }

    /// Whether this set is served before `other`: a set that changes nothing before one that does,
    /// otherwise the older one.
    ///
    /// # Safety
    /// As [`links`](Self::links), for both.
    pub unsafe fn goes_before(&self, other: &Self) -> bool {
        // SAFETY: as the caller says.
        let older = unsafe { self.is_older(other) };
        if self.alters == other.alters { older } else { other.alters }
    }

    /// Whether this set is older than `other`.
    ///
    /// # Safety
    /// As [`links`](Self::links), for both.
    pub unsafe fn is_older(&self, other: &Self) -> bool {
        // SAFETY: as the caller says; the tickets are read one after the other.
        unsafe { self.links(|links| links.ticket) < other.links(|links| links.ticket) }
    }
}

/// The list of the sets that wait at a semaphore.
pub(crate) const QUEUE: usize = 0;
/// The list of aged sets.
pub(crate) const AGED: usize = 1;

/// A list of nodes by their tickets, the oldest first.
pub(crate) struct List<const WHICH: usize> {
    pub oldest: *const Node,
    youngest: *const Node,
}

impl<const WHICH: usize> List<WHICH> {
    pub const fn new() -> Self {
        Self { oldest: ptr::null(), youngest: ptr::null() }
    }

    pub fn is_empty(&self) -> bool {
        self.oldest.is_null()
    }

    /// Inserts `node` where its ticket belongs. The younger ones, which are there already, are few.
    ///
    /// # Safety
    /// The caller has what guards the list, its nodes and `node`, which is not in it. All of them
    /// are alive.
    pub unsafe fn insert(&mut self, node: *const Node) {
        // SAFETY: all links are the caller's, and each call is for one node at a time.
        unsafe {
            let (mut older, mut younger) = (self.youngest, ptr::null());
            while !older.is_null() && (*node).is_older(&*older) {
                younger = older;
                older = (*older).links(|links| links.neighbours[WHICH].older);
            }
            (*node).links(|links| links.neighbours[WHICH] = Neighbours { older, younger });
            self.set_younger(older, node);
            self.set_older(younger, node);
        }
    }

    /// Takes `node` out of the list.
    ///
    /// # Safety
    /// The caller has what guards the list and its nodes, of which `node` is one.
    pub unsafe fn remove(&mut self, node: *const Node) {
        // SAFETY: as above.
        unsafe {
            let Neighbours { older, younger } = (*node).links(|links| links.neighbours[WHICH]);
            self.set_younger(older, younger);
            self.set_older(younger, older);
        }
    }

    /// # Safety
    /// As `remove`; `node` may be null.
    unsafe fn set_younger(&mut self, node: *const Node, younger: *const Node) {
        if node.is_null() {
            self.oldest = younger;
        } else {
            // SAFETY: the node is alive and in this list, and its links are the caller's.
            unsafe { (*node).links(|links| links.neighbours[WHICH].younger = younger) };
        }
    }

    /// # Safety
    /// As `set_younger`.
    unsafe fn set_older(&mut self, node: *const Node, older: *const Node) {
        if node.is_null() {
            self.youngest = older;
        } else {
            // SAFETY: as above.
            unsafe { (*node).links(|links| links.neighbours[WHICH].older = older) };
        }
    }

    /// The nodes, the oldest first. The current one may be removed.
    ///
    /// # Safety
    /// The caller has what guards the list and its nodes until it drops the iterator.
    pub unsafe fn iter(&self) -> impl Iterator<Item = *const Node> + use<WHICH> {
        let mut next = self.oldest;
        core::iter::from_fn(move || {
            let node = next;
            if node.is_null() {
                return None;
            }
            // SAFETY: the node was in the list when it became the next, and is alive.
            next = unsafe { (*node).links(|links| links.neighbours[WHICH].younger) };
            Some(node)
        })
    }
}

/// Makes a complex set a candidate when a semaphore changes that decides about it, although it is
/// queued at another.
pub(crate) struct Watch {
    node: *const Node,
    links: UnsafeCell<(*const Watch, *const Watch)>,
}

/// The watches on a semaphore, in no order.
pub(crate) struct Watches {
    first: *const Watch,
}

impl Watch {
    pub fn new(node: &Node) -> Self {
        Self { node, links: UnsafeCell::new((ptr::null(), ptr::null())) }
    }

    /// # Safety
    /// The caller has what guards the watch.
    unsafe fn links<R>(&self, f: impl FnOnce(&mut (*const Watch, *const Watch)) -> R) -> R {
        // SAFETY: no other reference to the links exists, as the caller promises.
        self.links.with_mut(|links| f(unsafe { &mut *links }))
    }
}

impl Watches {
    pub const fn new() -> Self {
        Self { first: ptr::null() }
    }

    pub fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// # Safety
    /// The caller has what guards the watches. `watch` is not among them, and is alive until it is
    /// removed.
    pub unsafe fn insert(&mut self, watch: *const Watch) {
        // SAFETY: as the caller says.
        unsafe {
            (*watch).links(|links| *links = (ptr::null(), self.first));
            if !self.first.is_null() {
                (*self.first).links(|links| links.0 = watch);
            }
        }
        self.first = watch;
    }

    /// # Safety
    /// The caller has what guards the watches, of which `watch` is one.
    pub unsafe fn remove(&mut self, watch: *const Watch) {
        // SAFETY: as the caller says.
        unsafe {
            let (before, after) = (*watch).links(|links| *links);
            if before.is_null() {
                self.first = after;
            } else {
                (*before).links(|links| links.1 = after);
            }
            if !after.is_null() {
                (*after).links(|links| links.0 = before);
            }
        }
    }

    /// The sets that watch. A set with several earlier operations on the semaphore occurs as often.
    ///
    /// # Safety
    /// The caller has what guards the watches until it drops the iterator.
    pub unsafe fn iter(&self) -> impl Iterator<Item = *const Node> + use<> {
        let mut next = self.first;
        core::iter::from_fn(move || {
            if next.is_null() {
                return None;
            }
            let watch = next;
            // SAFETY: the watch is linked, and so alive.
            unsafe {
                next = (*watch).links(|links| links.1);
                Some((*watch).node)
            }
        })
    }
}

impl Op {
    /// Whether it changes its semaphore.
    pub(crate) fn alters(&self) -> bool {
        self.action != Action::WaitZero && self.amount != 0
    }
}
