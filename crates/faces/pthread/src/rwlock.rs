//! `pthread_rwlock_t`: a `PsRwLock` of one class.
//!
//! # Layout
//! | bytes | what | in glibc |
//! |---|---|---|
//! | 0 to 15 | the lock | `__readers`, `__writers`, and two futexes |
//! | 16 to 19 | the fork that it has lived through; see `fork.rs` | padding |
//! | 28 to 31 | not zero: process-shared, and passed on to glibc | `__shared` |
//! | 32 to 39 | the writer, by its thread pointer | elision, padding |
//! | 48 to 51 | the kind: 2 for `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP` | `__flags` |
//!
//! # Kinds
//! glibc's default kind lets readers in as long as readers hold the lock, whatever writers wait.
//! Programs rely on that: a thread reads twice, or waits, while it reads, for another thread that
//! reads. `PTHREAD_RWLOCK_PREFER_WRITER_NP` is the same with glibc. So these two kinds are
//! [`ReadersFirst`], and the third one is [`PhaseFair`]. Only writers differ: readers find out what
//! the writer that they meet has asked for.
//!
//! # Forks
//! Each thread has a list of its read locks, for a child that it may fork: only these readers are
//! in the child. The list has room for 32 locks. A lock that the thread makes or destroys leaves
//! its list, so that a new lock in the same memory has no readers. POSIX does not permit that one
//! thread reads a lock and another releases or destroys it. Such a lock stays in the list of the
//! first.

use crate::choice::Choice;
use crate::holds::Holds;
use crate::time::{self, Patience};
use crate::{fork, glibc, is_mine, myself, stats};
use core::ffi::c_int;
use libc::{clockid_t, pthread_rwlock_t, pthread_rwlockattr_t, timespec};
use ulocks_core::Private;
use ulocks_core::raw::RawRwLock;
use ulocks_core::signal::Soft;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::sync::{AtomicU32, AtomicU64};
use ulocks_core::time::Clock;
use ulocks_psrwlock::{
    BULK, Bulk, Central, PhaseFair, RawPsRwLock, ReadToken, ReadersFirst, Sifted, Unchecked,
};

type LockWith<F> = RawPsRwLock<Sifted<BULK, Private, F, Central, Soft, Unchecked>>;
type Lock = LockWith<ReadersFirst>;

#[repr(C, align(8))]
pub struct RwLock {
    lock: Lock,
    generation: AtomicU32,
    padding: [u32; 2],
    shared: AtomicU32,
    writer: AtomicU64,
    more_padding: u64,
    kind: AtomicU32,
}

const _: () = assert!(size_of::<Lock>() == 16);
const _: () = assert!(size_of::<RwLock>() <= size_of::<pthread_rwlock_t>());
const _: () = assert!(core::mem::offset_of!(RwLock, shared) == 28);
const _: () = assert!(core::mem::offset_of!(RwLock, kind) == 48);

const NONRECURSIVE: u32 = 2;

/// What a reader passes to its release: with one class and one count it is always the same.
const TOKEN: ReadToken = Lock::token::<Bulk>();

/// As glibc, a rwlock checks the nanoseconds even if it need not wait.
///
/// # Safety
/// A deadline points to a `timespec`.
#[inline(always)]
unsafe fn check(patience: Patience) -> c_int {
    match patience {
        // SAFETY: the caller's promise.
        Patience::Until(clock, deadline) => match unsafe { time::deadline(clock, deadline) } {
            Err(libc::EINVAL) => libc::EINVAL,
            _ => 0,
        },
        _ => 0,
    }
}

impl RwLock {
    /// # Safety
    /// `lock` points to a `pthread_rwlock_t` that is initialised, and lives as long as the caller
    /// uses what this returns.
    #[inline(always)]
    unsafe fn at<'a>(lock: *mut pthread_rwlock_t) -> &'a Self {
        // SAFETY: the caller's promise. The layout is smaller and no stricter aligned.
        unsafe { &*lock.cast() }
    }

    fn address(&self) -> *mut pthread_rwlock_t {
        core::ptr::from_ref(self).cast_mut().cast()
    }

    #[inline(always)]
    fn is_passed_on(&self, choice: Choice) -> bool {
        !choice.has_psrwlock() || self.shared.load(Relaxed) != 0
    }

    /// The lock for a writer that shuts out readers while others are inside, if it is of that kind.
    #[inline(always)]
    fn phase_fair(&self) -> Option<&LockWith<PhaseFair>> {
        let is_fair = self.kind.load(Relaxed) == NONRECURSIVE;
        // SAFETY: the two types have the same fields, and the same invariants but for level
        // `ASKED`, which this writer does not set, and which other owners have left by then.
        is_fair.then(|| unsafe { &*(&raw const self.lock).cast() })
    }

