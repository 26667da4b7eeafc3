//! The names to begin with, each another name of a lock of the family.
//!
//! They are re-exports and not aliases: so their pages have the lock's promises and methods.

use crate::{psrwlock, unfair};

/// The mutex to begin with is [`unfair::ThroughputMutex`]. It barges, and has a bound on the wait:
/// an arriving thread may overtake a waiter, for 100 us, and then the waiter reserves the mutex.
/// [`unfair::BargingMutex`] is smaller, and may leave a waiter behind for any length of time.
///
/// With 2 to 32 threads on two virtual CPUs its rate was 0.91 to 1.56 of the better of std and
/// parking_lot, when a waiter reserved it after 1 ms. With 2 to 128 threads on sixteen it was 1.34
/// of std's and 1.24 of parking_lot's over all cells together, and at least 0.83 of the better of
/// both in a cell. In empty sections with more threads than CPUs it was a fifth of usync's.
/// BENCHMARKS.md has the machines and the tables.
///
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
#[doc(inline)]
pub use unfair::ThroughputMutex as Mutex;

#[doc(inline)]
pub use unfair::{MappedThroughputMutexGuard as MappedMutexGuard, ThroughputMutexGuard as MutexGuard};

/// A [`MutexGuard`] that owns a share of its mutex.
#[cfg(feature = "arc_lock")]
#[cfg_attr(docsrs, doc(cfg(feature = "arc_lock")))]
pub type ArcMutexGuard<T> = ulocks_core::api::ArcMutexGuard<unfair::RawThroughputMutex, T>;

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
    pub type ReentrantMutex<T> = ulocks_core::api::ReentrantMutex<unfair::RawThroughputMutex, T>;

    /// Shared access to the data of a [`ReentrantMutex`]; the drop of the last one unlocks.
    pub type ReentrantMutexGuard<'a, T> = ulocks_core::api::ReentrantMutexGuard<'a, unfair::RawThroughputMutex, T>;
}

/// The condition variable to begin with waits until something is true under a [`Mutex`]. A wait may
/// end without a notification, so look at the condition in a loop, or use `wait_while`.
///
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
#[doc(inline)]
pub use unfair::ThroughputCondvar as Condvar;

/// The reader-writer lock to begin with is [`psrwlock::PsRwLock`]. A thread that reads must not
/// `read` again: a writer that waits between the two would deadlock with it. Debug builds panic
/// there, and name both places. Read again by [`psrwlock::ByClass::read_in`] with the class
/// [`Nested`](psrwlock::Nested), which never waits for a writer that waits.
///
/// ```
/// use ulocks::RwLock;
///
/// static LIMITS: RwLock<[u32; 2]> = RwLock::new([1, 10]);
///
/// LIMITS.write()[1] = 20;
/// assert_eq!(LIMITS.read()[1], 20);
/// ```
#[doc(inline)]
pub use psrwlock::PsRwLock as RwLock;

#[doc(inline)]
pub use psrwlock::{
    MappedPsRwLockReadGuard as MappedRwLockReadGuard, MappedPsRwLockWriteGuard as MappedRwLockWriteGuard,
    PsRwLockReadGuard as RwLockReadGuard, PsRwLockUpgradableReadGuard as RwLockUpgradableReadGuard,
    PsRwLockWriteGuard as RwLockWriteGuard,
};

/// A [`RwLockReadGuard`] that owns a share of its lock.
#[cfg(feature = "arc_lock")]
#[cfg_attr(docsrs, doc(cfg(feature = "arc_lock")))]
pub type ArcRwLockReadGuard<T> =
    ulocks_core::api::ArcRwLockReadGuard<psrwlock::RawPsRwLock<psrwlock::Sifted>, T>;

/// A [`RwLockWriteGuard`] that owns a share of its lock.
#[cfg(feature = "arc_lock")]
#[cfg_attr(docsrs, doc(cfg(feature = "arc_lock")))]
pub type ArcRwLockWriteGuard<T> =
    ulocks_core::api::ArcRwLockWriteGuard<psrwlock::RawPsRwLock<psrwlock::Sifted>, T>;

/// A [`RwLockUpgradableReadGuard`] that owns a share of its lock.
#[cfg(feature = "arc_lock")]
#[cfg_attr(docsrs, doc(cfg(feature = "arc_lock")))]
pub type ArcRwLockUpgradableReadGuard<T> =
    ulocks_core::api::ArcRwLockUpgradableReadGuard<psrwlock::RawPsRwLock<psrwlock::Sifted>, T>;

#[doc(inline)]
pub use crate::fair::{Permit, Semaphore};
pub use ulocks_core::api::WaitTimeoutResult;
