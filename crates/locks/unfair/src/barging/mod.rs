//! [`BargingMutex`]: barging, four bytes, the throughput of whatever the machine allows.

mod raw;
mod word;

pub use raw::RawBargingMutex;
#[doc(hidden)]
pub use word::BargingState;

use ulocks_core::{Private, api};

/// `BargingMutex<T>` is mutual exclusion around a `T`: four bytes beside the data, and the
/// throughput of whatever the machine allows.
///
/// This one is for the threads of one process, with the default patience and without counters;
/// [`BargingMutexWith`] has the others.
///
/// # Fairness
/// None. A thread that finds the mutex free takes it, also past threads that have waited for long.
/// So a thread can starve for as long as others keep the mutex busy; on a saturated one it does.
/// This is what makes the mutex fast, for a running thread never waits for a sleeping one to wake
/// up.
///
/// # Blocking
/// [`lock`](api::Mutex::lock) is one atomic read-modify-write if the mutex is free, and so is the
/// release. Otherwise the caller spins for up to
/// [`ARRIVAL_NS`](ulocks_core::spin::Spin::ARRIVAL_NS) of its policy, 6 us by default, at intervals
/// that follow the cost of its polls, for half of that if it sees that the mutex is saturated. Then
/// it sleeps in the kernel (`FUTEX_WAIT`). A release makes a system call only if a waiter may be
/// asleep. Neither ever yields to the scheduler. A timed acquisition tries at least once, and may
/// return late by its spinning budget and by what the scheduler takes.
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
/// [`BargingMutexWith`]`<T, Shared>`: no address is stored, all-zero memory is an unlocked mutex,
/// and processes may map it wherever they like. It is not robust: if a process dies while it holds
/// the mutex, the mutex stays locked. A process may also be killed that was chosen to be woken, or
/// that has released and is about to wake another. Then the others may sleep on although the mutex
/// is free, until another waiter comes and goes. Bound the wait with
/// [`try_lock_for`](api::Mutex::try_lock_for).
///
/// # Signals and forks
/// Signals are handled while a thread waits, and the wait goes on, or
/// [ends](ulocks_core::interrupt) if it asks for that. A handler must not use a mutex that the code
/// it interrupts may hold. A child of `fork` gets a private copy of a `Private` mutex in the state
/// it was in. What another thread held stays locked there. What the forking thread held, the child
/// can release and lock again, also if threads waited.
///
/// # Memory
/// The release is one read-modify-write and touches the mutex no more, so the thread that releases
/// last may free or unmap it at once. Nothing is allocated, so it can guard a global allocator. A
/// guard may be forgotten, which leaves the mutex locked, and a locked mutex may be moved or
/// dropped.
///
/// # Methods
/// `BargingMutex<T>` is a name for [lock_api]'s type around a raw lock of this family. The page of
/// lock_api lists the methods: `new`, `lock`, `try_lock`, `try_lock_for`, `try_lock_until`,
/// `is_locked`, `get_mut`, `into_inner` and more. This page says what they promise.
///
/// [lock_api]: https://docs.rs/lock_api/0.5/lock_api/struct.Mutex.html
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use ulocks_unfair::BargingMutex;
///
/// static HITS: BargingMutex<u64> = BargingMutex::new(0);
///
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| *HITS.lock() += 1);
///     }
/// });
/// assert_eq!(*HITS.lock(), 4);
///
/// let held = HITS.lock();
/// assert!(HITS.try_lock().is_none());
/// assert!(HITS.try_lock_for(Duration::from_millis(1)).is_none());
/// drop(held);
/// assert!(HITS.try_lock().is_some());
/// ```
pub type BargingMutex<T> = BargingMutexWith<T, Private>;

/// A [`BargingMutex`] with another policy: between processes, with other patience, or with counters
/// inside.
///
/// It is a name of its own because a default of a type parameter does not apply in an expression:
/// `BargingMutex::new(0)` would not say which mutex it makes.
///
/// ```
/// use ulocks_core::meter::Counted;
/// use ulocks_core::raw::Metered;
/// use ulocks_core::spin::NoSpin;
/// use ulocks_core::{Private, Shared};
/// use ulocks_unfair::BargingMutexWith;
///
/// static ACROSS_PROCESSES: BargingMutexWith<u32, Shared> = BargingMutexWith::new(0);
/// static COUNTED: BargingMutexWith<u32, Private<NoSpin, Counted>> = BargingMutexWith::new(0);
///
/// *COUNTED.lock() += 1;
/// let counters = COUNTED.counts();
/// assert_eq!((counters.acquired, counters.contended), (1, 0));
/// ```
pub type BargingMutexWith<T, P> = api::Mutex<RawBargingMutex<P>, T>;

/// What holds a [`BargingMutex`] locked, and gives access to its data.
pub type BargingMutexGuard<'a, T, P = Private> = api::MutexGuard<'a, RawBargingMutex<P>, T>;

/// A [`BargingMutexGuard`] narrowed to a part of the data.
pub type MappedBargingMutexGuard<'a, T, P = Private> = api::MappedMutexGuard<'a, RawBargingMutex<P>, T>;

/// A condition variable for a [`BargingMutex`] of the same policy.
///
/// `notify_one` returns `false` and `notify_all` returns 0, however many threads were notified.
/// lock_api asks this of condition variables whose waits may end spuriously. These may, in the
/// cases that [`RawCondvar`](ulocks_core::condvar::RawCondvar) lists. Its own methods return the
/// true counts: `condvar.raw().inner().notify_all()`. A waiter spins for up to 30 us before it
/// sleeps.
pub type BargingCondvar = BargingCondvarWith<Private>;

/// A [`BargingCondvar`] for a [`BargingMutexWith`] of the same policy.
pub type BargingCondvarWith<P> = api::Condvar<RawBargingMutex<P>>;
