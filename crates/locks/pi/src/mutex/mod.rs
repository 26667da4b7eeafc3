//! [`PiMutex`]: its holder runs with the priority of the best waiter.

mod error;
mod face;
pub(crate) mod raw;
mod word;

pub use error::{Orphan, PiLockError};
pub use face::RawPi;
pub use raw::{RawPiMutex, Taken};
#[doc(hidden)]
pub use word::State;

use core::fmt;
use core::time::Duration;
use ulocks_core::futex::PiError;
use ulocks_core::time::Deadline;
use ulocks_core::{Private, api, const_fn};

/// A mutex whose holder inherits the priority of its waiters; four bytes beside the data.
///
/// While a thread of high priority waits, the holder runs with that priority. So no thread of
/// middling priority keeps the two from getting on (priority inversion). If the holder itself waits
/// for another `PiMutex`, so does the holder of that. Programs with `SCHED_FIFO`, `SCHED_RR` or
/// `SCHED_DEADLINE` threads want this. Among threads of one priority it is a slow mutex: once a
/// waiter sleeps, each release is a system call that hands it over. Where threads contend, a mutex
/// that barges is several times as fast: `BENCHMARKS.md` has both.
///
/// This one is for the threads of one process, with the default patience and without counters;
/// [`PiMutexWith`] has the others. Both are names of a [`PiMutexOf`], whose page lists the methods.
///
/// # Fairness
/// Of the waiters that sleep the one of highest priority is served first, and among equals the one
/// that fell asleep first. A release hands the mutex to a sleeper. Until that one runs, an arriving
/// thread of higher priority can take it, and no other. An arriving thread that spins is not in
/// that order yet. A sleeper may overtake it, and while no waiter sleeps it may overtake other
/// spinners.
///
/// # Blocking
/// [`lock`](PiMutexOf::lock) is one atomic read-modify-write if the mutex is free, and so is the
/// release if there are no waiters. Otherwise the caller spins for up to
/// [`ARRIVAL_NS`](ulocks_core::spin::Spin::ARRIVAL_NS) of its policy, 6 us by default, while no
/// waiter is known to sleep. While it looks as if a waiter slept and nothing proves it, the caller
/// spins for half of that. Then it sleeps in the kernel (`FUTEX_LOCK_PI2`, or `FUTEX_LOCK_PI`
/// before Linux 5.14), and lends its priority. For exact order and no delay in lending, take
/// `Private<NoSpin>`. No thread yields to the scheduler.
///
/// # Errors
/// What cannot end is told: [`PiLockError::Deadlock`] and [`PiLockError::OwnerGone`], where glibc
/// sleeps for ever, and [`PiLockError::OwnerDied`], which comes with a guard. To use that guard is
/// unsafe: the owner that has ended may have leaked its own ([`Orphan`]). The kernel knows an owner
/// by its thread id. If the id of a thread that ended with the mutex locked is given to a new
/// thread, the mutex is that thread's.
///
/// # Aborts
/// If the kernel refuses a release: a seccomp filter forbids it, or the memory was overwritten. A
/// panic would leave waiters asleep for as long as the thread lives.
///
/// # Process-shared
/// [`PiMutexWith`]`<T, Shared>`, between processes of one pid namespace: no address is stored and
/// all-zero memory is an unlocked mutex. A process that dies with the mutex locked is told to the
/// next in line, or as `OwnerGone`.
///
/// # Signals and forks
/// Signals are handled while a thread waits, and the wait goes on. It cannot be
/// [interrupted](ulocks_core::interrupt): the kernel begins it again after each handler, also if it
/// has a deadline. A child of `fork` does not hold what its parent holds. To drop the copy of a
/// guard there does nothing, as long as the child does not hold the mutex itself. The child must
/// forget the copy before it locks the mutex: else the drop of the copy releases the child's own
/// lock. The copy of a `Private` mutex that was locked belongs to the thread of the parent until
/// that ends. To lock it waits for that, and returns [`PiLockError::OwnerDied`]; or it fails with
/// [`PiLockError::Inconsistent`], depending on the kernel. After a fork, ids are right without any
/// help.
///
/// # Memory
/// What releases touches the mutex no more, so the thread that releases last may free or unmap it
/// at once. A guard may be forgotten, which leaves the mutex locked, at least until the thread
/// ends. A locked mutex may be moved or dropped. A guard cannot be sent to another thread:
///
/// ```compile_fail,E0277
/// # use ulocks_pi::PiMutex;
/// fn is_send<T: Send>(_: T) {}
/// let mutex = PiMutex::new(0);
/// is_send(mutex.lock().unwrap());
/// ```
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use ulocks_pi::{PiLockError, PiMutex};
///
/// static HITS: PiMutex<u64> = PiMutex::new(0);
///
/// # if cfg!(miri) { return Ok(()) }
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| *HITS.lock().unwrap() += 1);
///     }
/// });
///
/// let held = HITS.lock()?;
/// assert_eq!(*held, 4);
/// assert!(HITS.try_lock()?.is_none());
/// assert!(matches!(HITS.lock(), Err(PiLockError::Deadlock)));
/// drop(held);
/// assert!(HITS.try_lock_for(Duration::from_millis(1))?.is_some());
/// # Ok::<(), PiLockError<ulocks_pi::PiMutexGuard<'static, u64>>>(())
/// ```
pub type PiMutex<T> = PiMutexWith<T, Private>;