    /// Before an acquisition: what speaks against it, or zero.
    ///
    /// # Safety
    /// A deadline points to a `timespec`.
    #[inline(always)]
    unsafe fn begin(&self, choice: Choice, patience: Patience) -> c_int {
        // SAFETY: the caller's promise.
        match unsafe { check(patience) } {
            0 => self.renew(choice),
            error => return error,
        }
        match patience {
            _ if !is_mine(&self.writer) => 0,
            Patience::Never => libc::EBUSY,
            _ => libc::EDEADLK,
        }
    }

    /// Whether it is ours, with nothing else to do.
    #[inline(always)]
    fn is_ours_only(&self) -> bool {
        Choice::is_psrwlock_only() && self.shared.load(Relaxed) == 0
    }

    /// An attempt to read. The writer need not be asked for: none is inside if it succeeds.
    #[inline(always)]
    fn read_at_once(&self) -> bool {
        let reads = self.is_ours_only() && self.lock.try_read().is_some();
        if reads {
            Holds::mine().enter(self.address().cast());
        }
        reads
    }

    /// # Safety
    /// A deadline points to a `timespec`.
    #[cold]
    unsafe fn read(&self, patience: Patience) -> c_int {
        let choice = Choice::get();
        if self.is_passed_on(choice) {
            // SAFETY: it is a lock that glibc knows; the caller's promise.
            return unsafe { self.pass_on_read(patience) };
        }
        // SAFETY: the caller's promise.
        match unsafe { self.begin(choice, patience) } {
            0 => {}
            error => return error,
        }
        let lock = &self.lock;
        let wait = |deadline| match deadline {
            None => {
                lock.read();
                true
            }
            Some(deadline) => lock.read_until(deadline).is_some(),
        };
        // SAFETY: the caller's promise.
        let result = unsafe { self.acquire(choice, patience, || lock.try_read().is_some(), wait) };
        if result == 0 {
            Holds::mine().enter(self.address().cast());
        }
        result
    }

    /// An attempt to write.
    #[inline(always)]
    fn write_at_once(&self) -> bool {
        let writes = self.is_ours_only()
            && match self.phase_fair() {
                None => self.lock.try_write().is_some(),
                Some(lock) => lock.try_write().is_some(),
            };
        if writes {
            self.writer.store(myself(), Relaxed);
        }
        writes
    }

    /// # Safety
    /// A deadline points to a `timespec`.
    #[cold]
    unsafe fn write(&self, patience: Patience) -> c_int {
        let choice = Choice::get();
        if self.is_passed_on(choice) {
            // SAFETY: it is a lock that glibc knows; the caller's promise.
            return unsafe { self.pass_on_write(patience) };
        }
        // SAFETY: the caller's promise.
        match unsafe { self.begin(choice, patience) } {
            0 => {}
            error => return error,
        }
        // SAFETY: the caller's promise.
        let result = unsafe {
            match self.phase_fair() {
                None => self.write_by(&self.lock, choice, patience),
                Some(lock) => self.write_by(lock, choice, patience),
            }
        };
        if result == 0 {
            self.writer.store(myself(), Relaxed);
        }
        result
    }

    /// # Safety
    /// A deadline points to a `timespec`.
    #[inline(always)]
    unsafe fn write_by<L: RawRwLock>(&self, lock: &L, choice: Choice, patience: Patience) -> c_int {
        let wait = |deadline| match deadline {
            None => {
                lock.write();
                true
            }
            Some(deadline) => lock.write_until(deadline).is_some(),
        };
        // SAFETY: the caller's promise.
        unsafe { self.acquire(choice, patience, || lock.try_write().is_some(), wait) }
    }

    /// # Safety
    /// A deadline points to a `timespec`.
    #[inline(always)]
    unsafe fn acquire(
        &self,
        choice: Choice,
        patience: Patience,
        attempt: impl Fn() -> bool,
        wait: impl Fn(Option<ulocks_core::time::Deadline>) -> bool,
    ) -> c_int {
        // SAFETY: the caller's promise.
        unsafe { time::acquire(choice, self.address() as usize, patience, attempt, wait) }
    }

    #[inline(always)]
    fn release(&self) -> c_int {
        if self.is_ours_only() {
            self.unlock();
            return 0;
        }
        self.release_with_more()
    }

    /// By the holder.
    #[inline(always)]
    fn unlock(&self) {
        if is_mine(&self.writer) {
            self.writer.store(0, Relaxed);
            // SAFETY: this thread wrote its name when it had the lock as a writer.
            unsafe { self.lock.unlock_write(()) };
        } else if Holds::mine().leave(self.address().cast()) || self.lock.is_locked() {
            // SAFETY: the caller of `pthread_rwlock_unlock` holds it, and is no writer.
            unsafe { self.lock.unlock_read(TOKEN) };
        }
    }

