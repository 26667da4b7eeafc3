//! By what a waiter is woken.

use crate::sys::futex::{FutexKey, Local};
use core::mem::{self, MaybeUninit};
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

/// Wakers of tasks that are answered already, to be called when nothing is left to do for others.
///
/// A waker may do anything: block, take a lock, drop futures that wait for the same answer. So all
/// are answered before the first is called. Beyond 32 they are kept on the heap, and without memory
/// the process aborts: to call some of them early could wait for ever.
pub struct Wakers {
    wakers: [MaybeUninit<Waker>; Self::ROOM],
    count: usize,
    more: Vec<Waker>,
}

impl Wakers {
    /// How many are kept without memory of the heap: half a kilobyte. Others were not measured.
    const ROOM: usize = 32;

    /// None.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self { wakers: [const { MaybeUninit::uninit() }; Self::ROOM], count: 0, more: Vec::new() }
    }

    /// Wakes a thread, and adds the waker of a task.
    pub fn add(&mut self, wake: Option<Wake>) {
        match wake {
            Some(Wake::Task(waker)) => self.push(waker),
            thread => Wake::wake_if(thread),
        }
    }

    /// Adds `waker`.
    pub fn push(&mut self, waker: Waker) {
        if self.count == Self::ROOM {
            self.make_room();
        }
        self.wakers[self.count].write(waker);
        self.count += 1;
    }

    /// For how many more there is room without memory of the heap.
    pub fn room(&self) -> usize {
        Self::ROOM - self.count
    }

    /// Makes room for as many as there were at first.
    pub fn make_room(&mut self) {
        let count = mem::replace(&mut self.count, 0);
        // SAFETY: as in `wake`.
        self.more.extend(self.wakers[..count].iter().map(|waker| unsafe { waker.assume_init_read() }));
    }

    /// Calls them, in the order of their answers.
    pub fn wake(&mut self) {
        self.more.drain(..).for_each(call);
        let count = mem::replace(&mut self.count, 0);
        for waker in &mut self.wakers[..count] {
            // SAFETY: as many were written as were counted, and the count is zero by now, so each
            // is read once.
            call(unsafe { waker.assume_init_read() });
        }
    }
}
