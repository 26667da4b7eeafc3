//! [`ThroughputMutex`]: barging, with a bound on how long that goes on.

pub use ulocks_core::queue::{After, HandOff};

use ulocks_core::queue::QueueMutex;
use ulocks_core::{Private, api};

/// The raw mutex, without data.
pub type RawThroughputMutex<P = Private, B = After> = QueueMutex<P, B>;

/// `ThroughputMutex<T>` is mutual exclusion around a `T` at the throughput of a barging mutex,
/// where no thread starves: eight bytes beside the data.
///
/// This one is for the threads of one process, with the default patience and bound, and without
/// counters; [`ThroughputMutexWith`] has the others.
///
/// # Fairness
/// An arriving thread takes a free mutex past waiters, but not for ever. A thread that has spun in
/// vain queues, and waiters are served in the order in which they queued, also those with a
/// deadline. One waiter is the *candidate*: it contends for the mutex with the arriving threads.
/// They may overtake it for the bound, 100 us unless the type says otherwise ([`After`]). Then the
/// mutex is *owed* to it: the next release hands the mutex over to it. With
/// - `h`, the longest time the mutex is held,
/// - `w`, the time until a woken thread runs,
/// - `k`, the number of waiters ahead,
///
/// a waiter waits for at most `(k + 1) * (bound + 2h + 3w)`. Each of many waiters in turn is
/// overtaken for the bound. Otherwise the mutex would idle for one wake-up at each hand-over, which
/// a strict hand-off costs. [`HandOff`], with a bound of zero, gives shorter waits to many waiters.
///
/// Threads may come back for the mutex faster than its cache line moves to another CPU. Then the
/// mutex serves one thread alone until the bound has passed, if it has measured that this is
/// faster. After that it serves the next waiter. [`HandOff`] does not.
///
/// [`try_lock`](api::Mutex::try_lock) takes a free mutex past others too, but fails on one that is
/// owed to a waiter.
///
/// # Blocking
/// [`lock`](api::Mutex::lock) is one atomic read-modify-write if the mutex is free and no thread
/// waits, and so is the release. Otherwise the caller spins as on a
/// [`BargingMutex`](crate::BargingMutex), for up to 12 us by default, or 6 us with fewer than four
/// CPUs. Then it becomes the candidate if no thread waits. Otherwise it queues, and sleeps in the
/// kernel (`FUTEX_WAIT`). A release wakes the oldest waiter as the candidate, unless there is one.
/// The candidate spins for up to 2 us, and sleeps again at the head of the queue. If one thread is
/// served alone, the candidate sleeps until the bound has passed, and arriving threads queue
/// without spinning. While the mutex is owed to it, it spins twice before that, each time for up to
/// 30 us. The second time has 3 us if it has slept and the process may use less than four CPUs. No
/// thread ever yields to the scheduler. A timed acquisition tries at least once, and may return
/// late by its spinning budget and by what the scheduler takes.
///
/// # Tasks
/// A task waits by [`lock_async`](ulocks_core::task::AsyncMutex::lock_async), in the queue of the
/// threads. Once it was woken, polled, and has found the mutex taken, others overtake it for the
/// bound at most. Its future may be dropped at any moment. [`task`](ulocks_core::task) has the
/// rest.
///
/// # Panics
/// None of its own. Locking a mutex that the calling thread already holds is a deadlock, or, with a
/// deadline, a timeout.
///
/// # Aborts
/// If the kernel refuses to let a waiter sleep, or to wake a sleeper: a seccomp filter forbids it.
/// A panic would leave other threads waiting for ever.
///
/// # Process-shared
/// No: the type is for the threads of one process. A waiter that is killed would keep its place in
/// the queue, and the bound would end with it. Between processes there is
/// [`BargingMutexWith`](crate::BargingMutexWith)`<T, Shared>`, without a bound, or
/// `ulocks_shm::Mutex`.
///
/// ```compile_fail
/// use ulocks_core::Shared;
/// use ulocks_unfair::ThroughputMutexWith;
///
/// static ACROSS_PROCESSES: ThroughputMutexWith<u32, Shared> = ThroughputMutexWith::new(0);
/// ```
///
/// # Signals and forks
/// Signals are handled while a thread waits, and the wait goes on, or
/// [ends](ulocks_core::interrupt) if it asks for that. A handler must not use a mutex that the code
/// it interrupts may hold or wait for. The child of a `fork` gets a private copy of the mutex in
/// the state it was in. What another thread held stays locked there. What the forking thread held,
/// the child can release and lock again. If threads waited for the mutex at the fork, the child
/// must not use it at all, whether it was held or not, and forgets a guard. It would write to the
/// waiters' places, which were on stacks that it uses anew.
///
/// # Memory
/// Eight bytes. Nothing is allocated, so it can guard a global allocator, unless tasks wait. A
/// waiter's place in the queue is on its own stack, or in its future. What releases is one
/// read-modify-write, after which the mutex is touched no more. So the thread that releases last
/// may free or unmap it at once. A guard may be forgotten, which leaves the mutex locked, and a
/// locked mutex may be moved or dropped.
///
/// # Methods
/// `ThroughputMutex<T>` is a name for [lock_api]'s type around a raw lock of this family. The page
/// of lock_api lists the methods: `new`, `lock`, `try_lock`, `try_lock_for`, `try_lock_until`,
/// `is_locked`, `get_mut`, `into_inner` and more. This page says what they promise.
///
/// [lock_api]: https://docs.rs/lock_api/0.5/lock_api/struct.Mutex.html
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use ulocks_unfair::ThroughputMutex;
///
/// static HITS: ThroughputMutex<u64> = ThroughputMutex::new(0);
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
pub type ThroughputMutex<T> = ThroughputMutexWith<T, Private>;

