//! [`FairMutex`]: strict first in, first out, sixteen bytes.

use ulocks_core::queue::{InOrder, QueueMutex};
use ulocks_core::{Private, api};

/// The raw mutex, without data.
pub type RawFairMutex<P = Private> = QueueMutex<P, InOrder>;

/// `FairMutex<T>` is mutual exclusion around a `T`, strictly first in, first out: the thread that
/// arrives first holds the mutex first.
///
/// This one is for the threads of one process, with the default patience and without counters;
/// [`FairMutexWith`] has the others.
///
/// # Fairness
/// Strict. A thread arrives by one atomic step. If the mutex is free and there are no waiters, the
/// step takes the mutex; otherwise it takes a place in the queue. The mutex goes from thread to
/// thread in the order of these steps. No thread overtakes another, not while it spins, and not by
/// [`try_lock`](api::Mutex::try_lock), which fails while there are waiters. So a waiter waits for
/// the threads before it only: with `n` threads, for at most `n - 1` critical sections and
/// hand-overs, unless it times out. The scheduler decides how long a thread takes to arrive.
///
/// The cost is a hand-over to a certain thread, awake or not. If there are more threads than CPUs,
/// and the mutex is always busy, each acquisition costs a switch between threads. An unfair mutex
/// serves a thread that runs.
///
/// # Blocking
/// [`lock`](api::Mutex::lock) is one atomic read-modify-write if the mutex is free and there are no
/// waiters, and so is the release. Otherwise the caller enqueues, and a release hands over to the
/// head waiter. The waiters at the head of the queue are awake; those behind sleep in the kernel.
/// An awake waiter spins for up to [`FIRST_NS`](ulocks_core::spin::Spin::FIRST_NS) of its policy,
/// and from 32 CPUs on once more for each further sixteen. It spins less if the holder seems to
/// wait for its CPU. Then it sleeps too.
///
/// How many are awake depends on the number of CPUs that the process may use:
/// - *Up to three.* A waiter that finds the queue empty spins. A release may wake one waiter ahead
///   of its turn: the next, or the one behind that, if the next needs the CPU of the new holder.
/// - *Four or more.* All, while each hand-over meets a waiter that is awake. After one that meets a
///   sleeper, as many as it takes to have the next one awake in time, up to 63, or three if there
///   are more waiters than CPUs. The others sleep, and releases wake them ahead of their turn, two
///   at most at a time. Where all waiters are granted within 20 us, all poll again.
///
/// A release makes no system call for a waiter that is awake. No thread yields to the scheduler. A
/// timed acquisition tries at least once. It may return late by its spin budgets and by what the
/// scheduler takes.
///
/// # Tasks
/// A task waits by [`lock_async`](ulocks_core::task::AsyncMutex::lock_async), in the queue of the
/// threads: the waiter that came first is served first. Its future may be dropped at any moment.
/// [`task`](ulocks_core::task) has the rest.
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
/// the queue, and the threads behind it would wait for ever. Between processes
/// `ulocks_shm::FairMutex` keeps this order, whichever thread is killed. `BargingMutexWith<T,
/// Shared>` of `ulocks-unfair` has no order, and four bytes.
///
/// ```compile_fail
/// use ulocks_core::Shared;
/// use ulocks_fair::FairMutexWith;
///
/// static ACROSS_PROCESSES: FairMutexWith<u32, Shared> = FairMutexWith::new(0);
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
/// Sixteen bytes. Nothing is allocated, so it can guard a global allocator, unless tasks wait. A
/// waiter's place in the queue is on its own stack, or in its future. What releases is one
/// read-modify-write, after which the mutex is touched no more. So the thread that releases last
/// may free or unmap it at once. A guard may be forgotten, which leaves the mutex locked, and a
/// locked mutex may be moved or dropped.
///
/// # Methods
/// `FairMutex<T>` is a name for [lock_api]'s type around a raw lock of this family. The page of
/// lock_api lists the methods: `new`, `lock`, `try_lock`, `try_lock_for`, `try_lock_until`,
/// `is_locked`, `get_mut`, `into_inner` and more. This page says what they promise.
///
/// [lock_api]: https://docs.rs/lock_api/0.5/lock_api/struct.Mutex.html
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use ulocks_fair::FairMutex;
///
/// static TURNS: FairMutex<Vec<u32>> = FairMutex::new(Vec::new());
///
/// std::thread::scope(|scope| {
///     for me in 0..4 {
///         scope.spawn(move || TURNS.lock().push(me));
///     }
/// });
/// assert_eq!(TURNS.lock().len(), 4);
///
/// let held = TURNS.lock();
/// assert!(TURNS.try_lock().is_none());
/// assert!(TURNS.try_lock_for(Duration::from_millis(1)).is_none());
/// drop(held);
/// assert!(TURNS.try_lock().is_some());
/// ```
pub type FairMutex<T> = FairMutexWith<T, Private>;

/// A [`FairMutex`] with another policy: with other patience, or with counters inside.
///
/// It is a name of its own because a default of a type parameter does not apply in an expression.
///
/// ```
/// use ulocks_core::meter::Counted;
/// use ulocks_core::raw::Metered;
/// use ulocks_core::spin::NoSpin;
/// use ulocks_core::Private;
/// use ulocks_fair::FairMutexWith;
///
/// static IMPATIENT: FairMutexWith<u32, Private<NoSpin>> = FairMutexWith::new(0);
/// static COUNTED: FairMutexWith<u32, Private<NoSpin, Counted>> = FairMutexWith::new(0);
///
/// *COUNTED.lock() += 1 + *IMPATIENT.lock();
/// let counters = COUNTED.counts();
/// assert_eq!((counters.acquired, counters.contended), (1, 0));
/// ```
pub type FairMutexWith<T, P> = api::Mutex<RawFairMutex<P>, T>;

/// What holds a [`FairMutex`] locked, and gives access to its data.
pub type FairMutexGuard<'a, T, P = Private> = api::MutexGuard<'a, RawFairMutex<P>, T>;

/// A [`FairMutexGuard`] narrowed to a part of the data.
pub type MappedFairMutexGuard<'a, T, P = Private> = api::MappedMutexGuard<'a, RawFairMutex<P>, T>;

/// A condition variable for a [`FairMutex`]. A notification of all wakes all waiters. They queue
/// for the mutex as other threads do, in the order in which they arrive.
///
/// `notify_one` returns `false` and `notify_all` returns 0, however many threads were notified.
/// lock_api asks this of condition variables whose waits may end spuriously. These may, in the
/// cases that [`RawCondvar`](ulocks_core::condvar::RawCondvar) lists. Its own methods return the
/// true counts: `condvar.raw().inner().notify_all()`. A waiter spins for up to 30 us before it
/// sleeps.
///
/// ```
/// use ulocks_fair::{FairCondvar, FairMutex};
///
/// static JOBS: FairMutex<Vec<u32>> = FairMutex::new(Vec::new());
/// static ARRIVED: FairCondvar = FairCondvar::new();
///
/// std::thread::spawn(|| {
///     JOBS.lock().push(7);
///     ARRIVED.notify_one();
/// });
/// let mut jobs = JOBS.lock();
/// while jobs.is_empty() {
///     ARRIVED.wait(&mut jobs);
/// }
/// assert_eq!(jobs.pop(), Some(7));
/// ```
pub type FairCondvar = FairCondvarWith<Private>;

/// A [`FairCondvar`] for a [`FairMutexWith`] of the same policy.
pub type FairCondvarWith<P> = api::Condvar<RawFairMutex<P>>;
