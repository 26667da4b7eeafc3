//! Tasks: what an executor and a waker are made of.

use crate::engine::{self, At};
use crate::explore::choose;
use crate::sync::{Arc, Mutex, Token};
use crate::thread;
use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::pin::pin;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicUsize};
use core::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

/// A wake-up for one waiting thread. It may come before the thread waits, and one wait may end
/// without it, as wake-ups of an executor may be spurious.
pub struct Notify {
    token: Token,
    waits: AtomicBool,
    was_spurious: AtomicBool,
    /// The thread that has left the wake-up, plus one.
    giver: AtomicUsize,
}

impl Notify {
    /// One without a wake-up.
    #[track_caller]
    #[must_use]
    pub fn new() -> Self {
        Self {
            token: Token::new(),
            waits: AtomicBool::new(false),
            was_spurious: AtomicBool::new(false),
            giver: AtomicUsize::new(0),
        }
    }

    /// Leaves a wake-up.
    #[track_caller]
    pub fn notify(&self) {
        self.token.give("notify", Release, Location::caller());
        self.giver.store(thread::running() + 1, Relaxed);
    }

    /// Waits for a wake-up, and takes it. The first wait may also end without one. A thread that
    /// has woken itself yields: it would wake itself again before another could go on.
    ///
    /// # Panics
    /// If another thread waits.
    #[track_caller]
    pub fn wait(&self) {
        self.wait_at(Location::caller());
    }

    fn wait_at(&self, at: At) {
        if !self.was_spurious.load(Relaxed) && choose(2) == 1 {
            self.was_spurious.store(true, Relaxed);
            return;
        }
        if self.waits.swap(true, Relaxed) {
            panic!("{at}: only a single thread may wait on `Notify`");
        }
        self.token.take("wait", Acquire, at);
        self.waits.store(false, Relaxed);
        if self.giver.load(Relaxed) == thread::running() + 1 {
            engine::with(|engine| engine.yield_now(at));
        }
    }
}

impl Default for Notify {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notify { .. }")
    }
}

/// Polls `future` until it is ready. In between the thread waits to be woken. A waker that is not
/// dropped is a leak.
#[track_caller]
pub fn block_on<F: Future>(future: F) -> F::Output {
    let at = Location::caller();
    let mut future = pin!(future);
    let notify = Arc::new(Notify::new());
    let data = Arc::into_raw(Arc::clone(&notify)).cast();
    // SAFETY: `data` is a pointer of an `Arc<Notify>`, as the functions of the table demand, and
    // they keep the contract of `RawWaker`.
    let waker = unsafe { Waker::from_raw(RawWaker::new(data, &TABLE)) };
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        notify.wait_at(at);
    }
}

/// Wakers whose data is the pointer of an `Arc<Notify>`.
static TABLE: RawWakerVTable = RawWakerVTable::new(
    |data| {
        // SAFETY: the waker that is cloned owns a count of `data`.
        unsafe { Arc::increment_strong_count(data.cast::<Notify>()) };
        RawWaker::new(data, &TABLE)
    },
    |data| {
        // SAFETY: the waker gives up its count of `data`.
        let notify = unsafe { Arc::from_raw(data.cast::<Notify>()) };
        notify.notify();
    },
    |data| {
        // SAFETY: the waker owns a count of `data`, and keeps it.
        let notify = unsafe { Arc::from_raw(data.cast::<Notify>()) };
        notify.notify();
        let _ = Arc::into_raw(notify);
    },
    |data| {
        // SAFETY: the waker gives up its count of `data`.
        drop(unsafe { Arc::from_raw(data.cast::<Notify>()) });
    },
);

/// A place for the waker of one task. [`wake`](Self::wake) wakes the task that registered last, and
/// takes its waker.
#[derive(Debug)]
pub struct AtomicWaker {
    waker: Mutex<Option<Waker>>,
}

impl AtomicWaker {
    /// An empty one.
    #[track_caller]
    #[must_use]
    pub fn new() -> Self {
        Self { waker: Mutex::new(None) }
    }

    /// Puts `waker` in place of the one before. If another thread is waking meanwhile, the task is
    /// woken at once.
    #[track_caller]
    pub fn register(&self, waker: Waker) {
        match self.waker.try_lock() {
            Ok(mut place) => {
                let before = place.replace(waker);
                drop(place);
                drop(before);
            }
            Err(_) => waker.wake(),
        }
    }

    /// As [`register`](Self::register), with a clone.
    #[track_caller]
    pub fn register_by_ref(&self, waker: &Waker) {
        self.register(waker.clone());
    }

    /// Wakes the task that registered last.
    #[track_caller]
    pub fn wake(&self) {
        if let Some(waker) = self.take_waker() {
            waker.wake();
        }
    }

    /// The waker that was registered last, out of its place.
    #[track_caller]
    pub fn take_waker(&self) -> Option<Waker> {
        let (Ok(mut place) | Err(mut place)) = self.waker.lock().map_err(|error| error.into_inner());
        place.take()
    }
}

impl Default for AtomicWaker {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}
