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
//!    [`FIRST_NS`](crate::spin::Spin::FIRST_NS), longer from 32 CPUs on. While all are granted
//!    awake, nothing is to be done for the window.
//! 2. A grant that meets a sleeper closes it: a holder was held up, or sections are long, or there
//!    are more waiters than CPUs. [`CLOSED`] waiters are in the window then. A waiter that comes
//!    sleeps at once. Each hand-over moves the window on by a waiter or two, and wakes them.
//! 3. A waiter is *late* if it is granted before it was woken, or has been woken and does not run
//!    yet. It is *tired* if it has polled for so long that it sleeps again. After each [`PERIOD`]
//!    of hand-overs, a window with [`MANY`] tired waiters is made half as wide; otherwise one with
//!    [`MANY`] late ones twice as wide, and one without any late ones narrower by one. So it
//!    becomes as wide as it takes to wake a thread, in hand-overs. But where all waiters are
//!    granted within [`SHORT_US`], and few are tired, it is made wider: to poll is cheaper than to
//!    sleep then. A window that is to go past the newest waiter is open again, and so is that of an
//!    empty queue.
//! 4. With more waiters than CPUs it has [`CROWDED`] at most. A waiter that is bound to the CPU of
//!    the holder, or of another one in the window, is not woken ahead: that one would lose the CPU,
//!    and be granted while it does not run.
//! 5. A window of one waiter goes by the rules for few CPUs.
//!
//! Sixteen CPUs of a Xeon under KVM, 100 ns inside and outside, in M/s: with 8 threads 1.5, and
//! 0.36 with one waiter awake. With 64 threads that may run anywhere, as many awake as are granted
//! within 30 us: 0.22; three: 0.49, two: 0.40, one: 0.24. With 64 threads bound to four a CPU,
//! three whose CPUs are not compared: 0.09; one: 0.25; three whose CPUs are: 0.43.
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
//! 0.11 M/s for 0.29.)
//!
//! # What does not depend on it
//! No position in the queue and no grant: a waiter that sleeps is woken by its grant. All here is
//! written by the queue-lock holder. An arriving thread reads the width, which may be out of date:
//! then one waiter sleeps, or polls, in vain. A last CPU may be unknown, as in models.
//!
//! # Which nodes it names
//! `first` is queued, and so is the edge of a window that is not open: whoever detaches the first
//! node sets `first` to the next one, and whoever detaches another forgets the edge. The edge lies
//! in the first node ([`Inside`]), and goes to the next node when the first is detached. An open
//! window has no edge: what nodes know of one is not used, and is forgotten when it closes.

use super::status::{Cpu, Kind, Status};
use super::{Links, Newest, Node, newer};
use crate::sys::cpu;
use crate::sys::futex::{Futex, FutexKey, Local};
use crate::sys::sync::AtomicPtr;
use crate::sys::sync::Ordering::Relaxed;
use crate::sys::time::Deadline;
use crate::sys::world;
use core::ptr;
use core::time::Duration;

/// The window of a lock: eight bytes, zero at first.
///
/// They are the address of the oldest node, or null if no queue-lock holder has seen it, and the
/// width in the bits that the address leaves free. A width of zero is an open window.
#[derive(Debug)]
pub struct Window {
    first: AtomicPtr<Node>,
}

/// Which waiters are awake, and what the last hand-overs were like.
#[derive(Clone, Copy)]
pub(super) struct Inside {
    /// The newest node in the window, or null.
    edge: *const Node,
    /// When the width was set, in microseconds modulo 2^16; zero if that is not known.
    since: u16,
    /// How many hand-overs there were since.
    granted: u8,
    /// How many of them met a waiter that was late.
    late: u8,
    /// How many of them met a waiter that was tired.
    tired: u8,
    /// How many nodes are in the window.
    count: u8,
    /// How many nodes are linked behind the oldest one, as far as they were counted: those that
    /// were linked while the window was open were not. 255 is more.
    linked: u8,
    /// The most that were, since the width was set.
    longest: u8,
}

impl Inside {
    /// None that is known of.
    pub(super) const NONE: Self =
        Self { edge: ptr::null(), since: 0, granted: 0, late: 0, tired: 0, count: 0, linked: 0, longest: 0 };

    /// `nodes` more were linked.
    pub(super) fn link(&mut self, nodes: u32) {
        self.linked = more(self.linked, nodes);
        self.longest = self.longest.max(self.linked);
    }

