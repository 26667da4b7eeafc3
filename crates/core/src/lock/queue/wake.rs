//! By what a waiter is woken.

use crate::sys::futex::{FutexKey, Local};
use core::task::Waker;

/// By what the waiter of a node is woken, after its answer.
#[must_use = "the waiter is not woken"]
pub enum Wake {
    /// A thread, which sleeps on its status.
    Thread(FutexKey<Local>),
    /// A task.
    Task(Waker),
}

impl Wake {
    /// [`wake`](Self::wake), if there is one to wake.
    pub(super) fn wake_if(wake: Option<Self>) {
        if let Some(wake) = wake {
            wake.wake();
        }
    }

    /// Wakes it. The caller holds no queue lock, and has nothing left to do for others if it is a
    /// task: a waker may block.
    pub fn wake(self) {
        match self {
            Self::Thread(key) => _ = key.wake(1),
            Self::Task(waker) => call(waker),
        }
    }
}

/// Calls `waker`. If it panics, the panic hook says so, and the caller, which has not made the
/// waker, goes on.
#[cfg(world = "machine")]
fn call(waker: Waker) {
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| waker.wake()));
    // What it panicked with may panic when it is dropped.
    core::mem::forget(panicked);
}

/// Calls `waker`. A panic ends the model.
#[cfg(not(world = "machine"))]
fn call(waker: Waker) {
    waker.wake();
}

/// Wakers of tasks that are answered already.
///
/// One answer may serve thousands. Nothing is allocated, so the wakers are called in groups: a
/// waker that blocks keeps those waiting that come after its group, and nobody else.
pub(super) struct Wakers {
    wakers: [Option<Waker>; Self::GROUP],
    count: usize,
}

impl Wakers {
    /// How many are called together: half a kilobyte.
    const GROUP: usize = 32;

    pub(super) fn new() -> Self {
        Self { wakers: [const { None }; Self::GROUP], count: 0 }
    }

    /// Adds `waker`, and calls all if there is no room left.
    pub(super) fn push(&mut self, waker: Waker) {
        self.wakers[self.count] = Some(waker);
        self.count += 1;
        if self.count == Self::GROUP {
            self.wake();
        }
    }

    /// Calls them, in order.
    pub(super) fn wake(&mut self) {
        self.wakers[..self.count].iter_mut().filter_map(Option::take).for_each(call);
        self.count = 0;
    }
}
