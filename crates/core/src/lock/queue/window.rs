//! The window: which waiters of a lock in order are awake.
//!
//! A lock in order goes to one certain waiter. To wake a thread on an idle CPU takes 5 to 50 us,
//! and costs the waking thread a microsecond or two. If each waiter were woken by its grant, each
//! hand-over would take as long. So the waiters at the head of the queue are awake before their
//! turn, and poll their own status. They are the *window*.
//!
//! # How wide it is
//! With fewer than [`FEW_CPUS`] CPUs the window is one waiter: see below. Otherwise:
//!
//! 1. *Open*, at first: each waiter polls as it comes, for
//!    [`FIRST_NS`](crate::spin::Spin::FIRST_NS), longer on more than 16 CPUs. While all are granted
//!    awake, nothing is to be done for the window.
//! 2. A grant that meets a sleeper *narrows* it: there are more waiters than CPUs, or the queue
//!    takes longer than a spin. An open window gets half of the CPUs, less one. A narrow one is
//!    halved. From then on a waiter that comes sleeps at once. Each hand-over moves the window on
//!    by a waiter, and wakes it.
//! 3. [`GROWS`] hand-overs in a row that meet no sleeper widen it by one, up to half of the CPUs.
//!    [`TRIES`] of them try all CPUs but one. A window that reaches the newest waiter is open
//!    again.
//!
//! A fixed width fails: with as many awake as there are CPUs, and four threads a CPU, a waiter that
//! polls loses its CPU to one that is woken, and is granted asleep. (The cost model, 8 CPUs, 32
//! threads: 0.13 M hand-overs a second with a width of 7, 0.51 with 3, 0.26 with 1.)
//!
//! # Few CPUs
//! A thread wakes up on the CPU where it went to sleep, its *last CPU*, unless that is busy and
//! another one is idle. The queue-lock holder knows the last CPU of the waiter that it grants. The
//! rules:
//!
//! 1. If a waiter has the last CPU of the granted waiter, it is not woken ahead: its grant wakes
//!    it. It cannot run before the new holder sleeps. Woken early, it takes the CPU from the
//!    holder, or runs before the holder only to find that it has to wait.
//! 2. Any other waiter can run beside the holder. The next one is woken ahead, or, if that cannot
//!    run, the one after it ([`NEAR`]).
//!
//! So with two CPUs the lock is passed on as if there were two queues, one for each CPU. A waiter
//! that is woken ahead is told the last CPU of the granted waiter. If that is its own CPU, it does
//! not poll, or stops. (Without that, two CPUs of a Xeon, 8 threads, 100 ns inside and outside:
//! 0.11 M/s for 0.29.) The same holds of a window of one waiter on more CPUs.
//!
//! # What does not depend on it
//! No position in the queue and no grant: a waiter that sleeps is woken by its grant. All here is
//! written by the queue-lock holder. An arriving thread reads the width, which may be out of date:
//! then one waiter sleeps, or polls, in vain. A last CPU may be unknown, as in models.
//!
//! # Which nodes it names
//! `first` and the edge are queued: whoever detaches the first node sets `first` to the next one,
//! and whoever detaches another forgets the edge. The edge lies in the first node ([`Inside`]), and
//! the next node gets it when the first is granted.

use super::status::{Cpu, Kind, Status};
use super::{Links, Newest, Node, newer};
use crate::sys::cpu;
use crate::sys::futex::{Futex, FutexKey, Local};
use crate::sys::sync::AtomicPtr;
use crate::sys::sync::Ordering::Relaxed;
use core::ptr;

/// The window of a lock: eight bytes, zero at first.
///
/// They are the address of the oldest node, or null if no queue-lock holder has seen it, and the
/// width in the bits that the address leaves free. A width of zero is an open window.
#[derive(Debug)]
pub struct Window {
    first: AtomicPtr<Node>,
}

/// Which waiters are awake, from the oldest on.
#[derive(Clone, Copy)]
pub(super) struct Inside {
    /// The newest node in the window, or null.
    edge: *const Node,
    /// How many nodes are in the window.
    count: u32,
    /// How many hand-overs in a row met a waiter that was awake.
    calm: u32,
}

impl Inside {
    /// None that is known of.
    pub(super) const NONE: Self = Self { edge: ptr::null(), count: 0, calm: 0 };
}

/// The bits of the width.
const WIDTH: usize = align_of::<Node>() - 1;
/// The widest window that is not open.
const MOST: usize = WIDTH;
/// With fewer CPUs one waiter is woken ahead. Two were measured; three were not.
const FEW_CPUS: u32 = 4;
/// After so many hand-overs without a sleeper the window grows. The cost model; not measured.
const GROWS: u32 = 64;
/// After so many it is as wide as the machine for a try. The cost model; not measured.
const TRIES: u32 = 1_024;
/// How many waiters behind the granted one are examined on few CPUs. Others were not measured.
const NEAR: usize = 2;

