//! A bounded buffer on condition variables.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use ulocks_core::condvar::{RawCondvar, Wakeup};
use ulocks_core::raw::RawMutex;
use ulocks_core::time::Deadline;
use ulocks_testkit::new_lock;

const CAPACITY: usize = 4;

/// A ring of numbers. All-zero is empty.
#[repr(C)]
pub struct Ring {
    pub items: [usize; CAPACITY],
    pub taken: usize,
    pub put: usize,
}

/// A bounded buffer with room for four.
#[repr(C)]
pub struct Buffer<L: RawMutex> {
    pub mutex: L,
    pub not_empty: RawCondvar<L>,
    pub not_full: RawCondvar<L>,
    pub ring: UnsafeCell<Ring>,
    pub waits: AtomicUsize,
    pub timeouts: AtomicUsize,
}

// SAFETY: `ring` is accessed under `mutex` only.
unsafe impl<L: RawMutex + Sync> Sync for Buffer<L> {}
// SAFETY: its parts are `Send`.
unsafe impl<L: RawMutex + Send> Send for Buffer<L> {}

impl<L: RawMutex> Buffer<L> {
    pub fn new() -> Self {
        Self {
            mutex: new_lock(),
            not_empty: RawCondvar::new(),
            not_full: RawCondvar::new(),
            ring: UnsafeCell::new(Ring { items: [0; CAPACITY], taken: 0, put: 0 }),
            waits: AtomicUsize::new(0),
            timeouts: AtomicUsize::new(0),
        }
    }

    /// Waits on `condvar` until `change` returns something, with deadlines that `patience` draws;
    /// they only end waits, not the waiting. `then` is called with the mutex held (`true`) and
    /// again after its release (`false`).
    fn when<R>(
        &self,
        condvar: &RawCondvar<L>,
        mut patience: impl FnMut() -> Option<Duration>,
        mut change: impl FnMut(&mut Ring) -> Option<R>,
        then: impl Fn(bool),
    ) -> R {
        let mut token = self.mutex.lock();
        let result = loop {
            // SAFETY: the mutex is held.
            if let Some(result) = change(unsafe { &mut *self.ring.get() }) {
                break result;
            }
            self.waits.fetch_add(1, Relaxed);
            let wakeup;
            // SAFETY: the mutex is held by `token`.
            (token, wakeup) = unsafe { condvar.wait(&self.mutex, token, patience().map(Deadline::after)) };
            self.timeouts.fetch_add(usize::from(wakeup == Wakeup::TimedOut), Relaxed);
        };
        then(true);
        // SAFETY: the token is from `lock` or the last `wait`.
        unsafe { self.mutex.unlock(token) };
        then(false);
        result
    }

    pub fn put(&self, item: usize, patience: impl FnMut() -> Option<Duration>, notify: &Notify) {
        let change = |ring: &mut Ring| {
            (ring.put - ring.taken < CAPACITY).then(|| {
                ring.items[ring.put % CAPACITY] = item;
                ring.put += 1;
            })
        };
        self.when(&self.not_full, patience, change, |held| notify.notify(&self.not_empty, held));
    }

    pub fn take(&self, patience: impl FnMut() -> Option<Duration>, notify: &Notify) -> usize {
        let change = |ring: &mut Ring| {
            (ring.put > ring.taken).then(|| {
                ring.taken += 1;
                ring.items[(ring.taken - 1) % CAPACITY]
            })
        };
        self.when(&self.not_empty, patience, change, |held| notify.notify(&self.not_full, held))
    }

    /// No thread waits, and the condition variables know it.
    pub fn check_at_rest(&self) {
        for condvar in [&self.not_empty, &self.not_full] {
            assert!(!condvar.notify_one(), "a waiter is counted where none is: {condvar:?}");
            assert_eq!(condvar.notify_all(), 0);
        }
        assert!(!self.mutex.is_locked());
    }

    pub fn state(&self) -> String {
        // SAFETY: none: it is for the last words of a test that hangs.
        let Ring { taken, put, .. } = unsafe { &*self.ring.get() };
        let Self { not_empty, not_full, waits, timeouts, .. } = self;
        format!(
            "put {put} taken {taken} waits {waits:?} timeouts {timeouts:?} locked {}\n\
             not empty: {not_empty:?}\nnot full: {not_full:?}",
            self.mutex.is_locked()
        )
    }
}

/// How users of the buffer notify.
#[derive(Clone, Copy)]
pub struct Notify {
    pub all: bool,
    pub holding: bool,
}

impl Notify {
    pub fn notify<L: RawMutex>(&self, condvar: &RawCondvar<L>, held: bool) {
        if held != self.holding {
            return;
        }
        if self.all {
            condvar.notify_all();
        } else {
            condvar.notify_one();
        }
    }
}

pub const WAYS: [Notify; 4] = [
    Notify { all: false, holding: true },
    Notify { all: false, holding: false },
    Notify { all: true, holding: true },
    Notify { all: true, holding: false },
];
