//! `pthread_mutex_t`: the layout, the types, and the functions.
//!
//! # Layout
//! The lock is inside the program's `pthread_mutex_t`, of which glibc's static initialisers and
//! `pthread_mutex_init` set one field, the kind; all else is zero, which is an unlocked lock.
//!
//! | bytes | what | in glibc |
//! |---|---|---|
//! | 0 to 7 | the owner of a recursive or error-checking mutex, by its thread pointer | `__lock`, `__count` |
//! | 8 to 11 | threads that wait on a condition variable with this mutex, unless it is passed on | `__owner` |
//! | 12 to 15 | the fork that the lock has lived through, see `fork.rs`; if it is passed on, glibc's count | `__nusers` |
//! | 16 to 19 | the kind | `__kind` |
//! | 20 to 23 | how often a recursive mutex is held beyond once | `__spins`, `__elision` |
//! | 24 to 39 | the lock | `__list` |
//!
//! # What is passed on to glibc
//! Mutexes that are robust, process-shared, of priority inheritance or with a priority ceiling: the
//! kind says so. With `ULOCKS_MUTEX=pi`, mutexes of priority inheritance are ours.
//!
//! # Ownership
//! The owner of a recursive or error-checking mutex is written by the holder only. So a thread that
//! reads its own name is the holder. Plain mutexes have no owner. A child of a fork has owners of
//! its own: see `fork.rs`.

use crate::choice::{Algorithm, Choice};
use crate::time::{self, Patience};
use crate::{fork, glibc, is_mine, myself, stats};
use core::cell::UnsafeCell;
use core::ffi::c_int;
use libc::{clockid_t, pthread_mutex_t, pthread_mutexattr_t, timespec};
use ulocks_calock::RawCalock;
use ulocks_core::futex::{Futex, Local, Waited};
use ulocks_core::raw::RawMutex;
use ulocks_core::sync::Ordering::{Acquire, Relaxed};
use ulocks_core::sync::{AtomicU32, AtomicU64};
use ulocks_core::time::Deadline;
use ulocks_fair::RawFairMutex;
use ulocks_pi::RawPiMutex;
use ulocks_unfair::{RawBargingMutex, RawThroughputMutex};

/// What this library makes of a `pthread_mutex_t`.
#[repr(C, align(8))]
pub struct Mutex {
    owner: AtomicU64,
    /// See [`condvar`](crate::condvar).
    sleepers: AtomicU32,
    pub generation: AtomicU32,
    kind: AtomicU32,
    depth: AtomicU32,
    lock: UnsafeCell<[u64; 2]>,
}

// SAFETY: `lock` is accessed as a lock, which is `Sync`; the rest is atomics.
unsafe impl Sync for Mutex {}

const _: () = assert!(size_of::<Mutex>() <= size_of::<pthread_mutex_t>());
const _: () = assert!(core::mem::offset_of!(Mutex, kind) == 16);

const TYPE: i32 = 3;
const RECURSIVE: i32 = libc::PTHREAD_MUTEX_RECURSIVE;
const ERRORCHECK: i32 = libc::PTHREAD_MUTEX_ERRORCHECK;
const ADAPTIVE: i32 = libc::PTHREAD_MUTEX_ADAPTIVE_NP;
/// `PTHREAD_MUTEX_NORMAL`, if the attributes say so: then glibc sets a bit against elision.
const NORMAL: i32 = 512;
const ROBUST: i32 = 16;
const INHERIT: i32 = 32;
const PROTECT: i32 = 64;
const SHARED: i32 = 128;

/// Runs `$then` with the lock of a mutex, whichever it is.
macro_rules! with_lock {
    ($mutex:expr, $algorithm:expr, $lock:ident => $then:expr) => {
        match $algorithm {
            Algorithm::Fair => {
                let $lock = $mutex.lock_as::<RawFairMutex>();
                $then
            }
            Algorithm::Unfair => {
                let $lock = $mutex.lock_as::<RawBargingMutex>();
                $then
            }
            Algorithm::Pi => {
                let $lock = $mutex.lock_as::<RawPiMutex>();
                $then
            }
            Algorithm::Calock => {
                let $lock = $mutex.lock_as::<RawCalock>();
                $then
            }
            Algorithm::Throughput | Algorithm::Glibc => {
                let $lock = $mutex.lock_as::<RawThroughputMutex>();
                $then
            }
        }
    };
}

