//! [`AsymMutex`]: barging, four bytes, released by a plain store.

mod gate;
mod raw;

pub use raw::RawAsymMutex;

use ulocks_core::{Private, api};

/// `AsymMutex<T>` is mutual exclusion around a `T` whose release is a plain store: four bytes
/// beside the data. A lock and unlock is one atomic read-modify-write instead of two.
///
/// It is a [`BargingMutex`](crate::BargingMutex) for locks that are mostly free. A release of that
/// one is an atomic exchange, because it has to learn whether a thread waits. Here a waiter that is
/// about to sleep pays for both, if releases were plain stores at the time. It has the kernel
/// interrupt the other CPUs that run this process (`membarrier`), for a few microseconds.
///
/// # Fairness
/// None, as with [`BargingMutex`](crate::BargingMutex): a thread that finds the mutex free takes
/// it, also past threads that have waited for long. So a thread can starve for as long as others
/// keep the mutex busy.
///
/// # Blocking
/// [`lock`](api::Mutex::lock) is one atomic read-modify-write if the mutex is free; the release is
/// a store and a load. Otherwise the caller spins as that of [`BargingMutex`](crate::BargingMutex)
/// does, and then sleeps in the kernel. While threads sleep now and then, releases are exchanges.
/// After some two thousand that found no waiter they are stores again. The next sleeper then
/// interrupts the other CPUs, at most once in so many releases. A release makes a system call if a
/// waiter may be asleep, now and then for a waiter of another mutex. The first release of the
/// process registers it with the kernel. That is quick while the process has one thread, and tens
/// of milliseconds later; [`membarrier::ready`](ulocks_core::membarrier::ready) does it earlier. No
/// thread ever yields to the scheduler.
///
/// Whether releases may be stores is decided for groups of mutexes, by their addresses. If a mutex
/// is contended, some others have the exchange of [`BargingMutex`](crate::BargingMutex) meanwhile.
///
/// # Panics
/// None of its own. Locking a mutex that the calling thread already holds is a deadlock, or, with a
/// deadline, a timeout.
///
/// If the kernel refuses to let a waiter sleep, because a seccomp filter forbids it. Other threads
/// are not affected.
///
/// # Aborts
/// If the kernel refuses to wake a sleeper. A panic would leave that one asleep for ever.
///
/// # Process-shared
/// `membarrier` reaches one process. [`AsymMutexWith`]`<T, Shared>` works, and is a
/// [`BargingMutexWith`](crate::BargingMutexWith)`<T, Shared>`: its releases are always exchanges.
/// They also are where the kernel has no `membarrier` (before Linux 4.14, or forbidden by a
/// filter), which is found out at run time.
///
/// # Signals and forks
/// Signals are handled while a thread waits, and the wait goes on, or
/// [ends](ulocks_core::interrupt) if it asks for that. A handler must not use a mutex that the code
/// it interrupts may hold. A child of `fork` gets a private copy in the state it was in. What
/// another thread held stays locked there. What the forking thread held, the child can release and
/// lock again, also if threads waited. A filter that takes `membarrier` away from a process that
/// has used it costs speed: waiters look at the mutex once a millisecond then.
///
/// # Memory
/// The store is the last touch of the mutex, so the thread that releases last may free or unmap it
/// at once. Nothing is allocated, so it can guard a global allocator; 8 KiB of static memory belong
/// to all of them together. The guard is eight bytes larger than that of
/// [`BargingMutex`](crate::BargingMutex). A guard may be forgotten, which leaves the mutex locked,
/// and a locked mutex may be moved or dropped. Two copies of this crate in one process (a plugin
/// that links its own) must not share a mutex: each has its own static memory.
///
/// [`AsymCondvar`] is its condition variable.
///
/// # Methods
/// `AsymMutex<T>` is a name for [lock_api]'s type around a raw lock of this family. The page of
/// lock_api lists the methods: `new`, `lock`, `try_lock`, `try_lock_for`, `try_lock_until`,
/// `is_locked`, `get_mut`, `into_inner` and more. This page says what they promise.
///
/// [lock_api]: https://docs.rs/lock_api/0.5/lock_api/struct.Mutex.html
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use ulocks_unfair::AsymMutex;
///
/// static HITS: AsymMutex<u64> = AsymMutex::new(0);
///
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| *HITS.lock() += 1);
///     }
/// });
/// assert_eq!(*HITS.lock(), 4);
///
/// let held = HITS.lock();
/// assert!(HITS.try_lock_for(Duration::from_millis(1)).is_none());
/// drop(held);
/// assert!(HITS.try_lock().is_some());
/// ```
pub type AsymMutex<T> = AsymMutexWith<T, Private>;

/// An [`AsymMutex`] with another policy: between processes, with other patience, or with counters
/// inside.
///
/// ```
/// use ulocks_core::meter::Counted;
/// use ulocks_core::raw::Metered;
/// use ulocks_core::spin::NoSpin;
/// use ulocks_core::{Private, Shared};
/// use ulocks_unfair::AsymMutexWith;
///
/// static ACROSS_PROCESSES: AsymMutexWith<u32, Shared> = AsymMutexWith::new(0);
/// static COUNTED: AsymMutexWith<u32, Private<NoSpin, Counted>> = AsymMutexWith::new(0);
///
/// *COUNTED.lock() += 1;
/// let counters = COUNTED.counts();
/// assert_eq!((counters.acquired, counters.contended), (1, 0));
/// ```
pub type AsymMutexWith<T, P> = api::Mutex<RawAsymMutex<P>, T>;

/// What holds an [`AsymMutex`] locked, and gives access to its data.
pub type AsymMutexGuard<'a, T, P = Private> = api::MutexGuard<'a, RawAsymMutex<P>, T>;

/// An [`AsymMutexGuard`] narrowed to a part of the data.
pub type MappedAsymMutexGuard<'a, T, P = Private> = api::MappedMutexGuard<'a, RawAsymMutex<P>, T>;

/// A condition variable for an [`AsymMutex`].
///
/// `notify_one` returns `false` and `notify_all` returns 0, however many threads were notified.
/// lock_api asks this of condition variables whose waits may end spuriously. These may, in the
/// cases that [`RawCondvar`](ulocks_core::condvar::RawCondvar) lists. Its own methods return the
/// true counts: `condvar.raw().inner().notify_all()`. A waiter spins for up to 30 us before it
/// sleeps.
pub type AsymCondvar = AsymCondvarWith<Private>;

/// An [`AsymCondvar`] for an [`AsymMutexWith`] of the same policy.
pub type AsymCondvarWith<P> = api::Condvar<RawAsymMutex<P>>;
