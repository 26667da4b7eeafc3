//! The names to begin with, each an alias of one lock of the family.

use crate::{fair, psrwlock, unfair};

/// `Mutex<T>` is mutual exclusion around a `T`: the mutex to begin with.
///
/// It is [`unfair::ThroughputMutex`], whose page says all about fairness, blocking, panics,
/// processes, signals and forks. In short: eight bytes beside the data; no allocation; all-zero
/// memory is an unlocked mutex. An arriving thread may overtake a waiter, for 100 us. Then
/// the waiter reserves the mutex, so no thread starves.
///
/// # Why this one
/// It barges, and has a bound on the wait. With 2 to 32 threads on two virtual CPUs its rate was
/// 0.91 to 1.56 of the better of std and parking_lot. With 2 to 128 threads on sixteen it was 0.21
/// to 1.49 of the best of these and usync. The least is that of empty sections with more threads
/// than CPUs; without these it was 0.83. BENCHMARKS.md has the machines and the tables.
/// [`unfair::BargingMutex`] is smaller, and may leave a waiter behind for any length of time.
///
/// # Methods
/// `Mutex<T>` is a name for [lock_api]'s type around a raw lock of this family. The page of
/// lock_api lists the methods: `new`, `lock`, `try_lock`, `try_lock_for`, `try_lock_until`,
/// `is_locked`, `get_mut`, `into_inner` and more. That of [`unfair::ThroughputMutex`] says what
/// they promise.
///
/// [lock_api]: https://docs.rs/lock_api/0.5/lock_api/struct.Mutex.html
///
/// # Examples
/// ```
/// use ulocks::Mutex;
///
/// static HITS: Mutex<u64> = Mutex::new(0);
///
/// std::thread::scope(|scope| {
///     (0..4).for_each(|_| drop(scope.spawn(|| *HITS.lock() += 1)));
/// });
/// assert_eq!(*HITS.lock(), 4);
/// ```
pub type Mutex<T> = unfair::ThroughputMutex<T>;

/// Access to the data of a [`Mutex`]; its drop unlocks.
pub type MutexGuard<'a, T> = unfair::ThroughputMutexGuard<'a, T>;

/// A [`MutexGuard`] narrowed to a part of the data.
pub type MappedMutexGuard<'a, T> = unfair::MappedThroughputMutexGuard<'a, T>;

/// A [`MutexGuard`] that owns a share of its mutex.
#[cfg(feature = "arc_lock")]
#[cfg_attr(docsrs, doc(cfg(feature = "arc_lock")))]
pub type ArcMutexGuard<T> = crate::api::ArcMutexGuard<unfair::RawThroughputMutex, T>;

ulocks_core::on_machine! {
    /// `ReentrantMutex<T>` is a [`Mutex`] that its holder may lock again. A guard gives shared
    /// access to the data only.
    ///
    /// The lock in it is that of [`Mutex`], so fairness and blocking are the same. It is
    /// sixteen bytes larger. The model worlds have none.
    ///
    /// # Panics
    /// If one thread holds it more than `usize::MAX` times.
    ///
    /// # Examples
    /// ```
    /// use std::cell::Cell;
    /// use ulocks::ReentrantMutex;
    ///
    /// static DEPTH: ReentrantMutex<Cell<u32>> = ReentrantMutex::new(Cell::new(0));
    ///
    /// fn descend(levels: u32) {
    ///     let depth = DEPTH.lock();
    ///     depth.set(depth.get() + 1);
    ///     if levels > 0 {
    ///         descend(levels - 1);
    ///     }
    /// }
    /// descend(2);
    /// assert_eq!(DEPTH.lock().get(), 3);
    /// ```
    pub type ReentrantMutex<T> = crate::api::ReentrantMutex<unfair::RawThroughputMutex, T>;

    /// Shared access to the data of a [`ReentrantMutex`]; the drop of the last one unlocks.
    pub type ReentrantMutexGuard<'a, T> = crate::api::ReentrantMutexGuard<'a, unfair::RawThroughputMutex, T>;
}

/// `Condvar` waits until something is true under a [`Mutex`].
///
/// It is [`unfair::ThroughputCondvar`]. A wait may end without a notification, so look at the
/// condition in a loop, or use `wait_while`. `notify_one` says whether it notified a waiter, and
/// `notify_all` how many.
///
/// # Methods
/// `new`, `wait`, `wait_until`, `wait_for`, `wait_while`, `wait_while_until`, `wait_while_for`,
/// `notify_one` and `notify_all`, with the signatures of [lock_api]'s.
///
/// [lock_api]: https://docs.rs/lock_api/0.5/lock_api/struct.Condvar.html
///
/// # Examples
/// ```
/// use ulocks::{Condvar, Mutex};
///
/// static READY: Mutex<bool> = Mutex::new(false);
/// static CHANGED: Condvar = Condvar::new();
///
/// let maker = std::thread::spawn(|| {
///     *READY.lock() = true;
///     CHANGED.notify_one();
/// });
/// let mut ready = READY.lock();
/// while !*ready {
///     CHANGED.wait(&mut ready);
/// }
/// drop(ready);
/// maker.join().unwrap();
/// ```
pub type Condvar = unfair::ThroughputCondvar;

