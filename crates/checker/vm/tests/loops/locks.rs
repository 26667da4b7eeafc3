//! Spin locks from the books. A bug is a constant of the lock.

use crate::{Data, completes, each, fails};
use std::ptr;
use ulocks_vm::sync::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use ulocks_vm::sync::{AtomicBool, AtomicPtr, AtomicU32, fence, pause, yield_now};

/// A lock: what it is at first, and how thread `me` has it for a while.
trait Lock: Default + Send + Sync + 'static {
    fn with(&self, me: usize, body: impl FnOnce());
}

/// Each of so many threads takes the lock once and counts.
fn counting<L: Lock>(threads: usize) -> impl Fn() + Clone + 'static {
    move || {
        let state = (L::default(), Data::default());
        let (_, state) = each(threads, state, |(lock, data): &(L, Data), me| lock.with(me, || data.add()));
        assert_eq!(state.1.get() as usize, threads);
    }
}

const SOUND: u8 = 0;
/// The lock is released without an order.
const RELAXED: u8 = 1;
/// The lock is not released.
const KEPT: u8 = 2;
/// A fence or a step is left out, as the lock says.
const LEFT_OUT: u8 = 3;

fn release(bug: u8) -> ulocks_vm::sync::Ordering {
    if bug == RELAXED { Relaxed } else { Release }
}

#[derive(Default)]
struct Tas<const BUG: u8>(AtomicBool);

impl<const BUG: u8> Lock for Tas<BUG> {
    fn with(&self, _: usize, body: impl FnOnce()) {
        while self.0.swap(true, Acquire) {
            yield_now();
        }
        body();
        if BUG != KEPT {
            self.0.store(false, release(BUG));
        }
    }
}

#[test]
fn test_and_set_with_yield() {
    completes(counting::<Tas<SOUND>>(2));
    completes(counting::<Tas<SOUND>>(3));
    fails("data race", counting::<Tas<RELAXED>>(2));
    fails("deadlock", counting::<Tas<KEPT>>(2));
}

#[derive(Default)]
struct Ttas<const BUG: u8>(AtomicBool);

impl<const BUG: u8> Lock for Ttas<BUG> {
    fn with(&self, _: usize, body: impl FnOnce()) {
        loop {
            while self.0.load(Relaxed) {
                pause();
            }
            if !self.0.swap(true, Acquire) {
                break;
            }
        }
        body();
        if BUG != KEPT {
            self.0.store(false, release(BUG));
        }
    }
}

#[test]
fn test_and_test_and_set() {
    completes(counting::<Ttas<SOUND>>(2));
    completes(counting::<Ttas<SOUND>>(3));
    fails("data race", counting::<Ttas<RELAXED>>(2));
    fails("deadlock", counting::<Ttas<KEPT>>(2));
}

#[derive(Default)]
struct Weak<const BUG: u8>(AtomicU32);

impl<const BUG: u8> Lock for Weak<BUG> {
    fn with(&self, _: usize, body: impl FnOnce()) {
        while self.0.compare_exchange_weak(0, 1, Acquire, Relaxed).is_err() {
            pause();
        }
        body();
        if BUG != KEPT {
            self.0.store(0, release(BUG));
        }
    }
}

#[test]
fn weak_exchanges() {
    completes(counting::<Weak<SOUND>>(2));
    fails("data race", counting::<Weak<RELAXED>>(2));
    fails("deadlock", counting::<Weak<KEPT>>(2));
}

/// Waits longer from poll to poll, up to a bound.
#[derive(Default)]
struct Backoff<const BUG: u8>(AtomicU32);

impl<const BUG: u8> Lock for Backoff<BUG> {
    fn with(&self, _: usize, body: impl FnOnce()) {
        let mut pauses = 1;
        while self.0.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            (0..pauses).for_each(|_| pause());
            pauses = (pauses * 2).min(4);
        }
        body();
        if BUG != KEPT {
            self.0.store(0, release(BUG));
        }
    }
}

#[test]
fn exponential_backoff() {
    completes(counting::<Backoff<SOUND>>(2));
    completes(counting::<Backoff<SOUND>>(3));
    fails("data race", counting::<Backoff<RELAXED>>(2));
    fails("deadlock", counting::<Backoff<KEPT>>(2));
}

#[derive(Default)]
struct Ticket<const BUG: u8> {
    next: AtomicU32,
    serving: AtomicU32,
}

impl<const BUG: u8> Lock for Ticket<BUG> {
    fn with(&self, _: usize, body: impl FnOnce()) {
        let mine = self.next.fetch_add(1, Relaxed);
        while self.serving.load(Acquire) != mine {
            yield_now();
        }
        body();
        if BUG != KEPT {
            self.serving.store(mine + 1, release(BUG));
        }
    }
}

#[test]
fn tickets() {
    completes(counting::<Ticket<SOUND>>(2));
    completes(counting::<Ticket<SOUND>>(3));
    fails("data race", counting::<Ticket<RELAXED>>(2));
    fails("deadlock", counting::<Ticket<KEPT>>(3));
}

struct Node {
    next: AtomicPtr<Node>,
    waits: AtomicBool,
}

struct Mcs<const BUG: u8>(AtomicPtr<Node>);

impl<const BUG: u8> Default for Mcs<BUG> {
    fn default() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }
}