// After the macro, which it uses.
mod waitable;

pub use waitable::Waitable;

impl Mutex {
    /// # Safety
    /// `mutex` points to a `pthread_mutex_t` that is initialised, and lives as long as the caller
    /// uses what this returns.
    #[inline(always)]
    pub unsafe fn at<'a>(mutex: *mut pthread_mutex_t) -> &'a Self {
        // SAFETY: the caller's promise. The layout is smaller and no stricter aligned, and all its
        // parts may be shared.
        unsafe { &*mutex.cast() }
    }

    #[inline(always)]
    fn address(&self) -> *mut pthread_mutex_t {
        core::ptr::from_ref(self).cast_mut().cast()
    }

    #[inline(always)]
    fn lock_as<L: RawMutex>(&self) -> &L {
        const { assert!(size_of::<L>() <= 16 && align_of::<L>() <= 8) };
        // SAFETY: the bytes are those of a lock of this type, which all-zero bytes are, too: the
        // choice does not change while the program runs. They are accessed as such a lock only.
        unsafe { &*self.lock.get().cast() }
    }

    #[inline(always)]
    fn kind(&self) -> i32 {
        self.kind.load(Relaxed).cast_signed()
    }

    /// Whether it is neither recursive, nor checks errors, nor is passed on.
    #[inline(always)]
    fn is_plain(&self) -> bool {
        matches!(self.kind(), 0 | NORMAL | ADAPTIVE)
    }

    /// Whether its owner is written down. For a `PiMutex` the kernel reports a thread that locks
    /// what it holds, so that must not come so far.
    #[inline(always)]
    fn is_owned(&self, choice: Choice) -> bool {
        matches!(self.kind() & TYPE, RECURSIVE | ERRORCHECK) || choice.mutex() == Algorithm::Pi
    }

    /// Whether glibc's functions are called for it.
    #[inline(always)]
    pub fn is_passed_on(&self, choice: Choice) -> bool {
        let kind = match choice.mutex() {
            Algorithm::Glibc => return true,
            Algorithm::Pi => self.kind() & !INHERIT,
            _ => self.kind(),
        };
        kind & (ROBUST | INHERIT | PROTECT | SHARED) != 0
    }

    pub fn is_locked(&self, choice: Choice) -> bool {
        with_lock!(self, choice.mutex(), lock => lock.is_locked())
    }

    /// `pthread_mutex_lock` and its like.
    ///
    /// # Safety
    /// A deadline points to a `timespec`.
    #[inline(never)]
    unsafe fn acquire(&self, patience: Patience) -> c_int {
        let choice = Choice::get();
        if self.is_passed_on(choice) {
            // SAFETY: it is a mutex that glibc knows.
            return unsafe { self.pass_on(patience) };
        }
        if choice.is_forked() {
            fork::renew_mutex(self, choice);
        }
        if self.is_owned(choice) && is_mine(&self.owner) {
            // SAFETY: the caller's promise.
            return unsafe { self.acquire_again(patience) };
        }
        // SAFETY: the caller's promise.
        let result = unsafe { self.acquire_lock(choice, patience) };
        if result == 0 && self.is_owned(choice) {
            self.owner.store(myself(), Relaxed);
        }
        result
    }

    /// The same of a recursive or error-checking mutex that is a `ThroughputMutex`, without a
    /// deadline.
    #[inline(always)]
    fn lock_owned(&self) -> c_int {
        if is_mine(&self.owner) {
            // SAFETY: no deadline.
            return unsafe { self.acquire_again(Patience::Forever) };
        }
        self.lock_as::<RawThroughputMutex>().lock();
        self.owner.store(myself(), Relaxed);
        0
    }

