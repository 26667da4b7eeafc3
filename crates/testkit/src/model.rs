//! Clients of few operations, for a model checker that tries every order of them.
//!
//! Each is the body of one execution: give it to `ulocks_core::model::explore`. Two threads find
//! most bugs; a chain of wake-ups breaks only with three. On the machine the same clients run once
//! on threads of the system, which is of use under Miri and as a first sign of life.
//!
//! A client fails by a panic; by a data race on its cell, which the model reports; or by a
//! deadlock, which the model reports too.

#[cfg(world = "vm")]
pub mod linear;
pub mod rw;
#[cfg(world = "vm")]
pub mod sets;
pub mod upgrade;

use crate::new_lock;
use crate::order::Recorder;
use crate::thread::{Arc, together, with};
use core::time::Duration;
#[cfg(world = "vm")]
use ulocks_core::model::signal::{self, Signal};
#[cfg(world = "vm")]
use ulocks_core::raw::RawInterruptible;
use ulocks_core::raw::{Metered, RawMutex};
use ulocks_core::sync::UnsafeCell;
use ulocks_core::time::Deadline;

/// A lock and what it protects: a count that is no atomic, in a cell whose accesses the model
/// checks.
struct Protected<L> {
    lock: L,
    count: UnsafeCell<usize>,
}

// SAFETY: `count` is accessed by holders of `lock` only, or by the one thread left after the others
// were joined. That the lock admits one holder at a time is what the clients test; the model
// reports where it does not.
unsafe impl<L: Sync> Sync for Protected<L> {}
// SAFETY: owning a `Protected` is owning both parts.
unsafe impl<L: Send> Send for Protected<L> {}

impl<L: RawMutex> Protected<L> {
    fn new() -> Self {
        Self { lock: new_lock(), count: UnsafeCell::new(0) }
    }

    /// Adds one to the count and releases the lock.
    fn count_and_unlock(&self, token: L::Token) -> usize {
        let count = self.count.with_mut(|count| {
            // SAFETY: the caller's token says that it holds the lock, so no other thread is here.
            unsafe {
                *count += 1;
                *count
            }
        });
        // SAFETY: the token is from an acquisition of this lock by this thread.
        unsafe { self.lock.unlock(token) };
        count
    }

    /// The lock after all threads but this one are gone: free, and `expected` holders were counted.
    fn check_at_rest(&self, expected: usize) {
        assert!(!self.lock.is_locked(), "the lock is locked although its last holder released it");
        let token = self.lock.try_lock().expect("try_lock failed on a lock that nobody holds");
        let count = self.count_and_unlock(token) - 1;
        assert_eq!(count, expected, "updates were lost");
    }
}

/// At most one thread at a time is inside, and it sees what the one before it did there.
pub fn exclusion<L: RawMutex + Send + Sync + 'static>(threads: usize) {
    let protected = Arc::new(Protected::<L>::new());
    let shared = Arc::clone(&protected);
    together(threads, move |_| {
        let token = shared.lock.lock();
        shared.count_and_unlock(token);
    });
    protected.check_at_rest(threads);
}

/// Threads of which some may die at any step: still at most one at a time is inside, and it sees
/// what those before it did there. A thread that waits for a dead holder may wait for ever, so this
/// is for a model that lets survivors block.
pub fn exclusion_despite_deaths<L: RawMutex + Send + Sync + 'static>(threads: usize) {
    let protected = Arc::new(Protected::<L>::new());
    let users: Vec<_> = (0..threads)
        .map(|_| {
            with(&protected, |protected| {
                let token = protected.lock.lock();
                protected.count_and_unlock(token)
            })
        })
        .collect();
    let counts: Vec<usize> = users.into_iter().filter_map(|user| user.join().ok()).collect();
    // Of those that came out, each counted for itself.
    assert!((1..=threads).filter(|count| counts.contains(count)).count() == counts.len(), "{counts:?}");
}

/// Every thread gets the lock `rounds` times: a thread that sleeps is woken. A lost wake-up is a
/// deadlock. Every second time a thread waits with a deadline that never comes, which is no reason
/// to leave.
///
/// # Panics
/// If one leaves all the same.
pub fn no_lost_wake<L: RawMutex + Send + Sync + 'static>(threads: usize, rounds: usize) {
    let lock = Arc::new(new_lock::<L>());
    let shared = Arc::clone(&lock);
    together(threads, move |_| {
        for round in 0..rounds {
            let token = match round % 2 {
                0 => shared.lock(),
                _ => shared.lock_until(Deadline::NEVER).expect("a waiter left without a reason"),
            };
            // SAFETY: the token is from this round's acquisition.
            unsafe { shared.unlock(token) };
        }
    });
    assert!(!lock.is_locked(), "the lock is locked although its last holder released it");
}

