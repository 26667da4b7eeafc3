//! The work-stealing deque of Chase and Lev (SPAA 2005), with a buffer that never grows, as Lê,
//! Pop, Cohen and Zappa Nardelli give it for C11 (PPoPP 2013).
//!
//! # State
//! The values with the numbers from `top` up to `bottom` are in the deque. The owner pushes and
//! takes at the bottom, thieves steal at the top. Only the owner writes `bottom`; `top` only grows,
//! by an exchange.
//!
//! # Ordering
//! - (P) `bottom` is stored after a Release fence by `push` and loaded with Acquire by `steal`: the
//!   value is there.
//! - (F1) in `take`, between the store of `bottom` and the load of `top`, and (F2) in `steal`,
//!   between the load of `top` and the load of `bottom`: store buffering. Without either, owner and
//!   thief both get the last value.

use std::sync::Arc;
use ulocks_vm::sync::Ordering::{Acquire, Relaxed, Release, SeqCst};
use ulocks_vm::sync::{AtomicUsize, UnsafeCell, fence};

/// What is wrong with the deque.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// There is no (F1).
    NoFenceInTake,
    /// There is no (F2).
    NoFenceInSteal,
    /// There is no Release fence at (P).
    RelaxedPush,
    /// The owner takes the last value by a store of `top`.
    LastByStore,
}

pub struct Deque {
    top: AtomicUsize,
    bottom: AtomicUsize,
    slots: Box<[UnsafeCell<u32>]>,
    bug: Option<Bug>,
}

// SAFETY: the owner writes a slot before it publishes it (P), and no slot is used twice; after that
// it is only read.
unsafe impl Sync for Deque {}

impl Deque {
    /// An empty deque, into which `capacity` values can be pushed in its life.
    pub fn new(capacity: usize, bug: Option<Bug>) -> Self {
        let slots = (0..capacity).map(|_| UnsafeCell::new(0)).collect();
        // Both begin at 1, so that `take` of an empty deque does not count below 0.
        Self { top: AtomicUsize::new(1), bottom: AtomicUsize::new(1), slots, bug }
    }

    fn read(&self, number: usize) -> u32 {
        // SAFETY: a slot that was published is not written any more.
        self.slots[number - 1].with(|slot| unsafe { slot.read() })
    }

    /// Appends a value at the bottom. The owner only.
    pub fn push(&self, value: u32) {
        let bottom = self.bottom.load(Relaxed);
        // SAFETY: the slot was not published.
        self.slots[bottom - 1].with_mut(|slot| unsafe { slot.write(value) });
        if self.bug != Some(Bug::RelaxedPush) {
            fence(Release);
        }
        self.bottom.store(bottom + 1, Relaxed); // (P)
    }

    /// Removes the value at the bottom. The owner only.
    pub fn take(&self) -> Option<u32> {
        let bottom = self.bottom.load(Relaxed) - 1;
        self.bottom.store(bottom, Relaxed);
        if self.bug != Some(Bug::NoFenceInTake) {
            fence(SeqCst); // (F1)
        }
        let top = self.top.load(Relaxed);
        if top > bottom {
            self.bottom.store(bottom + 1, Relaxed);
            return None;
        }
        let value = self.read(bottom);
        if top < bottom {
            return Some(value);
        }
        // The last one: the thread that moves `top` has it.
        let won = if self.bug == Some(Bug::LastByStore) {
            self.top.store(top + 1, Relaxed);
            true
        } else {
            self.top.compare_exchange(top, top + 1, SeqCst, Relaxed).is_ok()
        };
        self.bottom.store(bottom + 1, Relaxed);
        won.then_some(value)
    }

    /// Removes the value at the top, unless there is none or another was faster.
    pub fn steal(&self) -> Option<u32> {
        let top = self.top.load(Acquire);
        if self.bug != Some(Bug::NoFenceInSteal) {
            fence(SeqCst); // (F2)
        }
        let bottom = self.bottom.load(Acquire); // (P)
        if top >= bottom {
            return None;
        }
        let value = self.read(top);
        self.top.compare_exchange(top, top + 1, SeqCst, Relaxed).is_ok().then_some(value)
    }
}

/// The owner pushes two values and takes until it finds none; a thief steals twice. No value comes
/// out twice or not at all.
pub fn stealing(bug: Option<Bug>) -> impl Fn() + 'static {
    move || {
        let deque = Arc::new(Deque::new(2, bug));
        let thief = {
            let deque = Arc::clone(&deque);
            ulocks_vm::thread::spawn(move || [deque.steal(), deque.steal()])
        };
        deque.push(1);
        deque.push(2);
        let mut values: Vec<u32> = std::iter::from_fn(|| deque.take()).collect();
        values.extend(thief.join().expect("nobody dies here").into_iter().flatten());
        values.sort_unstable();
        assert_eq!(values, [1, 2], "each value comes out once");
    }
}