    #[cold]
    fn release_with_more(&self) -> c_int {
        let choice = Choice::get();
        if self.is_passed_on(choice) {
            // SAFETY: it is a lock that glibc knows.
            return unsafe { glibc::pthread_rwlock_unlock(self.address()) };
        }
        self.renew(choice);
        if choice.has_stats() && is_mine(&self.writer) {
            stats::releases(self.address() as usize);
        }
        self.unlock();
        0
    }

    /// In the child of a fork: without the readers and waiters that are not in this process.
    #[inline(always)]
    fn renew(&self, choice: Choice) {
        if !choice.is_forked() {
            return;
        }
        fork::renew(&self.generation, || {
            let depth = Holds::mine().depth(self.address().cast());
            // Not by the lock's word: a writer that waits for readers has shut out others there.
            let is_written = self.writer.load(Relaxed) != 0;
            let new = ulocks_core::initial!(Lock);
            if is_written {
                _ = new.try_write();
            }
            for _ in 0..depth {
                _ = new.try_read();
            }
            fork::renew_lock(&self.lock, new);
            if is_written {
                fork::renew_owner(&self.writer);
            }
        });
    }
}

/// # Safety
/// As `pthread_rwlock_init` of POSIX, and so for the functions below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_rwlock_init(
    lock: *mut pthread_rwlock_t,
    attributes: *const pthread_rwlockattr_t,
) -> c_int {
    Holds::mine().forget(lock.cast());
    // glibc writes the kind and whether it is shared, and makes the rest zero.
    // SAFETY: the caller's promise.
    unsafe { glibc::pthread_rwlock_init(lock, attributes) }
}

/// # Safety
/// As POSIX says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_rwlock_destroy(lock: *mut pthread_rwlock_t) -> c_int {
    Holds::mine().forget(lock.cast());
    // glibc's function does nothing with a lock that is its own.
    // SAFETY: the caller's promise.
    unsafe { glibc::pthread_rwlock_destroy(lock) }
}

/// The functions that acquire a rwlock by `$method`, and the way to glibc's.
macro_rules! acquisitions {
    ($method:ident, $at_once:ident, $pass_on:ident: $lock:ident, $try:ident, $timed:ident, $clocked:ident) => {
        impl RwLock {
            /// # Safety
            /// glibc knows the lock. A deadline points to a `timespec`.
            unsafe fn $pass_on(&self, patience: Patience) -> c_int {
                let lock = self.address();
                // SAFETY: the caller's promise.
                unsafe {
                    match patience {
                        Patience::Forever => glibc::$lock(lock),
                        Patience::Never => glibc::$try(lock),
                        Patience::Until(Clock::Monotonic, deadline) => {
                            glibc::$clocked(lock, libc::CLOCK_MONOTONIC, deadline)
                        }
                        Patience::Until(_, deadline) => glibc::$timed(lock, deadline),
                    }
                }
            }
        }

        /// # Safety
        /// As POSIX says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $lock(lock: *mut pthread_rwlock_t) -> c_int {
            // SAFETY: the caller's promise.
            let lock = unsafe { RwLock::at(lock) };
            if lock.$at_once() {
                return 0;
            }
            // SAFETY: no deadline.
            unsafe { lock.$method(Patience::Forever) }
        }

        /// # Safety
        /// As POSIX says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $try(lock: *mut pthread_rwlock_t) -> c_int {
            // SAFETY: the caller's promise.
            let lock = unsafe { RwLock::at(lock) };
            if lock.$at_once() {
                return 0;
            }
            // SAFETY: no deadline.
            unsafe { lock.$method(Patience::Never) }
        }

        /// # Safety
        /// As POSIX says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $timed(lock: *mut pthread_rwlock_t, deadline: *const timespec) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { RwLock::at(lock).$method(Patience::Until(Clock::Realtime, deadline)) }
        }

        /// # Safety
        /// As glibc says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $clocked(
            lock: *mut pthread_rwlock_t,
            clock: clockid_t,
            deadline: *const timespec,
        ) -> c_int {
            let Some(patience) = Patience::on(clock, deadline) else { return libc::EINVAL };
            // SAFETY: the caller's promise.
            unsafe { RwLock::at(lock).$method(patience) }
        }
    };
}

acquisitions! {
    read, read_at_once, pass_on_read: pthread_rwlock_rdlock, pthread_rwlock_tryrdlock,
    pthread_rwlock_timedrdlock, pthread_rwlock_clockrdlock
}
acquisitions! {
    write, write_at_once, pass_on_write: pthread_rwlock_wrlock, pthread_rwlock_trywrlock,
    pthread_rwlock_timedwrlock, pthread_rwlock_clockwrlock
}

/// # Safety
/// As POSIX says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_rwlock_unlock(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { RwLock::at(lock).release() }
}
