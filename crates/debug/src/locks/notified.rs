//! [`Notified`]: the waits on a condition variable of a checked mutex, and under which locks it is
//! notified.
//!
//! A thread that waits with a lock held is stuck if its notifiers need that lock. None of them can
//! come while it waits. So if a wait was ever ended by a notification, that notifier did without
//! the locks of the waiter. What is left is a supposition: *each* notification so far was made by a
//! thread that had some lock alone, and a thread is about to wait with that lock.
//!
//! # State
//! | `state` | the locks that all notifications so far were made under | set by |
//! |---|---|---|
//! | `NONE` | there was no notification | the constructor |
//! | `FIRST` | a thread writes those of the first one | that thread |
//! | `SOME` | those of `locks` that are not 0 | that thread |
//! | `FREE` | none | a notification without such a lock, or one that meets `FIRST` |
//!
//! `FREE` stays. So does a 0 among the locks once there are `SOME`. A signal handler may notify at
//! any step: it meets `FIRST`, and nothing is supposed from then on.

use crate::locks::checker::Checked;
use crate::rules::faults;
use crate::seen::asked::Asked;
use crate::seen::report::Place;
use crate::seen::thread::{Held, existing};
use core::fmt;
use core::panic::Location;
use core::ptr;
use ulocks_core::condvar::{Sequence, Waits, WaitsAsync, Wakeup};
use ulocks_core::futex::Local;
use ulocks_core::raw::{Initial, RawMutex, RawMutexAsync};
use ulocks_core::sync::{
    AtomicPtr, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use ulocks_core::time::Deadline;

const NONE: u32 = 0;
const FIRST: u32 = 1;
const SOME: u32 = 2;
const FREE: u32 = 3;

/// How many locks are remembered: those of a condition, and of what is around that.
const MOST: usize = 3;

/// A lock by its number, and where it was acquired for the first notification.
#[derive(Default)]
struct Under {
    instance: AtomicU64,
    place: AtomicPtr<Location<'static>>,
}

/// How threads wait on a condition variable of a checked mutex.
pub struct Notified<R: RawMutex<Scope = Local>> {
    inner: Sequence<Checked<R>>,
    state: AtomicU32,
    locks: [Under; MOST],
}

impl<R: RawMutex<Scope = Local>> Initial for Notified<R> {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self {
        inner: Sequence::INIT,
        state: AtomicU32::new(NONE),
        locks: [const { Under { instance: AtomicU64::new(0), place: AtomicPtr::new(ptr::null_mut()) } };
            MOST],
    };
}

impl<R: RawMutex<Scope = Local>> Notified<R> {
    /// This thread notifies.
    #[inline]
    fn notifies(&self) {
        if self.state.load(Relaxed) != FREE {
            self.notifies_under();
        }
    }

    #[cold]
    fn notifies_under(&self) {
        // Of a signal handler it is the handler's own list.
        let mine = || existing().into_iter().flat_map(|me| me.held()).filter(|held| held.access.is_alone());
        match self.state.compare_exchange(NONE, FIRST, Relaxed, Acquire) {
            Ok(_) => {
                for (under, held) in self.locks.iter().zip(mine()) {
                    under.place.store(ptr::from_ref(held.place).cast_mut(), Relaxed);
                    under.instance.store(held.instance, Relaxed);
                }
                let known = if mine().next().is_some() { SOME } else { FREE };
                let _ = self.state.compare_exchange(FIRST, known, Release, Relaxed); // (write)
            }
            Err(SOME) => {
                let is_mine = |under: &Under| {
                    let instance = under.instance.load(Relaxed);
                    instance != 0 && mine().any(|held| held.instance == instance)
                };
                let mut are_mine = self.locks.each_ref().map(is_mine).into_iter();
                self.locks.iter().filter(|_| !are_mine.next().unwrap_or(false)).for_each(|under| {
                    under.instance.store(0, Relaxed);
                });
                if self.locks.iter().all(|under| under.instance.load(Relaxed) == 0) {
                    self.state.store(FREE, Relaxed);
                }
            }
            Err(_) => self.state.store(FREE, Relaxed),
        }
    }

    /// Where a lock was acquired that each notification so far was made under.
    fn place(&self, instance: u64) -> Option<Place> {
        let is_it = |under: &&Under| under.instance.load(Relaxed) == instance;
        let under = self.locks.iter().find(is_it)?;
        // SAFETY: a lock that is not 0 has a place, which came by (write), and is `'static`.
        unsafe { under.place.load(Relaxed).as_ref() }
    }

    /// This thread is about to wait with `mutex`, without a deadline.
    fn waits(&self, mutex: usize) {
        if self.state.load(Acquire) != SOME {
            return; // (write)
        }
        let Some(me) = existing() else { return };
        let Some(of_wait) = me.held().find(|held| held.lock == mutex) else { return };
        let found = |held: Held| Some((self.place(held.instance)?, held));
        let others = me.held().filter(|held| held.lock != mutex && held.access.is_alone());
        if let Some((place, held)) = others.filter_map(found).next() {
            faults::wait_under(me, &Asked::again(&of_wait), &held, place);
        }
    }
}

// SAFETY: the wait is that of the condition variable inside.
unsafe impl<R: RawMutex<Scope = Local>> Waits<Checked<R>> for Notified<R> {
    unsafe fn wait(
        &self,
        mutex: &Checked<R>,
        token: R::Token,
        deadline: Option<Deadline>,
    ) -> (R::Token, Wakeup) {
        if deadline.is_none() {
            self.waits(mutex.address());
        }
        // SAFETY: the caller's promise.
        unsafe { self.inner.wait(mutex, token, deadline) }
    }

    #[inline]
    fn notify_one(&self) -> bool {
        self.notifies();
        self.inner.notify_one()
    }

    #[inline]
    fn notify_all(&self) -> usize {
        self.notifies();
        self.inner.notify_all()
    }
}

// SAFETY: the future is that of the condition variable inside.
unsafe impl<R: RawMutexAsync<Scope = Local> + Sync> WaitsAsync<Checked<R>> for Notified<R> {
    type Notified<'a>
        = <Sequence<Checked<R>> as WaitsAsync<Checked<R>>>::Notified<'a>
    where
        R: 'a;

    fn notified(&self) -> Self::Notified<'_> {
        self.inner.notified()
    }

    /// It counts as made by its notifier, and not by the thread that drops the future.
    fn pass_on(&self) {
        self.inner.pass_on();
    }
}

impl<R: RawMutex<Scope = Local>> fmt::Debug for Notified<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