/// The CPU of the calling thread.
pub fn here() -> Cpu {
    Cpu::new(cpu::current())
}

/// How many CPUs the process may use.
pub(super) fn cpus() -> u32 {
    cpu::count()
}

/// How many spins of [`FIRST_NS`](crate::spin::Spin::FIRST_NS) a waiter in the window makes: the
/// more waiters poll, the longer is its wait.
pub(super) fn patience() -> u32 {
    (cpus() / 16).max(1)
}

/// Whether the process may use so many CPUs that the window is wide.
pub(super) fn is_wide() -> bool {
    cpus() >= FEW_CPUS
}

/// What the hand-overs since the last call have found.
#[derive(Clone, Copy)]
pub struct Granted {
    inside: Inside,
    asleep: bool,
    holder: Cpu,
    count: u32,
}

impl Granted {
    /// Of one waiter, whose status was `was`; `inside` is what it knew as the oldest.
    pub(super) fn one(inside: Inside, was: Status) -> Self {
        let asleep = was.is(Kind::Parked) || was.is(Kind::Leaving);
        Self { inside, asleep, holder: was.last_cpu(), count: 1 }
    }

    /// Of `node` too, which is the oldest, and is about to be granted.
    ///
    /// # Safety
    /// The caller is the queue-lock holder, and `node` is queued.
    pub unsafe fn and(granted: Option<Self>, node: *const Node) -> Self {
        // SAFETY: the node is queued, so it is alive and its links are the queue-lock holder's.
        let (inside, was) =
            unsafe { (Node::links(node, |links| links.inside), (*node).status.load(Relaxed)) };
        let this = Self::one(inside, Status(was));
        granted.map_or(this, |before| Self {
            inside: before.inside,
            asleep: before.asleep || this.asleep,
            count: before.count + 1,
            ..this
        })
    }
}

/// Waiters to wake, in this order.
pub type Sleepers = [Option<FutexKey<Local>>; 3];

/// Nobody to wake.
pub const NOBODY: Sleepers = [None; 3];

/// Wakes them.
pub fn wake(sleepers: Sleepers) {
    sleepers.into_iter().flatten().for_each(|key| _ = key.wake(1));
}

impl Window {
    crate::const_fn! {
        /// An open window of an empty queue.
        #[allow(clippy::new_without_default)]
        pub fn new() -> Self {
            Self { first: AtomicPtr::new(ptr::null_mut()) }
        }
    }

    pub(super) fn first(&self) -> *const Node {
        self.first.load(Relaxed).map_addr(|bits| bits & !WIDTH)
    }

    pub(super) fn set_first(&self, first: *const Node) {
        let width = self.width();
        self.first.store(first.cast_mut().map_addr(|bits| bits | width), Relaxed);
    }

    fn width(&self) -> usize {
        self.first.load(Relaxed).addr() & WIDTH
    }

    fn set_width(&self, width: usize) {
        self.first.store(self.first.load(Relaxed).map_addr(|bits| bits & !WIDTH | width), Relaxed);
    }

    /// Whether an arriving waiter is in the window.
    pub fn is_open(&self) -> bool {
        is_wide() && self.width() == 0
    }
}

/// Detaches `oldest`, which is not the newest node, answers it, and only then moves the window.
/// Returns whom to wake. The lock lives, since another waiter is queued.
///
/// # Safety
/// As [`detach_oldest`](super::detach_oldest); the lock belongs to the waiter from now on. The lock
/// has a window.
pub(super) unsafe fn grant_first(word: &impl Newest, oldest: *const Node, newest: *const Node) -> Sleepers {
    let window = word.window().expect("a lock that grants first has a window");
    // SAFETY: the contract; the links belong to the caller. The node is detached, and is not
    // touched after its answer.
    unsafe {
        let Links { newer, inside, .. } = Node::links(oldest, |links| *links);
        let open = window.is_open();
        if open && !newer.is_null() {
            window.set_first(newer);
        }
        let (was, key) = Node::answer_with(oldest, Kind::Granted);
        if open && !newer.is_null() && key.is_none() {
            return NOBODY;
        }
        let first = if newer.is_null() { complete_after(oldest, newest) } else { newer };
        window.set_first(first);
        let [one, two, _] = advance(word, window, first, newest, Granted::one(inside, was));
        // A waiter that is to run on this CPU may take it when it is woken.
        if was.last_cpu().is(here()) { [one, two, key] } else { [key, one, two] }
    }
}

