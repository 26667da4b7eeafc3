//! Spin locks from the books. A bug is a constant.
//!
//! Those that `examples/compare` has are taken from there, and wait in three ways: with a yield
//! between two looks, with a pause, and with nothing.

use crate::{Data, completes, each, fails};
use ulocks_vm::sync::Ordering::{self, Acquire, Relaxed, Release};
use ulocks_vm::sync::{AtomicBool, AtomicU32, LazyLock, Mutex, RwLock, mpsc, pause, yield_now};

/// How a lock of one word is acquired.
const TEST_AND_SET: u8 = 0;
const TEST_AND_TEST_AND_SET: u8 = 1;
const WEAK_EXCHANGE: u8 = 2;
/// Waits longer from poll to poll, up to a bound.
const BACKOFF: u8 = 3;

const SOUND: u8 = 0;
/// The lock is released without an order.
const RELAXED: u8 = 1;
/// The lock is not released.
const KEPT: u8 = 2;

/// A thread has the lock for a while.
fn hold<const HOW: u8, const BUG: u8>(word: &AtomicU32, body: impl FnOnce()) {
    let mut pauses = 1;
    match HOW {
        TEST_AND_SET => {
            while word.swap(1, Acquire) == 1 {
                yield_now();
            }
        }
        TEST_AND_TEST_AND_SET => loop {
            while word.load(Relaxed) == 1 {
                pause();
            }
            if word.swap(1, Acquire) == 0 {
                break;
            }
        },
        WEAK_EXCHANGE => {
            while word.compare_exchange_weak(0, 1, Acquire, Relaxed).is_err() {
                pause();
            }
        }
        _ => {
            while word.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
                (0..pauses).for_each(|_| pause());
                pauses = (pauses * 2).min(4);
            }
        }
    }
    body();
    if BUG != KEPT {
        word.store(0, if BUG == RELAXED { Relaxed } else { Release });
    }
}

/// Each of so many threads takes the lock once and counts.
fn counting<const HOW: u8, const BUG: u8>(threads: usize) -> impl Fn() + Clone + 'static {
    move || {
        let state = (AtomicU32::new(0), Data::default());
        let (_, state) = each(threads, state, |(word, data): &(AtomicU32, Data), _| {
            hold::<HOW, BUG>(word, || data.add());
        });
        assert_eq!(state.1.get() as usize, threads);
    }
}

/// With up to so many threads the lock is right, and it is not with a bug.
fn counts<const HOW: u8>(most: usize) {
    (2..=most).for_each(|threads| _ = completes(counting::<HOW, SOUND>(threads)));
    fails("data race", counting::<HOW, RELAXED>(2));
    fails("deadlock", counting::<HOW, KEPT>(2));
}

#[test]
fn test_and_set_with_yield() {
    counts::<TEST_AND_SET>(3);
}

#[test]
fn test_and_test_and_set() {
    counts::<TEST_AND_TEST_AND_SET>(3);
}

#[test]
fn weak_exchanges() {
    counts::<WEAK_EXCHANGE>(2);
}

#[test]
fn exponential_backoff() {
    counts::<BACKOFF>(3);
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