impl<const BUG: u8> Lock for Mcs<BUG> {
    fn with(&self, _: usize, body: impl FnOnce()) {
        let node = Box::into_raw(Box::new(Node {
            next: AtomicPtr::new(ptr::null_mut()),
            waits: AtomicBool::new(true),
        }));
        let before = self.0.swap(node, AcqRel);
        // The other thread's node lives until it has found this one behind it, and told it.
        unsafe {
            if !before.is_null() {
                (*before).next.store(node, Release);
                while (*node).waits.load(Acquire) {
                    pause();
                }
            }
            body();
            if (*node).next.load(Acquire).is_null() {
                if self.0.compare_exchange(node, ptr::null_mut(), Release, Relaxed).is_ok() {
                    return;
                }
                while (*node).next.load(Acquire).is_null() {
                    pause();
                }
            }
            if BUG != KEPT {
                (*(*node).next.load(Acquire)).waits.store(false, release(BUG));
            }
        }
    }
}

#[test]
fn mellor_crummey_and_scott() {
    completes(counting::<Mcs<SOUND>>(2));
    completes(counting::<Mcs<SOUND>>(3));
    fails("data race", counting::<Mcs<RELAXED>>(2));
    fails("deadlock", counting::<Mcs<KEPT>>(2));
}

struct Clh<const BUG: u8>(AtomicPtr<AtomicBool>);

impl<const BUG: u8> Default for Clh<BUG> {
    fn default() -> Self {
        Self(AtomicPtr::new(Box::into_raw(Box::new(AtomicBool::new(false)))))
    }
}

impl<const BUG: u8> Lock for Clh<BUG> {
    fn with(&self, _: usize, body: impl FnOnce()) {
        let node = Box::into_raw(Box::new(AtomicBool::new(true)));
        let before = self.0.swap(node, AcqRel);
        unsafe {
            while (*before).load(Acquire) {
                yield_now();
            }
            body();
            if BUG != KEPT {
                (*node).store(false, release(BUG));
            }
        }
    }
}

#[test]
fn craig_landin_and_hagersten() {
    completes(counting::<Clh<SOUND>>(2));
    completes(counting::<Clh<SOUND>>(3));
    fails("data race", counting::<Clh<RELAXED>>(2));
    fails("deadlock", counting::<Clh<KEPT>>(2));
}

#[derive(Default)]
struct Peterson<const BUG: u8> {
    flags: [AtomicBool; 2],
    turn: AtomicU32,
}

impl<const BUG: u8> Lock for Peterson<BUG> {
    fn with(&self, me: usize, body: impl FnOnce()) {
        let other = 1 - me;
        self.flags[me].store(true, Relaxed);
        self.turn.swap(other as u32, AcqRel);
        if BUG != LEFT_OUT {
            fence(SeqCst);
        }
        while self.flags[other].load(Acquire) && self.turn.load(Acquire) == other as u32 {}
        body();
        if BUG != KEPT {
            self.flags[me].store(false, release(BUG));
        }
    }
}

#[test]
fn peterson() {
    completes(counting::<Peterson<SOUND>>(2));
    fails("data race", counting::<Peterson<RELAXED>>(2));
    fails("deadlock", counting::<Peterson<KEPT>>(2));
}

#[derive(Default)]
struct Dekker<const BUG: u8> {
    flags: [AtomicBool; 2],
    turn: AtomicU32,
}

impl<const BUG: u8> Lock for Dekker<BUG> {
    fn with(&self, me: usize, body: impl FnOnce()) {
        let other = 1 - me;
        self.flags[me].store(true, Relaxed);
        if BUG != LEFT_OUT {
            fence(SeqCst);
        }
        while self.flags[other].load(Acquire) {
            if self.turn.load(Relaxed) != me as u32 {
                self.flags[me].store(false, Relaxed);
                while self.turn.load(Relaxed) != me as u32 {
                    yield_now();
                }
                self.flags[me].store(true, Relaxed);
                fence(SeqCst);
            }
        }
        body();
        if BUG != KEPT {
            self.turn.store(other as u32, Relaxed);
            self.flags[me].store(false, release(BUG));
        }
    }
}

#[test]
fn dekker() {
    completes(counting::<Dekker<SOUND>>(2));
    fails("data race", counting::<Dekker<RELAXED>>(2));
    fails("data race", counting::<Dekker<LEFT_OUT>>(2));
    fails("deadlock", counting::<Dekker<KEPT>>(2));
}

/// Lamport's bakery, for two.
#[derive(Default)]
struct Bakery<const BUG: u8> {
    draws: [AtomicBool; 2],
    numbers: [AtomicU32; 2],
}

impl<const BUG: u8> Lock for Bakery<BUG> {
    fn with(&self, me: usize, body: impl FnOnce()) {
        let other = 1 - me;
        self.draws[me].store(true, Relaxed);
        if BUG != LEFT_OUT {
            fence(SeqCst);
        }
        let number = 1 + self.numbers[other].load(Relaxed);
        self.numbers[me].store(number, Relaxed);
        self.draws[me].store(false, Release);
        if BUG != LEFT_OUT {
            fence(SeqCst);
        }
        while self.draws[other].load(Acquire) {}
        loop {
            let theirs = self.numbers[other].load(Acquire);
            if theirs == 0 || (theirs, other) > (number, me) {
                break;
            }
        }
        body();
        if BUG != KEPT {
            self.numbers[me].store(0, release(BUG));
        }
    }
}

#[test]
fn bakery() {
    completes(counting::<Bakery<SOUND>>(2));
    fails("data race", counting::<Bakery<RELAXED>>(2));
    fails("data race", counting::<Bakery<LEFT_OUT>>(2));
    fails("deadlock", counting::<Bakery<KEPT>>(2));
}
