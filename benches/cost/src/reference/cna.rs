//! D. Dice, A. Kogan, "Compact NUMA-aware Locks" (EuroSys 2019), figures 2 to 5: an MCS lock whose
//! releasing thread looks for the next waiter of its own socket, and moves those before it to a
//! second queue.

use super::{Line, Section};
use std::cell::Cell;
use ulocks_vm::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_vm::sync::{AtomicU32, spin_until};

/// One in so many releases passes the lock to the second queue (`THRESHOLD`).
const KEEP_LOCAL: u64 = 0x1_0000;
/// No secondary queue, and the lock is the node's.
const HELD: u32 = 1;
/// The node of thread 0.
const FIRST: u32 = 2;

/// 0 is no node.
struct Node {
    /// 0 while the thread waits, then [`HELD`] or the head of the second queue.
    spin: AtomicU32,
    /// One more than the socket; 0 if it was not needed.
    socket: AtomicU32,
    /// Of the head of the second queue: its tail.
    second_tail: AtomicU32,
    next: AtomicU32,
}

pub(in super::super) struct Cna {
    tail: Line<AtomicU32>,
    nodes: Vec<Line<Node>>,
    sockets: Vec<usize>,
    random: Cell<u64>,
}

impl Cna {
    fn node(&self, node: u32) -> &Node {
        &self.nodes[(node - FIRST) as usize].0
    }

    fn keeps_local(&self) -> bool {
        let random = self.random.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.random.set(random);
        !(random >> 32).is_multiple_of(KEEP_LOCAL)
    }

    /// The next waiter of the socket of `me`. Those before it go to the second queue.
    fn successor(&self, me: usize, mine: &Node) -> Option<u32> {
        let socket = self.sockets[me] as u32 + 1;
        let head = mine.next.load(Acquire);
        if self.node(head).socket.load(Relaxed) == socket {
            return Some(head);
        }
        let mut tail = head;
        loop {
            let current = self.node(tail).next.load(Acquire);
            if current == 0 {
                return None;
            }
            if self.node(current).socket.load(Relaxed) == socket {
                let mut second = mine.spin.load(Relaxed);
                if second > HELD {
                    let end = self.node(second).second_tail.load(Relaxed);
                    self.node(end).next.store(head, Relaxed);
                } else {
                    second = head;
                    mine.spin.store(head, Relaxed);
                }
                self.node(tail).next.store(0, Relaxed);
                self.node(second).second_tail.store(tail, Relaxed);
                return Some(current);
            }
            tail = current;
        }
    }
}

impl Section for Cna {
    fn new(sockets: Vec<usize>) -> Self {
        let zero = || AtomicU32::new(0);
        let node = |_: &usize| Line(Node { spin: zero(), socket: zero(), second_tail: zero(), next: zero() });
        Self { tail: Line(zero()), nodes: sockets.iter().map(node).collect(), sockets, random: Cell::new(1) }
    }

    fn enter(&self, me: usize) -> u32 {
        let number = me as u32 + FIRST;
        let mine = self.node(number);
        mine.next.store(0, Relaxed);
        mine.spin.store(0, Relaxed);
        let before = self.tail.0.swap(number, AcqRel);
        if before == 0 {
            mine.spin.store(HELD, Relaxed);
        } else {
            mine.socket.store(self.sockets[me] as u32 + 1, Relaxed);
            self.node(before).next.store(number, Release);
            spin_until(|| mine.spin.load(Acquire) != 0);
        }
        number
    }

    fn leave(&self, me: usize, number: u32) {
        let mine = self.node(number);
        if mine.next.load(Acquire) == 0 {
            let second = mine.spin.load(Relaxed);
            if second == HELD {
                if self.tail.0.compare_exchange(number, 0, Release, Relaxed).is_ok() {
                    return;
                }
            } else {
                let end = self.node(second).second_tail.load(Relaxed);
                if self.tail.0.compare_exchange(number, end, Release, Relaxed).is_ok() {
                    self.node(second).spin.store(HELD, Release);
                    return;
                }
            }
            spin_until(|| mine.next.load(Acquire) != 0);
        }
        let local = if self.keeps_local() { self.successor(me, mine) } else { None };
        let second = mine.spin.load(Relaxed);
        if let Some(local) = local {
            self.node(local).spin.store(second, Release);
        } else if second > HELD {
            let end = self.node(second).second_tail.load(Relaxed);
            self.node(end).next.store(mine.next.load(Relaxed), Relaxed);
            self.node(second).spin.store(HELD, Release);
        } else {
            self.node(mine.next.load(Relaxed)).spin.store(HELD, Release);
        }
    }
}
