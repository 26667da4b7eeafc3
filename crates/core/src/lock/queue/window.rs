//! The window: which waiters of a first-in-first-out lock are awake.
use super::status::{Cpu, Kind, Status};
use super::{Links, Newest, Node, newer};
use crate::sys::cpu;
use crate::sys::futex::{Futex, FutexKey, Local};
use crate::sys::sync::AtomicPtr;
use crate::sys::sync::Ordering::Relaxed;
use core::ptr;

/// The oldest node, or null, and the width of the window in the low bits of its address. Zero: the
/// window is open, so that each waiter is in it.
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
    pub(super) const NONE: Self = Self { edge: ptr::null(), count: 0, calm: 0 };
}

const WIDTH: usize = align_of::<Node>() - 1;
const MOST: usize = WIDTH;
const FEW_CPUS: u32 = 4;
const GROWS: u32 = 64;
const TRIES: u32 = 1_024;

/// How many waiters behind the granted one are examined (rule 2).
const NEAR: usize = 2;

/// The CPU of the calling thread.
pub(super) fn here() -> Cpu {
    Cpu::new(cpu::current())
}

/// How many CPUs the process may use.
pub(super) fn cpus() -> u32 {
    cpu::usable().count_ones()
}

/// Whether the process may use so many CPUs that the window is wide.
pub(super) fn is_wide() -> bool {
    cpus() >= FEW_CPUS
}

/// What a hand-over has found.
pub(super) struct Granted {
    pub inside: Inside,
    pub was: Status,
}

/// Waiters to wake, in this order.
pub(super) type Sleepers = [Option<FutexKey<Local>>; 3];

/// Nobody to wake.
pub(super) const NOBODY: Sleepers = [None; 3];

/// Wakes them.
pub(super) fn wake(sleepers: Sleepers) {
    sleepers.into_iter().flatten().for_each(|key| _ = key.wake(1));
}

impl Window {
    crate::const_fn! {
        /// Open, without waiters.
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
    pub(super) fn is_open(&self) -> bool {
        is_wide() && self.width() == 0
    }
}

/// Detaches `oldest`, which is not the newest node, answers it, and only then moves the window.
/// Returns whom to wake. The lock lives, since another waiter is queued.
///
/// # Safety
/// As [`detach_oldest`](super::detach_oldest); the lock belongs to the waiter from now on. The lock has a window.
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
        let [one, two] = advance(word, window, first, newest, Granted { inside, was });
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

/// Moves the window on by the waiter that was granted; `first` is the oldest now. Returns whom to wake.
///
/// # Safety
/// The caller is the queue-lock holder. `newest` was read acquiring, and `first` is queued.
pub(super) unsafe fn advance(
    word: &impl Newest,
    window: &Window,
    first: *const Node,
    newest: *const Node,
    granted: Granted,
) -> [Option<FutexKey<Local>>; 2] {
    let cpus = cpus();
    let holder = granted.was.last_cpu();
    if cpus < FEW_CPUS {
        return [unsafe { wake_near(word, first, newest, holder) }, None];
    }
    let asleep = granted.was.is(Kind::Parked) || granted.was.is(Kind::Leaving);
    let mut width = window.width();
    let half = ((cpus / 2).saturating_sub(1) as usize).clamp(1, MOST);
    let full = (cpus as usize - 1).clamp(1, MOST);
    let mut inside = granted.inside;
    if width == 0 {
        if !asleep {
            return [None, None];
        }
        width = half;
        inside = Inside::NONE;
        window.set_width(width);
    } else if asleep {
        width = (width.min(half) / 2).max(1);
        inside.calm = 0;
        window.set_width(width);
    } else {
        inside.calm += 1;
        if inside.calm % GROWS == 0 && width < half || inside.calm % TRIES == 0 {
            width = if width < half { width + 1 } else { full };
            window.set_width(width);
        }
    }
    inside.count = inside.count.saturating_sub(1);
    if inside.count == 0 {
        inside.edge = ptr::null();
    }
    let mut keys = [None, None];
    for key in &mut keys {
        if inside.count as usize >= width {
            break;
        }
        let next = if inside.edge.is_null() {
            first
        } else if inside.edge == newest {
            if width >= half {
                window.set_width(0);
            }
            break;
        } else {
            unsafe { newer(word, inside.edge, newest) }
        };
        let hint = if width == 1 { holder } else { Cpu::UNKNOWN };
        *key = mark(unsafe { &(*next).status }, hint);
        (inside.edge, inside.count) = (next, inside.count + 1);
    }
    unsafe { Node::links(first, |links| links.inside = inside) };
    keys
}

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