/// Waits that may expire run against an unlock and, with three threads or more, against waiters
/// without a deadline: at most one holds the lock, and no thread is left asleep on a free lock,
/// whichever way the timed waits end. None ends without the lock before its deadline. Beside the
/// holder, every second thread is timed, the first one included.
///
/// # Panics
/// If the property fails, and unless there are two threads at least.
pub fn timeout_vs_unlock<L: RawMutex + Send + Sync + 'static>(threads: usize) {
    leave_or_not::<L>(threads, |lock| lock_within(lock, Duration::from_millis(1)));
}

/// The lock, or nothing once `timeout` is over.
///
/// # Panics
/// If there is nothing before that.
pub(crate) fn lock_within<L: RawMutex>(lock: &L, timeout: Duration) -> Option<L::Token> {
    let deadline = Deadline::after(timeout);
    let token = lock.lock_until(deadline);
    assert!(token.is_some() || deadline.has_passed(), "a waiter left before its deadline");
    token
}

/// As [`timeout_vs_unlock`], with waits that a signal handler may end and no deadline does.
///
/// # Panics
/// As [`timeout_vs_unlock`].
#[cfg(world = "vm")]
pub fn interrupt_vs_unlock<L: RawMutex + RawInterruptible + Send + Sync + 'static>(threads: usize) {
    install_handler();
    leave_or_not::<L>(threads, |lock| {
        let token = lock.lock_until(until_struck());
        signal::mask(u32::MAX);
        token
    });
}

#[cfg(world = "vm")]
const STRIKES: Signal = Signal::new(10);

/// The handler of [`until_struck`], which does nothing.
#[cfg(world = "vm")]
pub fn install_handler() {
    signal::install(STRIKES, 0, || {});
}

/// For a wait that is interrupted, or not: the handler strikes the calling thread once, at any step
/// from here on, or never.
#[cfg(world = "vm")]
pub fn until_struck() -> Deadline {
    signal::arm(STRIKES, 1);
    Deadline::NEVER.interruptible()
}

/// Acquisitions of which every second one is by `may_leave` run against an unlock.
fn leave_or_not<L: RawMutex + Send + Sync + 'static>(threads: usize, may_leave: fn(&L) -> Option<L::Token>) {
    assert!(threads >= 2, "this takes at least two threads");
    let protected = Arc::new(Protected::<L>::new());
    let held = protected.lock.lock();
    let others: Vec<_> = (1..threads)
        .map(|me| {
            with(&protected, move |protected| {
                let token =
                    if me % 2 == 1 { may_leave(&protected.lock) } else { Some(protected.lock.lock()) };
                let Some(token) = token else { return 0 };
                protected.count_and_unlock(token);
                1
            })
        })
        .collect();
    protected.count_and_unlock(held);
    // Once more against what the timed waiters left behind.
    let token = protected.lock.lock();
    protected.count_and_unlock(token);
    let counted: usize = others.into_iter().map(|other| other.join().expect("a waiter panicked")).sum();
    protected.check_at_rest(2 + counted);
}

/// Memory with a lock in it that is freed by a thread that finds itself the last user.
struct Doomed<L> {
    lock: L,
    users: UnsafeCell<usize>,
}

/// A pointer that threads hand to one another.
struct Handle<T>(*const T);
impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}
// SAFETY: the clients, whose locks are `Send + Sync`, keep the memory alive until the last user is
// done, and what the lock protects is accessed under the lock only.
unsafe impl<T> Send for Handle<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Handle<T> {}

/// Each user takes the lock, counts itself out and releases; the user that found itself last frees
/// the memory. A lock that touches its word after the release may touch freed memory.
///
/// Under loom "freed" means overwritten: an atomic of loom is an index into the table of the
/// execution, and the index that is left behind does not exist, so the late access panics ("index
/// out of bounds"). Loom tries the orders of accesses to one word; a late *load* of a word that no
/// other user writes is seen only if it happens to run after the end. The virtual machine knows
/// that the word is gone, and says so.
pub fn last_unlocker_frees<L: RawMutex + Send + Sync + 'static>(threads: usize) {
    let doomed = Box::new(Doomed { lock: new_lock::<L>(), users: UnsafeCell::new(threads) });
    let handle = Handle(Box::into_raw(doomed));
    let freed: usize = together(threads, move |_| {
        let handle = handle.clone();
        // SAFETY: this user is not counted out yet, so the memory is alive.
        let doomed = unsafe { &*handle.0 };
        let token = doomed.lock.lock();
        let last = doomed.users.with_mut(|users| {
            // SAFETY: the lock is held.
            unsafe {
                *users -= 1;
                *users == 0
            }
        });
        // SAFETY: the token is from the acquisition above.
        unsafe { doomed.lock.unlock(token) };
        if last {
            // SAFETY: all users are counted out, and the last of them is this one.
            unsafe { free(handle.0.cast_mut()) };
        }
        usize::from(last)
    })
    .into_iter()
    .sum();
    assert_eq!(freed, 1, "the memory was freed {freed} times");
}

