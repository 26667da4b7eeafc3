//! The spin lock of Linux (`kernel/locking/qspinlock.c` of 5.12), and the same with the patches
//! "Add NUMA-awareness to qspinlock", version 15, of A. Kogan (`qspinlock_cna.h`).
//!
//! The word has a locked byte, a pending bit and the tail of a queue. The first waiter sets pending
//! and looks at the word; the others queue, and look at their own nodes.
//!
//! With CNA, the thread at the head of the queue moves waiters of other sockets to a second queue
//! while it waits for the lock. After `flush_ns` the second queue comes back in front of the first.

use super::{Line, Section};
use std::cell::Cell;
use std::time::Duration;
use ulocks_vm::clock::{Clock, now};
use ulocks_vm::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_vm::sync::{AtomicU32, pause, spin_until};

const LOCKED: u32 = 1;
const PENDING: u32 = 1 << 8;
const TAIL: u32 = !0 << 16;

/// A word that takes stores to its parts, as x86 does. The atomic is charged for the access; the
/// value is beside it, and changes at the moment at which the access takes effect.
struct Word {
    line: AtomicU32,
    value: Cell<u32>,
}

impl Word {
    fn load(&self) -> u32 {
        self.line.load(Acquire);
        self.value.get()
    }

    /// A store to the part that `mask` names.
    fn store(&self, mask: u32, bits: u32) {
        self.line.store(0, Release);
        self.value.set(self.value.get() & !mask | bits);
    }

    /// A read-modify-write. The value before.
    fn update(&self, change: impl FnOnce(u32) -> u32) -> u32 {
        self.line.swap(0, Acquire);
        let before = self.value.get();
        self.value.set(change(before));
        before
    }

    fn compare_exchange(&self, old: u32, new: u32) -> bool {
        self.update(|now| if now == old { new } else { now }) == old
    }
}

struct Node {
    next: AtomicU32,
    /// 0 while the thread waits, 1 at the head of the queue, or more: the tail of the second queue.
    locked: AtomicU32,
    socket: AtomicU32,
    /// When the second queue was begun; 0 for none.
    since: Cell<Duration>,
}

/// `FLUSH_NS` is how long the second queue waits; 0 for the lock without CNA.
pub(in super::super) struct Qspinlock<const FLUSH_NS: u64> {
    word: Line<Word>,
    nodes: Vec<Line<Node>>,
    sockets: Vec<usize>,
}

impl<const FLUSH_NS: u64> Qspinlock<FLUSH_NS> {
    /// Node 0 and 1 are no thread's.
    fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize].0
    }

    fn queue(&self, me: usize) {
        let word = &self.word.0;
        let number = me as u32 + 2;
        let mine = self.node(number);
        mine.next.store(0, Relaxed);
        mine.locked.store(0, Relaxed);
        mine.socket.store(self.sockets[me] as u32, Relaxed);
        mine.since.set(Duration::ZERO);
        if word.load() == 0 && word.compare_exchange(0, LOCKED) {
            return;
        }
        let before = word.update(|now| now & !TAIL | number << 16) >> 16;
        if before != 0 {
            self.node(before).next.store(number, Release);
            spin_until(|| mine.locked.load(Acquire) != 0);
        }
        if FLUSH_NS > 0 {
            self.order(mine);
        }
        let mut value = 0;
        spin_until(|| {
            value = word.load();
            value & (LOCKED | PENDING) == 0
        });
        if value >> 16 == number && self.clear_tail(value, mine) {
            return;
        }
        word.store(0xff, LOCKED);
        spin_until(|| mine.next.load(Acquire) != 0);
        self.pass_on(mine);
    }

    /// The queue ends with `mine`: the lock is taken, and the second queue becomes the first.
    fn clear_tail(&self, value: u32, mine: &Node) -> bool {
        let second = mine.locked.load(Relaxed);
        if second <= 1 {
            return self.word.0.compare_exchange(value, LOCKED);
        }
        let tail = self.node(second);
        let head = tail.next.load(Relaxed);
        tail.next.store(0, Relaxed);
        if self.word.0.compare_exchange(value, second << 16 | LOCKED) {
            self.node(head).locked.store(1, Release);
            return true;
        }
        tail.next.store(head, Relaxed);
        false
    }

    /// While the lock is busy: moves the next waiter to the second queue if it is of another
    /// socket.
    fn order(&self, mine: &Node) {
        if mine.since.get() > Duration::ZERO
            && now(Clock::Monotonic) - mine.since.get() > Duration::from_nanos(FLUSH_NS)
        {
            mine.since.set(Duration::MAX);
            return;
        }
        while self.word.0.load() & (LOCKED | PENDING) != 0 {
            let next = mine.next.load(Acquire);
            if next != 0 {
                if self.node(next).socket.load(Relaxed) == mine.socket.load(Relaxed) {
                    return;
                }
                let after = self.node(next).next.load(Acquire);
                if after != 0 {
                    self.move_away(mine, next, after);
                }
            }
            pause();
        }
    }

    fn move_away(&self, mine: &Node, next: u32, after: u32) {
        mine.next.store(after, Relaxed);
        let second = mine.locked.load(Relaxed);
        let head = if second > 1 {
            let tail = self.node(second);
            let head = tail.next.load(Relaxed);
            tail.next.store(next, Relaxed);
            head
        } else {
            mine.since.set(now(Clock::Monotonic).max(Duration::from_nanos(1)));
            next
        };
        self.node(next).next.store(head, Relaxed);
        mine.locked.store(next, Relaxed);
    }

    fn pass_on(&self, mine: &Node) {
        let next = mine.next.load(Relaxed);
        let second = if FLUSH_NS > 0 { mine.locked.load(Relaxed) } else { 1 };
        if second <= 1 {
            self.node(next).locked.store(1, Release);
        } else if mine.since.get() == Duration::MAX {
            let tail = self.node(second);
            let head = tail.next.load(Relaxed);
            tail.next.store(next, Relaxed);
            self.node(head).locked.store(1, Release);
        } else {
            let heir = self.node(next);
            heir.socket.store(mine.socket.load(Relaxed), Relaxed);
            heir.since.set(mine.since.get());
            heir.locked.store(second, Release);
        }
    }
}

impl<const FLUSH_NS: u64> Section for Qspinlock<FLUSH_NS> {
    fn new(sockets: Vec<usize>) -> Self {
        let node = |_| {
            let zero = || AtomicU32::new(0);
            Line(Node { next: zero(), locked: zero(), socket: zero(), since: Cell::default() })
        };
        Self {
            word: Line(Word { line: AtomicU32::new(0), value: Cell::new(0) }),
            nodes: (0..sockets.len() + 2).map(node).collect(),
            sockets,
        }
    }

    fn enter(&self, me: usize) -> u32 {
        let word = &self.word.0;
        let mut value = word.update(|now| if now == 0 { LOCKED } else { now });
        if value == 0 {
            return 0;
        }
        if value == PENDING {
            // Once, while the lock is passed on.
            value = word.load();
        }
        if value & !LOCKED == 0 {
            value = word.update(|now| now | PENDING);
            if value & !LOCKED == 0 {
                if value & LOCKED != 0 {
                    spin_until(|| word.load() & LOCKED == 0);
                }
                word.store(0xffff, LOCKED);
                return 0;
            }
            if value & PENDING == 0 {
                word.store(0xff00, 0);
            }
        }
        self.queue(me);
        0
    }

    fn leave(&self, _: usize, _: u32) {
        self.word.0.store(0xff, 0);
    }
}