    /// A node has left: which waiters are awake is not known.
    pub(super) fn forget(&mut self) {
        (self.edge, self.count, self.linked) = (ptr::null(), 0, 0);
    }

    /// The oldest nodes were granted.
    fn grant(&mut self, granted: Granted) {
        let less = |count: u8| u32::from(count).saturating_sub(granted.count) as u8;
        (self.linked, self.count) = (less(self.linked), less(self.count));
        self.granted = more(self.granted, granted.count);
        (self.late, self.tired) = (more(self.late, granted.late), more(self.tired, granted.tired));
        if self.count == 0 {
            self.edge = ptr::null();
        }
    }
}

fn more(count: u8, by: u32) -> u8 {
    u32::from(count).saturating_add(by).min(u32::from(u8::MAX)) as u8
}

/// The bits of the width.
const WIDTH: usize = align_of::<Node>() - 1;
/// The widest window that is not open.
const MOST: usize = WIDTH;
/// With fewer CPUs one waiter is woken ahead. Two were measured; three were not.
const FEW_CPUS: u32 = 4;
/// How many waiters are in a window that has just closed. Four made no difference in the cost model
/// with noise.
const CLOSED: usize = 2;
/// After so many hand-overs the width is set. Others were not measured.
const PERIOD: u8 = 32;
/// If so many of them met a waiter that was late, the window is too narrow; or tired, too wide.
/// Others were not measured.
const MANY: u8 = 8;
/// If all waiters are granted within so many microseconds, they poll, which they do for longer.
/// (The cost model with noise, 16 CPUs and threads, M/s without this rule and with it. `FairMutex`,
/// 100 ns inside and outside: 1.73, 2.04. `Semaphore`, 500 ns: 0.65, 1.06; 1 and 9 us: 0.56, 0.69.
/// Of 24 cells of each lock, with 8 and 16 CPUs, one and four threads a CPU, and six pairs of
/// times, none loses. Without noise none of them differs. `cargo xtask vm --cost -- --machine
/// crates/checker/cost/machines/noisy-sixteen-cpu-xeon-kvm.json --cpus 16 --threads 16 --locks
/// fair,semaphore --hold 100 --think 100 --time 20000 --warm-up 8000`.)
const SHORT_US: u32 = 20;
/// How many waiters are awake where there are more than CPUs: see the figures above.
const CROWDED: usize = 3;
/// How many waiters behind the granted one are examined on few CPUs. Others were not measured.
const NEAR: usize = 2;

/// The CPU of the calling thread, and whether it is bound to that, as far as it knew at its first
/// wait, and modulo 64.
pub fn here() -> Cpu {
    let here = Cpu::new(cpu::current());
    if cpu::usable().is_power_of_two() { here.bound() } else { here }
}

/// How many CPUs the process may use.
pub(super) fn cpus() -> u32 {
    cpu::count()
}

/// How many spins of [`FIRST_NS`](crate::spin::Spin::FIRST_NS) a waiter in the window makes: the
/// more waiters poll, the longer is its wait. More than 16 CPUs were not measured.
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
    asleep: bool,
    late: u32,
    tired: u32,
    holder: Cpu,
    count: u32,
}

impl Granted {
    /// Of one waiter, whose status was `was`.
    fn one(was: Status) -> Self {
        let asleep = was.is_asleep();
        let (late, tired) = (was.is_late().into(), was.is_tired().into());
        Self { asleep, late, tired, holder: was.last_cpu(), count: 1 }
    }

    /// Of `node` too, which is about to be granted.
    ///
    /// # Safety
    /// `node` is alive.
    pub unsafe fn and(granted: Option<Self>, node: *const Node) -> Self {
        // No status is that. An exchange brings the line as it takes to detach the node and answer
        // it, also one that fails.
        // SAFETY: the node is alive, by the contract.
        let seen = unsafe { (*node).status.compare_exchange(u32::MAX, u32::MAX, Relaxed, Relaxed) };
        let this = Self::one(Status(seen.unwrap_or_else(|seen| seen)));
        granted.map_or(this, |before| Self {
            asleep: before.asleep || this.asleep,
            late: before.late + this.late,
            tired: before.tired + this.tired,
            count: before.count + 1,
            ..this
        })
    }
}

/// Waiters to wake, in this order.
///
/// A queue-lock holder that has to grant once more grants first. If each waiter were woken at once,
/// one thread that serves many short sections would make a system call for each. (The cost model,
/// 16 CPUs and threads, 100 ns inside and outside: 0.54 M/s, and 2.02.)
pub struct Sleepers {
    keys: [Option<FutexKey<Local>>; Self::MOST],
    count: usize,
}