/// Ends the life of a lock that users may still be on their way out of.
///
/// # Safety
/// `doomed` came from `Box::into_raw`, and no thread but those on their way out uses it.
#[cfg(world = "machine")]
pub unsafe fn free<T>(doomed: *mut T) {
    // SAFETY: it came from `Box::into_raw`, and the caller is the last user.
    drop(unsafe { Box::from_raw(doomed) });
}

/// Ends the life of a lock that users may still be on their way out of: the memory stays, so that
/// the model and not the process meets the late access, and what was in it is not there any more.
///
/// # Safety
/// As on the machine.
#[cfg(world = "loom")]
pub unsafe fn free<T>(doomed: *mut T) {
    // SAFETY: the memory is still allocated, and the caller is the last user.
    unsafe { doomed.cast::<u8>().write_bytes(0xff, size_of::<T>()) };
}

/// Ends the life of a lock that users may still be on their way out of: the memory stays, so that
/// the virtual machine and not the process meets the late access.
///
/// # Safety
/// As on the machine.
#[cfg(world = "vm")]
pub unsafe fn free<T>(doomed: *mut T) {
    // SAFETY: it came from `Box::into_raw`, it is dropped once, and the caller is the last user.
    unsafe { doomed.drop_in_place() };
}

/// `try_lock` and `is_locked` tell the truth: of several attempts on a free lock one succeeds; a
/// success excludes the others; a holder's own attempt fails.
pub fn try_lock_coherence<L: RawMutex + Send + Sync + 'static>(threads: usize) {
    let protected = Arc::new(Protected::<L>::new());
    assert!(!protected.lock.is_locked(), "a new lock is locked");
    let shared = Arc::clone(&protected);
    let acquired: usize = together(threads, move |_| match shared.lock.try_lock() {
        Some(token) => {
            assert!(shared.lock.is_locked(), "is_locked is false while the lock is held");
            assert!(shared.lock.try_lock().is_none(), "try_lock succeeded while the lock is held");
            shared.count_and_unlock(token);
            1
        }
        None => 0,
    })
    .into_iter()
    .sum();
    assert!(acquired >= 1, "every try_lock failed on a lock that was free");
    protected.check_at_rest(acquired);
}

/// The first to come is served first, waiters that give up apart: of the threads, every second one
/// is timed if `timed`, the first one included, and every fourth one only tries; and every thread
/// that is to be served is.
pub fn in_order<L: RawMutex + Metered<Meter = Recorder> + Send + Sync + 'static>(
    threads: usize,
    timed: bool,
) {
    let protected = Arc::new(Protected::<L>::new());
    let shared = Arc::clone(&protected);
    let served: usize = together(threads, move |me| {
        let lock = &shared.lock;
        let token = match me % 4 {
            0 | 2 if timed => lock_within(lock, Duration::from_millis(1)),
            1 if timed => lock.try_lock(),
            _ => Some(lock.lock()),
        };
        let Some(token) = token else { return 0 };
        lock.meter().served();
        shared.count_and_unlock(token);
        1
    })
    .into_iter()
    .sum();
    protected.check_at_rest(served);
}

/// Waiters of which each gives up when its time comes, however long the holder stays: none needs
/// the release to leave. For a model in which all deadlines pass in the end.
///
/// # Panics
/// If one of them gets the lock, and unless there are two threads at least.
pub fn give_up_while_held<L: RawMutex + Send + Sync + 'static>(threads: usize) {
    assert!(threads >= 2, "give_up_while_held takes at least two threads");
    let protected = Arc::new(Protected::<L>::new());
    let held = protected.lock.lock();
    let others: Vec<_> = (1..threads)
        .map(|_| {
            with(&protected, |protected| lock_within(&protected.lock, Duration::from_millis(1)).is_some())
        })
        .collect();
    for other in others {
        assert!(!other.join().expect("a waiter panicked"), "two hold the lock");
    }
    protected.count_and_unlock(held);
    protected.check_at_rest(1);
}

/// A holder releases, acquires again, and waits then for `waiters` that have a deadline. So a
/// waiter that its lock has chosen, and that comes too late, has to leave all the same. For a model
/// in which all deadlines pass in the end.
///
/// # Panics
/// If two threads hold the lock.
pub fn give_up_beside_a_barger<L: RawMutex + Send + Sync + 'static>(waiters: usize) {
    let protected = Arc::new(Protected::<L>::new());
    let held = protected.lock.lock();
    let others: Vec<_> = (0..waiters)
        .map(|_| {
            with(&protected, |protected| {
                let taken = lock_within(&protected.lock, Duration::from_millis(1));
                let taken = taken.map(|token| protected.count_and_unlock(token));
                usize::from(taken.is_some())
            })
        })
        .collect();
    protected.count_and_unlock(held);
    let held = protected.lock.lock();
    let acquired: usize = others.into_iter().map(|other| other.join().expect("a waiter panicked")).sum();
    protected.count_and_unlock(held);
    protected.check_at_rest(2 + acquired);
}
