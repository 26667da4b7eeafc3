//! Spin locks from the books. A bug is a constant of the lock.
//!
//! Those that `examples/compare` has are taken from there, and wait in three ways: with a yield
//! between two looks, with a pause, and with nothing.

use crate::{Data, completes, each, fails};
use ulocks_vm::sync::Ordering::{self, Acquire, Relaxed, Release};
use ulocks_vm::sync::{AtomicBool, AtomicU32, LazyLock, Mutex, RwLock, mpsc, pause, yield_now};

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

fn release(bug: u8) -> Ordering {
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

/// The locks of `examples/compare`, where `yield_now` is as given.
macro_rules! compared {
    ($how:ident, $($between:tt)*) => {
        #[path = "."]
        mod $how {
            #![allow(dead_code, unused_imports, reason = "other tests have the rest")]

            mod world {
                pub use std::sync::Arc;
                pub use ulocks_vm::sync::{AtomicU32, UnsafeCell, fence};
                pub use ulocks_vm::thread::{JoinHandle, spawn};
                pub $($between)*
            }
            #[path = "../../../../../examples/compare/src/families/mod.rs"]
            mod families;
            #[path = "../../../../../examples/compare/src/programs.rs"]
            mod programs;

            use super::*;
            use families::locks::{Draw, bakery, clh, dekker, mcs, peterson, ticket};
            use families::{Clients, Strong, TWO};

            /// With up to so many threads the lock is right. It is not if it is released without
            /// an order, or not at all.
            fn excludes(most: u32, lock: impl Fn(Clients, Ordering) + Copy + 'static) {
                for threads in 2..=most {
                    completes(move || lock(Clients { threads, ..TWO }, Release));
                }
                fails("data race", move || lock(TWO, Relaxed));
                fails("deadlock", move || lock(Clients { threads: most, release: false, ..TWO }, Release));
            }

            #[test]
            fn tickets() {
                excludes(3, |clients, release| ticket(clients, Acquire, release, Draw::AtOnce));
            }

            #[test]
            fn mellor_crummey_and_scott() {
                excludes(3, |clients, release| mcs(clients, release, Acquire, true));
            }

            #[test]
            fn craig_landin_and_hagersten() {
                excludes(3, |clients, release| clh(clients, release, Acquire));
            }

            #[test]
            fn locks_of_loads_and_stores() {
                for strong in [Strong::Accesses, Strong::Fences] {
                    excludes(2, move |clients, release| peterson(clients, strong, true, release));
                    excludes(2, move |clients, release| dekker(clients, strong, release));
                    excludes(2, move |clients, release| bakery(clients, strong, true, release));
                }
                fails("data race", || peterson(TWO, Strong::Not, true, Release));
                fails("data race", || dekker(TWO, Strong::Not, Release));
                fails("data race", || bakery(TWO, Strong::Not, true, Release));
            }
        }
    };
}

compared!(yields, use ulocks_vm::sync::yield_now;);
compared!(pauses, use ulocks_vm::sync::pause as yield_now;);
compared!(bare, fn yield_now() {});

/// A loop around what fails at once, of the objects of std's shape, and around one that is there.
#[test]
fn attempts() {
    completes(|| {
        each(2, Mutex::new(0), |lock, _| while lock.try_lock().map(|mut count| *count += 1).is_err() {});
    });
    completes(|| {
        each(2, RwLock::new(0), |lock, _| while lock.try_write().map(|mut count| *count += 1).is_err() {});
    });
    completes(|| {
        let (sender, receiver) = mpsc::channel();
        let other = ulocks_vm::thread::spawn(move || sender.send(1));
        while receiver.try_recv().is_err() {}
        other.join().unwrap().unwrap();
    });
    completes(|| {
        let flag = LazyLock::new(AtomicBool::default);
        each(2, flag, |flag, me| match me {
            0 => flag.store(true, Release),
            _ => while !flag.load(Acquire) {},
        });
    });
    fails("deadlock", || {
        let lock = Mutex::new(0);
        let _guard = lock.lock();
        while lock.try_lock().is_err() {}
    });
}