impl Sleepers {
    /// As many as two grants may add.
    const MOST: usize = 6;

    /// Nobody.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self { keys: [None; Self::MOST], count: 0 }
    }

    fn push(&mut self, key: Option<FutexKey<Local>>) {
        if key.is_some() {
            self.keys[self.count] = key;
            self.count += 1;
        }
    }

    /// Wakes them, unless there is room for those of one more grant.
    pub fn make_room(&mut self) {
        if self.count + 3 > Self::MOST {
            self.wake();
        }
    }

    /// Wakes them.
    pub fn wake(&mut self) {
        self.keys[..self.count].iter().flatten().for_each(|key| _ = key.wake(1));
        self.count = 0;
    }
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

    /// The queue is about to be empty: no node is the oldest, and the window is open.
    pub(super) fn clear(&self) {
        self.first.store(ptr::null_mut(), Relaxed);
    }

    fn width(&self) -> usize {
        self.first.load(Relaxed).addr() & WIDTH
    }

    /// After the hand-overs `granted`, one of which has met a sleeper if the window is open: closes
    /// that, or counts, and sets the width if a period is over.
    fn set_width_after(&self, inside: &mut Inside, granted: Granted) {
        let width = self.width();
        if width == 0 {
            self.set_width(CLOSED);
            *inside = Inside::NONE;
            return;
        }
        inside.grant(granted);
        if inside.since == 0 {
            *inside = Inside { since: now_us(), granted: 0, late: 0, tired: 0, ..*inside };
        }
        if inside.granted < PERIOD {
            return;
        }
        let (now, longest) = (now_us(), u32::from(inside.longest));
        let lasted = u32::from(now.wrapping_sub(inside.since));
        let short = longest > 0 && longest * lasted <= SHORT_US * u32::from(inside.granted);
        let crowded = longest >= cpus().min(u8::MAX.into());
        let wanted = match inside.late {
            _ if inside.tired >= MANY => width / 2,
            _ if short => 2 * width,
            0 => width - 1,
            late if late >= MANY => 2 * width,
            _ => width,
        };
        self.set_width(wanted.clamp(1, if crowded { CROWDED } else { all() }));
        *inside = Inside { since: now, granted: 0, late: 0, tired: 0, longest: inside.linked, ..*inside };
    }

    fn set_width(&self, width: usize) {
        self.first.store(self.first.load(Relaxed).map_addr(|bits| bits & !WIDTH | width), Relaxed);
    }

    /// Whether nodes know which waiters are awake.
    pub(super) fn is_closed(&self) -> bool {
        self.width() != 0
    }

    /// Whether an arriving waiter is in the window.
    pub fn is_open(&self) -> bool {
        is_wide() && self.width() == 0
    }
}

/// Detaches `oldest`, which is not the newest node nor a task's, answers it, and only then moves
/// the window. Adds whom to wake. The lock lives, since another waiter is queued.
///
/// # Safety
/// As [`detach_oldest`](super::detach_oldest); the lock belongs to the waiter from now on. The lock
/// has a window.
pub(super) unsafe fn grant_first(
    word: &impl Newest,
    oldest: *const Node,
    newest: *const Node,
    ahead: &mut Sleepers,
) {
    let window = word.window().expect("a lock that grants first has a window");
    // SAFETY: the contract; the links belong to the caller. The node is detached, and is not
    // touched after its answer.
    unsafe {
        let Links { newer, mut inside, .. } = Node::links(oldest, |links| *links);
        let open = window.is_open();
        if open && !newer.is_null() {
            window.set_first(newer);
        }
        let (was, key) = Node::answer_with(oldest, Kind::Granted);
        if open && !newer.is_null() && key.is_none() {
            return;
        }
        let mut first = newer;
        if first.is_null() {
            let nodes;
            (first, nodes) = complete_after(oldest, newest);
            inside.link(nodes);
        }
        window.set_first(first);
        if window.is_closed() {
            Node::links(first, |links| links.inside = inside);
        }
        // A waiter that is to run on this CPU may take it when it is woken.
        let is_last = was.last_cpu().is(here());
        if !is_last {
            ahead.push(key);
        }
        advance(word, window, first, newest, Granted::one(was), ahead);
        if is_last {
            ahead.push(key);
        }
    }
}