    /// By the holder.
    ///
    /// # Safety
    /// A deadline points to a `timespec`.
    #[cold]
    unsafe fn acquire_again(&self, patience: Patience) -> c_int {
        match self.kind() & TYPE {
            RECURSIVE => match self.depth.load(Relaxed).checked_add(1) {
                Some(depth) => {
                    self.depth.store(depth, Relaxed);
                    0
                }
                None => libc::EAGAIN,
            },
            // glibc's mutex of priority inheritance says so to attempts, too.
            ERRORCHECK if self.kind() & INHERIT != 0 => libc::EDEADLK,
            _ if matches!(patience, Patience::Never) => libc::EBUSY,
            ERRORCHECK => libc::EDEADLK,
            // SAFETY: the caller's promise.
            _ => unsafe { wait_for_oneself(patience) },
        }
    }

    #[inline(always)]
    unsafe fn acquire_lock(&self, choice: Choice, patience: Patience) -> c_int {
        with_lock!(self, choice.mutex(), lock => {
            let wait = |deadline: Option<Deadline>| match deadline {
                None => {
                    lock.lock();
                    true
                }
                Some(deadline) => lock.lock_until(deadline).is_some(),
            };
            // SAFETY: the caller's promise.
            unsafe {
                time::acquire(choice, self.address() as usize, patience, || lock.try_lock().is_some(), wait)
            }
        })
    }

    #[cold]
    unsafe fn pass_on(&self, patience: Patience) -> c_int {
        let mutex = self.address();
        // SAFETY: the caller's promise.
        unsafe {
            match patience {
                Patience::Forever => glibc::pthread_mutex_lock(mutex),
                Patience::Never => glibc::pthread_mutex_trylock(mutex),
                Patience::Until(ulocks_core::time::Clock::Monotonic, deadline) => {
                    glibc::pthread_mutex_clocklock(mutex, libc::CLOCK_MONOTONIC, deadline)
                }
                Patience::Until(_, deadline) => glibc::pthread_mutex_timedlock(mutex, deadline),
            }
        }
    }

    /// `pthread_mutex_unlock`.
    fn release(&self) -> c_int {
        let choice = Choice::get();
        if self.is_passed_on(choice) {
            // SAFETY: it is a mutex that glibc knows.
            return unsafe { glibc::pthread_mutex_unlock(self.address()) };
        }
        if choice.is_forked() {
            fork::renew_mutex(self, choice);
        }
        if let Err(result) = self.disown(choice) {
            return result;
        }
        if choice.has_stats() {
            stats::releases(self.address() as usize);
        }
        with_lock!(self, choice.mutex(), lock => {
            if lock.is_locked() {
                // SAFETY: the caller of `pthread_mutex_unlock` holds it.
                unsafe { lock.unlock(()) };
            }
        });
        0
    }

    /// Before a release: takes one off the depth, and the owner's name off the mutex. An error is
    /// what `pthread_mutex_unlock` returns, zero if the mutex is still held.
    fn disown(&self, choice: Choice) -> Result<(), c_int> {
        if self.is_owned(choice) { self.disown_owned() } else { Ok(()) }
    }

    #[inline(always)]
    fn disown_owned(&self) -> Result<(), c_int> {
        if !is_mine(&self.owner) {
            return Err(libc::EPERM);
        }
        let depth = self.depth.load(Relaxed);
        if depth > 0 {
            self.depth.store(depth - 1, Relaxed);
            return Err(0);
        }
        self.owner.store(0, Relaxed);
        Ok(())
    }

    /// Begins anew in the child of a fork: held without waiters if it was held, else free.
    pub fn renew(&self, choice: Choice) {
        let was_locked = self.is_locked(choice);
        if choice.mutex() == Algorithm::Pi {
            // The word of a `PiMutex` is the holder's number, and this thread may be another one
            // than that which forked: the first thread of a process has the number of the process.
            let holder = if was_locked { std::process::id() } else { 0 };
            // SAFETY: the word is the first of the lock's, aligned, lives as long, and is accessed
            // atomically by every thread.
            unsafe { &*self.lock.get().cast::<AtomicU32>() }.store(holder, Relaxed);
        } else {
            with_lock!(self, choice.mutex(), lock => {
                let new = initial_of(lock);
                if was_locked {
                    _ = new.try_lock();
                }
                fork::renew_lock(lock, new);
            });
        }
        fork::renew_owner(&self.owner);
        self.sleepers.store(0, Relaxed);
    }
}

/// A new lock of the same type.
fn initial_of<L: RawMutex>(_: &L) -> L {
    ulocks_core::initial!(L)
}

