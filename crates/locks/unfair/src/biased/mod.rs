//! [`BiasedMutex`]: for a mutex that one thread takes nearly always.

mod raw;

pub use raw::RawBiasedMutex;

use ulocks_core::{Private, api};

/// `BiasedMutex<T>` is mutual exclusion around a `T` that one thread uses nearly always: that
/// thread locks and unlocks by two plain stores, without an atomic read-modify-write. Sixteen
/// bytes beside the data.
///
/// A thread that has locked the mutex some two thousand times in a row, while no other thread did,
/// becomes its *owner*. Another thread that locks the mutex ends that: it has the kernel interrupt
/// the other CPUs that run this process (`membarrier`), a few microseconds. All threads but the
/// owner use an [`AsymMutex`](crate::AsymMutex) inside.
///
/// It is for data with an owner: the queue of a worker from which others steal now and then, the
/// statistics of a thread that a monitor reads once a second. For a mutex that changes hands it is
/// a larger `AsymMutex`.
///
/// # Fairness
/// None, as with [`Mutex`](crate::Mutex): a thread that finds the mutex free takes it, also past
/// threads that have waited for long. So a thread can starve for as long as others keep the mutex
/// busy. An owner does not keep a waiter out: the waiter takes the bias away first.
///
/// # Blocking
/// [`lock`](api::Mutex::lock) of the owner is a store and a few loads, and so is its release. A
/// thread that finds another owner makes a system call, and waits until the owner is outside: it
/// spins as that of [`Mutex`](crate::Mutex) does, and then sleeps in the kernel. All else is as
/// with [`AsymMutex`](crate::AsymMutex), whose gates it shares: while these are shut, the owner
/// locks by a read-modify-write. `try_lock` takes the bias away too, so it may make a system
/// call.
///
/// `try_lock` can fail although no thread holds the mutex, if the former owner is just trying to
/// lock it.
///
/// # Panics
/// Locking a mutex that the calling thread already holds is a deadlock, or, with a deadline, a
/// timeout. The calling thread panics, and no other thread is affected:
///
/// - if the kernel refuses to let a waiter sleep, because a seccomp filter forbids it;
/// - if the mutex has another owner, and a filter that came later forbids `membarrier`.
///
/// # Aborts
/// If the kernel refuses to wake a sleeper. A panic would leave that one asleep for ever.
///
/// # Process-shared
/// `membarrier` reaches one process. [`BiasedMutexWith`]`<T, Shared>` works, and no thread becomes
/// its owner. The same holds where the kernel has no `membarrier`, before Linux 4.14.
///
/// # Signals and forks
/// Signals are handled while a thread waits, and the wait goes on. A handler must not use a mutex
/// that the code it interrupts may hold. A child of `fork` gets a private copy in the state it was
/// in. What another thread held stays locked there. What the forking thread held, the child can
/// release and lock again, also if threads waited.
///
/// # Memory
/// The store is the last touch of the mutex, so the thread that releases last may free or unmap it
/// at once. Nothing is allocated. A guard may be forgotten, which leaves the mutex locked, and a
/// locked mutex may be moved or dropped. Two copies of this crate in one process must not share a
/// mutex.
///
/// # Methods
/// `BiasedMutex<T>` is a name for [lock_api]'s type around a raw lock of this family. The page of
/// lock_api lists the methods: `new`, `lock`, `try_lock`, `try_lock_for`, `try_lock_until`,
/// `is_locked`, `get_mut`, `into_inner` and more. This page says what they promise.
///
/// [lock_api]: https://docs.rs/lock_api/0.5/lock_api/struct.Mutex.html
///
/// # Examples
/// ```
/// use ulocks_unfair::BiasedMutex;
///
/// static EVENTS: BiasedMutex<u64> = BiasedMutex::new(0);
///
/// std::thread::scope(|scope| {
///     scope.spawn(|| (0..10_000).for_each(|_| *EVENTS.lock() += 1)); // becomes the owner
///     scope.spawn(|| println!("{} so far", *EVENTS.lock())); // takes a look
/// });
/// assert_eq!(*EVENTS.lock(), 10_000);
/// ```
pub type BiasedMutex<T> = BiasedMutexWith<T, Private>;

/// A [`BiasedMutex`] with another policy: other patience, or counters inside.
///
/// ```
/// use ulocks_core::Private;
/// use ulocks_core::spin::NoSpin;
/// use ulocks_unfair::BiasedMutexWith;
///
/// static SLEEPS_AT_ONCE: BiasedMutexWith<u32, Private<NoSpin>> = BiasedMutexWith::new(0);
/// *SLEEPS_AT_ONCE.lock() += 1;
/// ```
pub type BiasedMutexWith<T, P> = api::Mutex<RawBiasedMutex<P>, T>;

/// What holds a [`BiasedMutex`] locked, and gives access to its data.
pub type BiasedMutexGuard<'a, T, P = Private> = api::MutexGuard<'a, RawBiasedMutex<P>, T>;

/// A [`BiasedMutexGuard`] narrowed to a part of the data.
pub type MappedBiasedMutexGuard<'a, T, P = Private> = api::MappedMutexGuard<'a, RawBiasedMutex<P>, T>;

/// A condition variable for a [`BiasedMutex`].
///
/// `notify_one` returns `false` and `notify_all` returns 0, however many threads were notified.
/// lock_api asks this of condition variables whose waits may end spuriously, and these may, in the
/// cases that [`RawCondvar`](ulocks_core::condvar::RawCondvar) lists.
pub type BiasedCondvar = BiasedCondvarWith<Private>;

/// A [`BiasedCondvar`] for a [`BiasedMutexWith`] of the same policy.
pub type BiasedCondvarWith<P> = api::Condvar<RawBiasedMutex<P>>;