/// Completes the links of the queue that begins at `newest`. Returns the node after `gone`, the
/// node that knew the oldest, and was detached; and how many nodes were linked.
///
/// # Safety
/// As [`complete`](super::complete).
unsafe fn complete_after(gone: *const Node, newest: *const Node) -> (*const Node, u32) {
    // SAFETY: the nodes from the newest to the one behind `gone` are queued.
    unsafe {
        let (mut node, mut nodes) = (newest, 1);
        loop {
            let older = Node::links(node, |links| links.older);
            if older == gone {
                Node::links(newest, |links| links.oldest = node);
                return (node, nodes);
            }
            Node::links(older, |links| links.newer = node);
            (node, nodes) = (older, nodes + 1);
        }
    }
}

/// Moves the window on by the waiters that were granted; `first` is the oldest now, and has what
/// the one before it knew. Adds whom to wake: two at most.
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
    ahead: &mut Sleepers,
) {
    let Granted { asleep, holder, .. } = granted;
    if !is_wide() {
        // What nodes know of a wider window is out of date from now on: an open one asks none.
        window.set_width(0);
        // SAFETY: the caller is the queue-lock holder, and `first` and `newest` are queued.
        ahead.push(unsafe { wake_near(word, first, newest, holder) });
        return;
    }
    if window.width() == 0 && !asleep {
        return; // without a look at the line that the first waiter polls
    }
    // SAFETY: the first node is queued, and its links belong to the queue-lock holder.
    let mut inside = unsafe { Node::links(first, |links| links.inside) };
    window.set_width_after(&mut inside, granted);
    // SAFETY: as above.
    unsafe { Node::links(first, |links| links.inside = inside) };
    if window.width() == 1 {
        // SAFETY: as above.
        ahead.push(unsafe { wake_near(word, first, newest, holder) });
        return;
    }
    let Inside { mut edge, count, .. } = inside;
    // Two at most: it moves on by one, and widens.
    let room = window.width().saturating_sub(usize::from(count)).min(2);
    let mut added = 0;
    for _ in 0..room {
        if edge == newest {
            window.set_width(0);
            break;
        }
        // SAFETY: the edge is queued, or null, and is not the newest node. Queued nodes are alive.
        unsafe {
            let before = edge;
            edge = if edge.is_null() { first } else { newer(word, edge, newest) };
            if !shares_cpu(first, before, edge, holder) {
                ahead.push(mark(&(*edge).status, Cpu::UNKNOWN));
            }
        }
        added += 1;
    }
    // SAFETY: the first node is queued, and its links belong to the queue-lock holder.
    unsafe { Node::links(first, |links| (links.inside.edge, links.inside.count) = (edge, count + added)) };
}

/// Whether the waiter `node` is bound to the CPU that the holder was on last, or a waiter from
/// `first` to `last`. Others may run elsewhere.
///
/// # Safety
/// The caller is the queue-lock holder. The nodes are queued, and linked; but `last` may be null,
/// if there is no such waiter.
unsafe fn shares_cpu(first: *const Node, last: *const Node, node: *const Node, holder: Cpu) -> bool {
    // SAFETY: queued nodes are alive, and their links belong to the queue-lock holder.
    unsafe {
        let cpu_of = |node: *const Node| Status((*node).status.load(Relaxed)).last_cpu();
        let mine = cpu_of(node);
        if !mine.is_bound() {
            return false;
        }
        let mut other = if last.is_null() { node } else { first };
        while other != node && !cpu_of(other).is(mine) {
            other = Node::links(other, |links| links.newer);
        }
        mine.is(holder) || other != node
    }
}

/// The time in microseconds modulo 2^16, but never zero; 1 in a model that has no time.
fn now_us() -> u16 {
    let now = || Deadline::after(Duration::ZERO).since_zero().as_micros() as u16;
    if world::has_rates() { now().max(1) } else { 1 }
}

/// All CPUs but the holder's.
fn all() -> usize {
    (cpus() as usize).saturating_sub(1).clamp(1, MOST)
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
        let seen = Status(status.load(Relaxed));
        if !seen.is_task() && !seen.last_cpu().is(holder) {
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
    while !seen.is_task() && (seen.is(Kind::Waiting) || seen.is(Kind::WokenAhead) || seen.is(Kind::Parked)) {
        let ahead = seen.woken_ahead(holder);
        if seen == ahead {
            return None;
        }
        match status.compare_exchange(seen.0, ahead.0, Relaxed, Relaxed) {
            Ok(_) => return seen.is(Kind::Parked).then(|| status.key()),
            Err(now) => seen = Status(now),
        }
    }
    None // it leaves, or is a task
}
