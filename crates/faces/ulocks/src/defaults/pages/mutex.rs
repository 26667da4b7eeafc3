//! The mutex.

use crate::unfair::RawThroughputMutex;
use ulocks_core::api::Raw;
use ulocks_core::lock_api;

/// `Mutex<T>` is mutual exclusion around a `T` with a bound on the wait: eight bytes beside the
/// data.
///
/// It is the mutex to take where nothing speaks for another; [`which`](crate::which) says what may.
/// It is a name for [`unfair::ThroughputMutex`](crate::unfair::ThroughputMutex), whose page has the
/// promises at full length. Other bounds, other patience and counters are in
/// [`ThroughputMutexWith`](crate::unfair::ThroughputMutexWith). [`migrate`](crate::migrate) is for
/// those who come from std, parking_lot or tokio.
///
/// # Fairness
/// It barges: an arriving thread may take a free mutex past waiters. The waiters stand in a queue,
/// and a release wakes the oldest. If others have overtaken that waiter for 100 us, the next
/// release hands the mutex over to it. So a waiter waits for those ahead in the queue, for some
/// hundred microseconds and a few sections each, and none starves.
///
/// # Blocking
/// [`lock`](Mutex#method.lock) is one atomic read-modify-write if the mutex is free and no thread
/// waits, and so is the release. Otherwise the thread spins for up to 12 us as it arrives, or 6 us
/// with fewer than four CPUs, and then sleeps in the kernel. It blocks the thread: a task takes
/// [`lock_async`](crate::task::AsyncMutex::lock_async), and waits in the queue of the threads.
///
/// # Panics
/// None of its own, and no poisoning: a panic of the holder releases the mutex. A thread that locks
/// again what it holds deadlocks, or with a deadline times out. `checked::Mutex`, with the feature
/// `debug`, reports that in debug builds. If the kernel refuses to let a waiter sleep (a seccomp
/// filter), the process aborts.
///
/// # Process-shared
/// No. Between processes there are [`BargingMutexWith`](crate::unfair::BargingMutexWith)`<T,
/// Shared>` and, where they may be killed, `ulocks_shm::Mutex`.
///
/// # Signals and forks
/// Signals are handled while a thread waits, and the wait goes on, or ends if it is one of those in
/// [`interrupt`](crate::interrupt). A handler must not lock what the code that it interrupts may
/// hold. The child of a `fork` may release what the forking thread held, and lock it again. What
/// another thread held stays locked. If threads waited for the mutex at the fork, the child must
/// not use it at all, whether it was held or not.
///
/// # Methods
/// | method | what it does |
/// |---|---|
/// | [`new`](Mutex#method.new) | an unlocked mutex; `const`, so it can be a `static` |
/// | [`lock`](Mutex#method.lock) | locks, and waits as long as that takes |
/// | [`try_lock`](Mutex#method.try_lock) | locks if the mutex is free and not owed to a waiter: `Option` of a guard |
/// | [`try_lock_for`](Mutex#method.try_lock_for) | locks, or gives up after a `Duration` |
/// | [`try_lock_until`](Mutex#method.try_lock_until) | locks, or gives up at an `Instant` |
/// | [`lock_interruptible`], [`lock_interruptible_until`] | locks, or gives up when a signal handler runs; methods of [`InterruptibleMutex`] |
/// | [`is_locked`](Mutex#method.is_locked) | whether it is held at this moment |
/// | [`get_mut`](Mutex#method.get_mut) | the data by `&mut self`, without locking |
/// | [`into_inner`](Mutex#method.into_inner) | the data, and the mutex is gone |
#[cfg_attr(
    feature = "arc_lock",
    doc = "| [`lock_arc`](Mutex#method.lock_arc), [`try_lock_arc`](Mutex#method.try_lock_arc), \
           [`try_lock_arc_for`](Mutex#method.try_lock_arc_for), \
           [`try_lock_arc_until`](Mutex#method.try_lock_arc_until) | the same on an `Arc`, with an owned \
           [`ArcMutexGuard`] |"
)]
/// | [`from_raw`](Mutex#method.from_raw), [`into_inner_with_raw`](Mutex#method.into_inner_with_raw) | of the raw lock and the data, and into both |
/// | [`raw`](Mutex#method.raw), [`data_ptr`](Mutex#method.data_ptr), [`make_guard_unchecked`](Mutex#method.make_guard_unchecked), [`force_unlock`](Mutex#method.force_unlock) | for code that locks in ways of its own; all but `data_ptr` are `unsafe` |
///
/// A [`MutexGuard`] unlocks when it is dropped. Its functions, such as
/// [`map`](MutexGuard#method.map) and [`unlocked`](MutexGuard#method.unlocked), are on its page.
/// There is no fair release (`force_unlock_fair`, `MutexGuard::unlock_fair`, `bump`): the bound
/// takes its place, and [`fair::FairMutex`](crate::fair::FairMutex) has it. With the feature
/// `arc_lock` there are guards that own an `Arc`. A mutex has `Default`, `From<T>` and `Debug`.
///
/// [`lock_interruptible`]: crate::interrupt::InterruptibleMutex::lock_interruptible
/// [`lock_interruptible_until`]: crate::interrupt::InterruptibleMutex::lock_interruptible_until
/// [`InterruptibleMutex`]: crate::interrupt::InterruptibleMutex
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use ulocks::Mutex;
///
/// static HITS: Mutex<u64> = Mutex::new(0);
///
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| *HITS.lock() += 1);
///     }
/// });
///
/// let held = HITS.lock();
/// assert_eq!(*held, 4);
/// assert!(HITS.try_lock().is_none());
/// assert!(HITS.try_lock_for(Duration::from_millis(1)).is_none());
/// drop(held);
/// assert!(!HITS.is_locked());
/// ```
pub type Mutex<T> = lock_api::Mutex<Raw<RawThroughputMutex>, T>;