/// A [`ThroughputMutex`] with another policy or another bound: with other patience, with counters
/// inside, or with strict hand-off.
///
/// ```
/// use ulocks_core::meter::Counted;
/// use ulocks_core::raw::Metered;
/// use ulocks_core::spin::Adaptive;
/// use ulocks_core::Private;
/// use ulocks_unfair::{After, HandOff, ThroughputMutexWith};
///
/// static IMPATIENT: ThroughputMutexWith<u32, Private, After<200_000>> = ThroughputMutexWith::new(0);
/// static STRICT: ThroughputMutexWith<u32, Private, HandOff> = ThroughputMutexWith::new(0);
/// static COUNTED: ThroughputMutexWith<u32, Private<Adaptive, Counted>> = ThroughputMutexWith::new(0);
///
/// *COUNTED.lock() += 1;
/// let counted = COUNTED.counts();
/// // How the mutex was obtained: at once, while spinning, past others, after a sleep, as one owed.
/// assert_eq!((counted.fast(), counted.spun, counted.stolen, counted.woken, counted.reserved), (1, 0, 0, 0, 0));
/// ```
pub type ThroughputMutexWith<T, P, B = After> = api::Mutex<RawThroughputMutex<P, B>, T>;

/// What holds a [`ThroughputMutex`] locked, and gives access to its data.
pub type ThroughputMutexGuard<'a, T, P = Private, B = After> =
    api::MutexGuard<'a, RawThroughputMutex<P, B>, T>;

/// A [`ThroughputMutexGuard`] narrowed to a part of the data.
pub type MappedThroughputMutexGuard<'a, T, P = Private, B = After> =
    api::MappedMutexGuard<'a, RawThroughputMutex<P, B>, T>;

/// A condition variable for a [`ThroughputMutex`] of the same policy. A notification reaches the
/// newest waiter that spins, if one of the newest eight does, and else the one that has waited
/// longest. Sleepers are moved into the queue of the mutex. One of them is woken if the mutex is
/// free, and else the releases wake them one by one.
///
/// `notify_one` returns `false` and `notify_all` returns 0, however many threads were notified.
/// lock_api asks this of condition variables whose waits may end spuriously. These may, in the
/// cases that [`RawCondvar`](ulocks_core::condvar::RawCondvar) lists. Its own methods return the
/// true counts: `condvar.raw().inner().notify_all()`. A waiter spins for up to 30 us before it
/// sleeps.
pub type ThroughputCondvar = ThroughputCondvarWith<Private>;

/// A [`ThroughputCondvar`] for a [`ThroughputMutexWith`] of the same policy and bound.
pub type ThroughputCondvarWith<P, B = After> = api::Condvar<RawThroughputMutex<P, B>>;