/// A thread locks a normal mutex that it holds: as in glibc, that ends with the deadline or never.
///
/// # Safety
/// A deadline points to a `timespec`.
unsafe fn wait_for_oneself(patience: Patience) -> c_int {
    let until = match patience {
        Patience::Never | Patience::Forever => Deadline::NEVER,
        // SAFETY: the caller's promise.
        Patience::Until(clock, deadline) => match unsafe { time::deadline(clock, deadline) } {
            Ok(deadline) => deadline,
            Err(error) => return error,
        },
    };
    let word = Futex::<Local>::new(0);
    while word.wait(0, Some(until)) != Waited::TimedOut {}
    libc::ETIMEDOUT
}

/// # Safety
/// As `pthread_mutex_init` of POSIX, and so for the functions below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_init(
    mutex: *mut pthread_mutex_t,
    attributes: *const pthread_mutexattr_t,
) -> c_int {
    if Choice::get().has_stats() {
        stats::made(mutex as usize);
    }
    // glibc checks the attributes, writes the kind, and makes the rest zero.
    // SAFETY: the caller's promise.
    unsafe { glibc::pthread_mutex_init(mutex, attributes) }
}

/// # Safety
/// As POSIX says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_destroy(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's promise.
    let this = unsafe { Mutex::at(mutex) };
    let choice = Choice::get();
    if this.is_passed_on(choice) {
        // SAFETY: it is a mutex that glibc knows.
        return unsafe { glibc::pthread_mutex_destroy(mutex) };
    }
    if choice.is_forked() {
        fork::renew_mutex(this, choice);
    }
    // Acquire: what the last holder wrote happens before what the caller does with the memory.
    if this.sleepers.load(Acquire) > 0 || this.is_locked(choice) {
        return libc::EBUSY;
    }
    // As in glibc: a use from here on is an error, not a lock.
    this.kind.store(u32::MAX, Relaxed);
    0
}

/// # Safety
/// As POSIX says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's promise.
    let this = unsafe { Mutex::at(mutex) };
    if Choice::is_throughput_only() {
        match this.kind() {
            0 | NORMAL | ADAPTIVE => {
                this.lock_as::<RawThroughputMutex>().lock();
                return 0;
            }
            RECURSIVE | ERRORCHECK => return this.lock_owned(),
            _ => {}
        }
    }
    // SAFETY: no deadline.
    unsafe { this.acquire(Patience::Forever) }
}

/// # Safety
/// As POSIX says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_trylock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's promise.
    let this = unsafe { Mutex::at(mutex) };
    if Choice::is_throughput_only() && this.is_plain() {
        return if this.lock_as::<RawThroughputMutex>().try_lock().is_some() { 0 } else { libc::EBUSY };
    }
    // SAFETY: no deadline.
    unsafe { this.acquire(Patience::Never) }
}

/// # Safety
/// As POSIX says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_timedlock(
    mutex: *mut pthread_mutex_t,
    deadline: *const timespec,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { Mutex::at(mutex).acquire(Patience::Until(ulocks_core::time::Clock::Realtime, deadline)) }
}

/// # Safety
/// As POSIX says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_clocklock(
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    deadline: *const timespec,
) -> c_int {
    let Some(patience) = Patience::on(clock, deadline) else { return libc::EINVAL };
    // SAFETY: the caller's promise.
    unsafe { Mutex::at(mutex).acquire(patience) }
}

/// # Safety
/// As POSIX says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's promise.
    let this = unsafe { Mutex::at(mutex) };
    if Choice::is_throughput_only() {
        let lock = this.lock_as::<RawThroughputMutex>();
        match this.kind() {
            0 | NORMAL | ADAPTIVE => {
                // SAFETY: the caller holds it. If it is free, and no other thread acquires it
                // meanwhile, this lock forgives that, as glibc's does.
                unsafe { lock.unlock(()) };
                return 0;
            }
            RECURSIVE | ERRORCHECK => {
                return match this.disown_owned() {
                    Ok(()) => {
                        // SAFETY: the caller was its owner.
                        unsafe { lock.unlock(()) };
                        0
                    }
                    Err(result) => result,
                };
            }
            _ => {}
        }
    }
    this.release()
}