/// What holds a [`Mutex`] locked, and gives access to its data. Its drop unlocks.
///
/// It stays on its thread: it is not `Send`.
///
/// # Methods
/// They are functions, such as `MutexGuard::map(guard, ..)`, so that none hides one of the data.
///
/// | function | what it does |
/// |---|---|
/// | [`map`](MutexGuard#method.map) | narrows the guard to a part of the data |
/// | [`try_map`](MutexGuard#method.try_map), [`try_map_or_err`](MutexGuard#method.try_map_or_err) | the same if there is such a part |
/// | [`unlocked`](MutexGuard#method.unlocked) | unlocks, runs a closure, and locks again |
/// | [`leak`](MutexGuard#method.leak) | the data for ever: the mutex stays locked |
/// | [`mutex`](MutexGuard#method.mutex) | the mutex that it holds |
///
/// The fair releases of lock_api, `unlock_fair`, `unlocked_fair` and `bump`, are not for this
/// mutex: [`fair::FairMutex`](crate::fair::FairMutex) has them.
///
/// ```
/// use ulocks::{Mutex, MutexGuard};
///
/// let pair = Mutex::new((1, "one"));
/// let mut number = MutexGuard::map(pair.lock(), |pair| &mut pair.0);
/// *number += 1;
/// drop(number);
/// assert_eq!(pair.into_inner(), (2, "one"));
/// ```
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, Raw<RawThroughputMutex>, T>;

/// A [`MutexGuard`] narrowed to a part of the data.
pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, Raw<RawThroughputMutex>, T>;

/// A [`MutexGuard`] that owns a share of its mutex.
#[cfg(feature = "arc_lock")]
#[cfg_attr(docsrs, doc(cfg(feature = "arc_lock")))]
pub type ArcMutexGuard<T> = lock_api::ArcMutexGuard<Raw<RawThroughputMutex>, T>;