/// `RwLock<T>` lets in many readers or one writer: the reader-writer lock to begin with.
///
/// It is [`psrwlock::PsRwLock`], whose page says all. In short: sixteen bytes beside the data; no
/// allocation. Writers and readers take turns, so neither starves. A reader that must not wait for
/// slow readers has classes of its own.
///
/// A thread that reads must not `read` again: a writer that waits between the two would deadlock
/// with it. Debug builds panic there, and name both places. Read again by
/// [`psrwlock::ByClass::read_in`] with the class [`Nested`](psrwlock::Nested), which never waits
/// for a writer that waits.
///
/// # Methods
/// `RwLock<T>` is a name for [lock_api]'s type around a raw lock of this family. The page of
/// lock_api lists the methods: `new`, `read`, `write`, `upgradable_read`, each with `try_` and time
/// limits, `get_mut`, `into_inner` and more. That of [`psrwlock::PsRwLock`] says what they promise.
///
/// [lock_api]: https://docs.rs/lock_api/0.5/lock_api/struct.RwLock.html
///
/// # Examples
/// ```
/// use ulocks::RwLock;
///
/// static LIMITS: RwLock<[u32; 2]> = RwLock::new([1, 10]);
///
/// LIMITS.write()[1] = 20;
/// assert_eq!(LIMITS.read()[1], 20);
/// ```
pub type RwLock<T> = psrwlock::PsRwLock<T>;

/// Access to read the data of a [`RwLock`]; its drop unlocks.
pub type RwLockReadGuard<'a, T> = psrwlock::PsRwLockReadGuard<'a, T>;

/// Access to write the data of a [`RwLock`]; its drop unlocks.
pub type RwLockWriteGuard<'a, T> = psrwlock::PsRwLockWriteGuard<'a, T>;

/// Access to read the data of a [`RwLock`] that can become access to write; its drop unlocks.
pub type RwLockUpgradableReadGuard<'a, T> = psrwlock::PsRwLockUpgradableReadGuard<'a, T>;

/// A [`RwLockReadGuard`] narrowed to a part of the data.
pub type MappedRwLockReadGuard<'a, T> = psrwlock::MappedPsRwLockReadGuard<'a, T>;

/// A [`RwLockWriteGuard`] narrowed to a part of the data.
pub type MappedRwLockWriteGuard<'a, T> = psrwlock::MappedPsRwLockWriteGuard<'a, T>;

/// A [`RwLockReadGuard`] that owns a share of its lock.
#[cfg(feature = "arc_lock")]
#[cfg_attr(docsrs, doc(cfg(feature = "arc_lock")))]
pub type ArcRwLockReadGuard<T> = crate::api::ArcRwLockReadGuard<psrwlock::RawPsRwLock<psrwlock::Sifted>, T>;

/// A [`RwLockWriteGuard`] that owns a share of its lock.
#[cfg(feature = "arc_lock")]
#[cfg_attr(docsrs, doc(cfg(feature = "arc_lock")))]
pub type ArcRwLockWriteGuard<T> = crate::api::ArcRwLockWriteGuard<psrwlock::RawPsRwLock<psrwlock::Sifted>, T>;

/// A [`RwLockUpgradableReadGuard`] that owns a share of its lock.
#[cfg(feature = "arc_lock")]
#[cfg_attr(docsrs, doc(cfg(feature = "arc_lock")))]
pub type ArcRwLockUpgradableReadGuard<T> =
    crate::api::ArcRwLockUpgradableReadGuard<psrwlock::RawPsRwLock<psrwlock::Sifted>, T>;

/// `Semaphore` has permits, which it gives in order of arrival.
///
/// It is [`fair::Semaphore`], whose page says all. [`fair::SemaphoreWith`] has its methods:
/// [`acquire`](fair::SemaphoreWith::acquire), [`acquire_many`](fair::SemaphoreWith::acquire_many),
/// [`release`](fair::SemaphoreWith::release) and more.
pub type Semaphore = fair::Semaphore;

pub use crate::api::WaitTimeoutResult;
pub use fair::Permit;