/// A [`PiMutex`] with another policy: between processes, with other patience, or with counters
/// inside.
///
/// It is a name of its own because a default of a type parameter does not apply in an expression:
/// `PiMutex::new(0)` would not say which mutex it makes.
///
/// ```
/// use ulocks_core::spin::NoSpin;
/// use ulocks_core::{Private, Shared};
/// use ulocks_pi::PiMutexWith;
///
/// static ACROSS_PROCESSES: PiMutexWith<u32, Shared> = PiMutexWith::new(0);
/// static EXACT: PiMutexWith<u32, Private<NoSpin>> = PiMutexWith::new(0);
/// ```
pub type PiMutexWith<T, P = Private> = PiMutexOf<RawPiMutex<P>, T>;

/// Data behind a priority-inheriting mutex `L` that returns errors: [`PiMutex`], and a checked one.
#[repr(transparent)]
pub struct PiMutexOf<L: RawPi, T: ?Sized> {
    inner: api::Mutex<L, T>,
}

/// What holds a [`PiMutex`] locked, and gives access to its data.
pub type PiMutexGuard<'a, T, P = Private> = api::MutexGuard<'a, RawPiMutex<P>, T>;

/// A [`PiMutexGuard`] narrowed to a part of the data.
pub type MappedPiMutexGuard<'a, T, P = Private> = api::MappedMutexGuard<'a, RawPiMutex<P>, T>;

/// What locking returns.
pub type PiLockResult<'a, T, P = Private> =
    Result<PiMutexGuard<'a, T, P>, PiLockError<PiMutexGuard<'a, T, P>>>;

/// What an attempt to lock returns: no guard if the mutex could not be had in time.
pub type PiTryLockResult<'a, T, P = Private> =
    Result<Option<PiMutexGuard<'a, T, P>>, PiLockError<PiMutexGuard<'a, T, P>>>;

type Guard<'a, L, T> = api::MutexGuard<'a, L, T>;
pub(crate) type Locked<G> = Result<G, PiLockError<G>>;
type Tried<G> = Result<Option<G>, PiLockError<G>>;

// As lock_api's methods they are `#[track_caller]`, without a closure in between: a checked mutex
// names the line of its user.

impl<L: RawPi, T> PiMutexOf<L, T> {
    const_fn! {
        /// An unlocked mutex.
        pub fn new(value: T) -> Self {
            Self { inner: api::Mutex::new(value) }
        }
    }

    const_fn! {
        /// A mutex that was made with the other face; see [`as_infallible`](Self::as_infallible).
        pub fn from_infallible(inner: api::Mutex<L, T>) -> Self {
            Self { inner }
        }
    }

    /// The data, out of the mutex.
    pub fn into_inner(self) -> T {
        self.inner.into_inner()
    }
}

