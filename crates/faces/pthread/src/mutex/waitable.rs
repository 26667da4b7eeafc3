//! A mutex as a condition variable sees it.

use super::{INHERIT, Mutex, PROTECT, ROBUST};
use crate::choice::{Algorithm, Choice};
use crate::time::Patience;
use crate::{fork, glibc, is_mine, myself, stats};
use core::cell::UnsafeCell;
use core::ffi::c_int;
use ulocks_calock::RawCalock;
use ulocks_core::futex::{FutexKey, Local};
use ulocks_core::raw::RawMutex;
use ulocks_core::sync::Ordering::{Relaxed, Release};
use ulocks_core::sync::{AtomicU32, AtomicU64};
use ulocks_core::tid;
use ulocks_core::time::Deadline;
use ulocks_fair::RawFairMutex;
use ulocks_pi::RawPiMutex;
use ulocks_unfair::{RawBargingMutex, RawThroughputMutex};

/// A mutex as a condition variable sees it. The token is what `pthread_mutex_lock` returned: a
/// robust mutex is acquired with `EOWNERDEAD`.
#[repr(transparent)]
pub struct Waitable(pub Mutex);

ulocks_core::initial!([] Waitable = Self(Mutex {
    lock: UnsafeCell::new([0; 2]),
    sleepers: AtomicU32::new(0),
    generation: AtomicU32::new(0),
    kind: AtomicU32::new(0),
    depth: AtomicU32::new(0),
    owner: AtomicU64::new(0),
}));

// SAFETY:
// * One token at a time, and a release happens before the next acquisition returns: by the lock
//   that the mutex is made of, ours or glibc's.
// * A token is a number, and no lock keeps its address, so both may be forgotten and moved. glibc's
//   robust mutexes are in a list, and are not moved, as `pthread.h` demands.
unsafe impl RawMutex for Waitable {
    type Scope = Local;
    type Token = c_int;
    type Condvar = ulocks_core::condvar::Sequence<Self>;
    const CONDVAR_NS: u32 = <RawThroughputMutex>::CONDVAR_NS;

    fn lock(&self) -> c_int {
        // SAFETY: no deadline.
        unsafe { self.0.acquire(Patience::Forever) }
    }

    fn try_lock(&self) -> Option<c_int> {
        // SAFETY: no deadline.
        let result = unsafe { self.0.acquire(Patience::Never) };
        (result != libc::EBUSY).then_some(result)
    }

    fn lock_until(&self, _: Deadline) -> Option<c_int> {
        Some(self.lock()) // No condition variable calls it.
    }

    unsafe fn unlock(&self, _: c_int) {
        self.0.release();
    }

    unsafe fn unlock_to_wait(&self, _: c_int) {
        let choice = Choice::get();
        if self.0.is_passed_on(choice) {
            // SAFETY: the caller holds it, and glibc knows it.
            unsafe { glibc::pthread_mutex_unlock(self.0.address()) };
            return;
        }
        if self.0.disown(choice).is_err() {
            return; // A recursive mutex that is still held, as with glibc.
        }
        if choice.has_stats() {
            stats::releases(self.0.address() as usize);
        }
        with_lock!(self.0, choice.mutex(), lock => {
            // As in glibc: a wait with a mutex that is free is forgiven.
            if lock.is_locked() {
                // SAFETY: the caller's promise.
                unsafe { lock.unlock_to_wait(()) };
            }
        });
    }

    fn is_locked(&self) -> bool {
        let choice = Choice::get();
        !self.0.is_passed_on(choice) && self.0.is_locked(choice)
    }

    fn requeue_key(&self) -> Option<FutexKey<Local>> {
        let choice = Choice::get();
        // The waiter of a recursive mutex that stays held would wait for its own release.
        if self.0.is_passed_on(choice) || self.0.depth.load(Relaxed) > 0 {
            return None;
        }
        with_lock!(self.0, choice.mutex(), lock => lock.requeue_key())
    }

    fn mark_for_requeued(&self) -> bool {
        with_lock!(self.0, Choice::get().mutex(), lock => lock.mark_for_requeued())
    }

    fn lock_requeued(&self) -> c_int {
        let choice = Choice::get();
        let is_still_held = || self.0.is_owned(choice) && is_mine(&self.0.owner);
        if self.0.is_passed_on(choice) || is_still_held() {
            return self.lock();
        }
        // The copy of a waiter whose handler has forked ends its wait here.
        if choice.is_forked() {
            fork::renew_mutex(&self.0, choice);
        }
        with_lock!(self.0, choice.mutex(), lock => lock.lock_requeued());
        if choice.has_stats() {
            stats::held_again(self.0.address() as usize);
        }
        if self.0.is_owned(choice) {
            self.0.owner.store(myself(), Relaxed);
        }
        0
    }
}

impl Waitable {
    /// Whether a wait may begin: zero, or what it returns at once.
    pub fn check_owner(&self) -> c_int {
        let choice = Choice::get();
        let is_owner = if !self.0.is_passed_on(choice) {
            !self.0.is_owned(choice) || is_mine(&self.0.owner)
        } else if self.0.kind() & (ROBUST | INHERIT) != 0 {
            // Their `__lock` names the thread that holds them, as the kernel demands. `__owner` is
            // no thread's name while the mutex is inconsistent.
            self.glibcs_lock().load(Relaxed) & libc::FUTEX_TID_MASK == tid::current()
        } else if self.0.is_owned(choice) || self.0.kind() & PROTECT != 0 {
            // Their `__owner` is where we have `sleepers`.
            self.0.sleepers.load(Relaxed) == tid::current()
        } else {
            true // glibc does not check the owner of a normal mutex.
        };
        if is_owner { 0 } else { libc::EPERM }
    }

    /// `__lock` of a mutex that is passed on.
    fn glibcs_lock(&self) -> &AtomicU32 {
        // SAFETY: the first four bytes of a `pthread_mutex_t` are aligned, live as long as the
        // mutex, and are only accessed atomically. Of `owner`, whose bytes they are in a mutex of
        // ours, nobody asks in one that is passed on.
        unsafe { &*self.0.address().cast() }
    }

    /// What says to `pthread_mutex_destroy` that threads wait with this mutex. In a mutex of
    /// glibc's that is `__nusers`: glibc's own waits do not count it down when they release the
    /// mutex.
    fn sleepers(&self) -> &AtomicU32 {
        if self.0.is_passed_on(Choice::get()) { &self.0.generation } else { &self.0.sleepers }
    }

    /// One thread more waits with this mutex: it holds it.
    pub fn add_sleeper(&self) {
        self.sleepers().fetch_add(1, Relaxed);
    }

    /// One thread less waits with this mutex: it holds it.
    pub fn remove_sleeper(&self) {
        // Release: pairs with the Acquire of `pthread_mutex_destroy`. It stays at zero where the
        // mutex was begun anew during the wait: in a child, whose thread has forked in a handler.
        _ = self.sleepers().fetch_update(Release, Relaxed, |sleepers| sleepers.checked_sub(1));
    }
}