/// Completes the links of the queue that begins at `newest`, and returns the node after `gone`,
/// the node that knew the oldest, and was detached.
///
/// # Safety
/// As [`complete`](super::complete).
unsafe fn complete_after(gone: *const Node, newest: *const Node) -> *const Node {
    // SAFETY: the nodes from the newest to the one behind `gone` are queued.
    unsafe {
        let mut node = newest;
        loop {
            let older = Node::links(node, |links| links.older);
            if older == gone {
                Node::links(newest, |links| links.oldest = node);
                return node;
            }
            Node::links(older, |links| links.newer = node);
            node = older;
        }
    }
}

/// Moves the window on by the waiters that were granted; `first` is the oldest now. Returns whom to
/// wake, which the caller does.
///
/// # Safety
/// The caller is the queue-lock holder, and `window` is that of the lock. `newest` was read
/// acquiring, and `first` and it are queued.
pub unsafe fn advance(
    word: &impl Newest,
    window: &Window,
    first: *const Node,
    newest: *const Node,
    granted: Granted,
) -> Sleepers {
    if !is_wide() {
        // SAFETY: the caller is the queue-lock holder, and `first` and `newest` are queued.
        return [unsafe { wake_near(word, first, newest, granted.holder) }, None, None];
    }
    let Granted { mut inside, asleep, holder, count } = granted;
    if window.width() == 0 {
        if !asleep {
            return NOBODY;
        }
        window.set_width(half());
        inside = Inside::NONE;
    } else if asleep {
        window.set_width((window.width().min(half()) / 2).max(1));
        inside.calm = 0;
    } else {
        inside.calm = inside.calm.wrapping_add(1);
        if window.width() < half() {
            window.set_width(window.width() + usize::from(inside.calm.is_multiple_of(GROWS)));
        } else if inside.calm.is_multiple_of(TRIES) {
            window.set_width((cpus() as usize).saturating_sub(1).clamp(1, MOST));
        }
    }
    inside.count = inside.count.saturating_sub(count);
    if inside.count == 0 {
        inside.edge = ptr::null();
    }
    let mut sleepers = NOBODY;
    // Two at most: it moves on by one, and widens by one.
    for sleeper in &mut sleepers[..2] {
        if inside.count as usize >= window.width() {
            break;
        }
        if inside.edge == newest {
            if window.width() >= half() {
                window.set_width(0);
            }
            break;
        }
        let hint = if window.width() == 1 { holder } else { Cpu::UNKNOWN };
        // SAFETY: the edge is queued, or null, and is not the newest node. Queued nodes are alive.
        unsafe {
            inside.edge = if inside.edge.is_null() { first } else { newer(word, inside.edge, newest) };
            *sleeper = mark(&(*inside.edge).status, hint);
        }
        inside.count += 1;
    }
    // SAFETY: the first node is queued, and its links belong to the queue-lock holder.
    unsafe { Node::links(first, |links| links.inside = inside) };
    sleepers
}

/// Half of the CPUs, less one for the holder.
fn half() -> usize {
    (cpus() as usize / 2).saturating_sub(1).clamp(1, MOST)
}

/// Wakes one of the next waiters ahead, by the rules for few CPUs. Returns by what, if it sleeps.
///
/// # Safety
/// The caller is the queue-lock holder. `second` and `newest` are queued.
unsafe fn wake_near(
    word: &impl Newest,
    second: *const Node,
    newest: *const Node,
    holder: Cpu,
) -> Option<FutexKey<Local>> {
    let mut node = second;
    for _ in 0..NEAR {
        // SAFETY: queued nodes are alive.
        let status = unsafe { &(*node).status };
        if !Status(status.load(Relaxed)).last_cpu().is(holder) {
            return mark(status, holder);
        }
        if node == newest {
            return None;
        }
        // SAFETY: as above, and the node is not the newest.
        node = unsafe { newer(word, node, newest) };
    }
    None
}

/// Sets `WokenAhead` in the status. Returns by what to wake the waiter if it is asleep.
fn mark(status: &Futex<Local>, holder: Cpu) -> Option<FutexKey<Local>> {
    let mut seen = Status(status.load(Relaxed));
    while seen.is(Kind::Waiting) || seen.is(Kind::WokenAhead) || seen.is(Kind::Parked) {
        let ahead = seen.woken_ahead(holder);
        if seen == ahead {
            return None;
        }
        match status.compare_exchange(seen.0, ahead.0, Relaxed, Relaxed) {
            Ok(_) => return seen.is(Kind::Parked).then(|| status.key()),
            Err(now) => seen = Status(now),
        }
    }
    None // it leaves
}