impl<L: RawPi, T: ?Sized> PiMutexOf<L, T> {
    /// Acquires the mutex, waiting as long as it takes.
    ///
    /// # Errors
    /// See [`PiLockError`].
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> Locked<Guard<'_, L, T>> {
        let taken = self.raw().acquire(None);
        // SAFETY: it is the outcome of an acquisition of this mutex.
        unsafe { self.guard(taken) }
    }

    /// Acquires the mutex if that needs no waiting; `None` if a thread holds it, the caller
    /// included.
    ///
    /// # Errors
    /// See [`PiLockError`]; neither `Deadlock` nor `OwnerGone`.
    #[inline]
    #[track_caller]
    pub fn try_lock(&self) -> Tried<Guard<'_, L, T>> {
        let taken = self.raw().try_acquire().and_then(|taken| taken.ok_or(PiError::TimedOut));
        // SAFETY: it is the outcome of an acquisition of this mutex.
        in_time(unsafe { self.guard(taken) })
    }

    /// Acquires the mutex, or gives up after `timeout` (`None`).
    ///
    /// # Errors
    /// See [`PiLockError`].
    #[inline]
    #[track_caller]
    pub fn try_lock_for(&self, timeout: Duration) -> Tried<Guard<'_, L, T>> {
        // The clock is not read if there is nothing to wait for.
        let taken = match self.raw().try_acquire() {
            Ok(Some(taken)) => Ok(taken),
            Ok(None) => self.raw().acquire(Some(Deadline::after(timeout))),
            Err(error) => Err(error),
        };
        // SAFETY: it is the outcome of an acquisition of this mutex.
        in_time(unsafe { self.guard(taken) })
    }

    /// Acquires the mutex, or gives up at `deadline` (`None`), which may be an `Instant`, a
    /// `SystemTime` or a [`Deadline`].
    ///
    /// # Errors
    /// See [`PiLockError`].
    #[inline]
    #[track_caller]
    pub fn try_lock_until(&self, deadline: impl Into<Deadline>) -> Tried<Guard<'_, L, T>> {
        let taken = self.raw().acquire(Some(deadline.into()));
        // SAFETY: it is the outcome of an acquisition of this mutex.
        in_time(unsafe { self.guard(taken) })
    }

    /// The data; the borrow stands for the lock. It also reaches what an owner that ended has left
    /// locked.
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut()
    }

    /// Whether a thread holds the mutex at this moment.
    pub fn is_locked(&self) -> bool {
        self.raw().is_locked()
    }

    /// The raw mutex, for its counters and its state.
    pub fn raw(&self) -> &L {
        // SAFETY: what is safe to do to a raw mutex either takes it or, for a holder, gives it up:
        // the trait says so.
        unsafe { self.inner.raw() }.inner()
    }

    /// The guard of an acquisition of [`raw`](Self::raw) that has ended.
    ///
    /// # Errors
    /// See [`PiLockError`].
    ///
    /// # Safety
    /// `taken` is the outcome of an acquisition of this mutex, of which there is no guard yet.
    #[inline]
    #[track_caller]
    pub unsafe fn guard(&self, taken: Result<Taken, PiError>) -> Locked<Guard<'_, L, T>> {
        let sound = !matches!(taken, Ok(Taken::OwnerDied));
        // SAFETY: the caller's promise; its token is nothing.
        told(unsafe { api::lock_with(&self.inner, |_| taken.map(drop)) }, sound)
    }

    /// The same mutex with the face that every lock of the family has, whose operations panic
    /// instead of returning an error, also if the owner before has ended without unlocking: then
    /// the mutex stays locked by the thread that panics.
    pub fn as_infallible(&self) -> &api::Mutex<L, T> {
        &self.inner
    }
}

/// What the holder of `guard` is told.
pub(crate) fn told<G>(guard: Result<G, PiError>, sound: bool) -> Locked<G> {
    match guard {
        Ok(guard) if sound => Ok(guard),
        Ok(guard) => Err(PiLockError::OwnerDied(Orphan::new(guard))),
        Err(error) => Err(PiLockError::of(error)),
    }
}

fn in_time<G>(locked: Locked<G>) -> Tried<G> {
    match locked {
        Ok(guard) => Ok(Some(guard)),
        Err(PiLockError::Refused(PiError::TimedOut)) => Ok(None),
        Err(error) => Err(error),
    }
}

impl<L: RawPi, T: Default> Default for PiMutexOf<L, T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<L: RawPi, T> From<T> for PiMutexOf<L, T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<L: RawPi, T: ?Sized + fmt::Debug> fmt::Debug for PiMutexOf<L, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("PiMutex");
        // An attempt on the mutex of an owner that has ended could take it. It would stay locked.
        match (!self.inner.is_locked()).then(|| self.try_lock()) {
            Some(Ok(Some(guard))) => shown.field("data", &&*guard).finish(),
            _ => shown.field("data", &format_args!("<locked>")).finish(),
        }
    }
}
