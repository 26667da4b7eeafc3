#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub use ulocks_core::queue::Every;

use ulocks_core::queue::QueueMutex;
use ulocks_core::{Private, api};

/// The raw lock, without data.
pub type RawCalock<P = Private, I = Every> = QueueMutex<P, I>;

/// `Calock<T>` is mutual exclusion around a `T` at a throughput that does not fall however many
/// threads want it, where no thread starves: eight bytes beside the data.
///
/// This one is for the threads of one process, with the default patience and interval, and without
/// counters; [`CalockWith`] has the others.
///
/// # Fairness
/// None in the short run. An arriving thread takes a free mutex past all waiters. Those that have
/// to wait stand in a queue, and sleep. The oldest of them looks now and then, and the others stay
/// asleep, so that the same few threads go round. One goes round alone where that is faster: where
/// critical sections are shorter than the mutex's cache line takes from one CPU to another.
///
/// In the long run every thread acquires. When the oldest waiter has waited for an interval, the
/// mutex is handed over to it, and the present holder is the last to have overtaken it. The
/// interval is ten milliseconds unless the type says otherwise ([`Every`]). With
/// - `h`, the longest time the mutex is held,
/// - `w`, the time until a woken thread runs,
/// - `k`, the number of other waiters,
///
/// a waiter waits at most `(k + 1) * (interval + 2h + 3w)`. So among a hundred threads that always
/// want the mutex, a thread may wait for a second. Fewer threads or a shorter interval make that
/// less. Each hand-over costs the throughput of two wake-ups.
///
/// The kernel wakes threads of real-time priority before others.
///
/// [`try_lock`](api::Mutex::try_lock) takes a free mutex past others too, but fails on one that is
/// kept for a waiter.
///
/// # Blocking
/// [`lock`](api::Mutex::lock) is one atomic read-modify-write if the mutex is free and no thread
/// waits, and so is the release. Otherwise the caller spins for up to
/// [`QUEUE_NS`](ulocks_core::spin::Spin::QUEUE_NS) of its policy, 12 us by default, or 6 us with
/// fewer than four CPUs, at intervals that follow the cost of its polls, or not at all while one
/// thread goes round alone. Then it sleeps in the kernel (`FUTEX_WAIT`). A release makes a system
/// call if it wakes a waiter; most do not. No thread ever yields to the scheduler.
///
/// The oldest waiter sleeps with a timer, and then sees whether it can have the mutex. The timer is
/// of 50 us at first, and grows up to an interval. So if the active threads stop coming, the mutex
/// may be idle while waiters sleep. It is so for about as long as it was busy before, and for an
/// interval at most. A thread that waits on a condition variable wakes the oldest waiter as it
/// releases the mutex.
///
/// A timed acquisition tries at least once. It may return late by its spin budget and by what the
/// scheduler takes.
///
/// # Tasks
/// A task waits by [`lock_async`](ulocks_core::task::AsyncMutex::lock_async), in the queue of the
/// threads. It does not nap: a task that was woken, polled, and found the mutex taken is the next
/// to acquire it. So where tasks contend the mutex is handed over more often than the interval
/// says.
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
/// the queue, and the bound would end with it. Between processes there are `BargingMutexWith<T,
/// Shared>` of `ulocks-unfair`, without a bound, and the robust mutexes of `ulocks-shm`.
///
/// ```compile_fail
/// use ulocks_calock::CalockWith;
/// use ulocks_core::Shared;
///
/// static ACROSS_PROCESSES: CalockWith<u32, Shared> = CalockWith::new(0);
/// ```
///
/// # Signals and forks
/// Signals are handled while a thread waits, and the wait goes on, or
/// [ends](ulocks_core::interrupt) if it asks for that. A handler must not use a mutex that the code
/// it interrupts may hold. A child of `fork` gets a private copy of the mutex in the state it was
/// in. What another thread held stays locked there. What the forking thread held, the child can
/// release and lock again. If threads waited for the mutex at the fork, the child must not use it
/// at all, whether it was held or not, and forgets a guard. It would write to the waiters' places,
/// which were on stacks that it uses anew.
///
/// # Memory
/// The release is one read-modify-write and touches the mutex no more, so the thread that releases
/// last may free or unmap it at once. Nothing is allocated, so it can guard a global allocator,
/// unless tasks wait. A guard may be forgotten, which leaves the mutex locked, and a locked mutex
/// may be moved or dropped.
///
/// # Methods
/// `Calock<T>` is a name for [lock_api]'s type around a raw lock of this family. The page of
/// lock_api lists the methods: `new`, `lock`, `try_lock`, `try_lock_for`, `try_lock_until`,
/// `is_locked`, `get_mut`, `into_inner` and more. This page says what they promise.
///
/// [lock_api]: https://docs.rs/lock_api/0.5/lock_api/struct.Mutex.html
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use ulocks_calock::Calock;
///
/// static HITS: Calock<u64> = Calock::new(0);
///
/// std::thread::scope(|scope| {
///     for _ in 0..64 {
///         scope.spawn(|| *HITS.lock() += 1);
///     }
/// });
/// assert_eq!(*HITS.lock(), 64);
///
/// let held = HITS.lock();
/// assert!(HITS.try_lock_for(Duration::from_millis(1)).is_none());
/// drop(held);
/// assert!(HITS.try_lock().is_some());
/// ```
pub type Calock<T> = CalockWith<T, Private>;

/// A [`Calock`] with another policy or another interval: with other patience, with counters inside,
/// or with a tighter bound.
///
/// Franke's variants are policies: his `c`, which sleeps at once, his `C`, which has a patience `p`
/// in microseconds, and `C` with the patience that is chosen here.
///
/// ```
/// use ulocks_calock::{CalockWith, Every};
/// use ulocks_core::Private;
/// use ulocks_core::spin::{Adaptive, NoSpin, Patience};
///
/// static C: CalockWith<u32, Private<NoSpin>> = CalockWith::new(0);
/// static C_SPIN_3: CalockWith<u32, Private<Patience<3_000>>> = CalockWith::new(0);
/// static C_SPIN: CalockWith<u32, Private<Adaptive>> = CalockWith::new(0);
/// static EVERY_MILLISECOND: CalockWith<u32, Private, Every<1_000_000>> = CalockWith::new(0);
///
/// assert_eq!(*C.lock() + *C_SPIN_3.lock() + *C_SPIN.lock(), 0);
/// assert_eq!(*EVERY_MILLISECOND.lock(), 0);
/// ```
///
/// So are the columns of his table. WC, the share of acquisitions that found the mutex taken, is
/// [`contention`](ulocks_core::meter::Snapshot::contention); R, how often such an acquisition went
/// into the kernel to sleep, is [`reentries`](ulocks_core::meter::Snapshot::reentries). The others
/// say how an acquisition came about, each in one way, and how many waiters were put to sleep and
/// promoted:
///
/// ```
/// use std::time::Duration;
/// use ulocks_calock::CalockWith;
/// use ulocks_core::Private;
/// use ulocks_core::meter::Counted;
/// use ulocks_core::raw::Metered;
/// use ulocks_core::spin::NoSpin;
///
/// let counted = CalockWith::<u32, Private<NoSpin, Counted>>::new(0);
/// let held = counted.lock();
/// std::thread::scope(|scope| {
///     scope.spawn(|| *counted.lock() += 1);
///     while counted.counts().slept == 0 {
///         std::thread::sleep(Duration::from_millis(1));
///     }
///     drop(held);
/// });
/// let counts = counted.counts();
/// assert_eq!((counts.acquired, counts.contended, counts.contention()), (2, 1, Some(0.5)));
/// assert!(counts.reentries() >= Some(1.0));
/// // At once, while spinning, past others, after a sleep, by promotion.
/// assert_eq!((counts.fast(), counts.spun, counts.stolen), (1, 0, 0));
/// assert_eq!(counts.woken + counts.reserved, 1);
/// // Put to sleep, and promoted: had the mutex been held for longer than an interval.
/// assert_eq!((counts.culled, counts.promoted), (1, counts.reserved));
/// ```
pub type CalockWith<T, P, I = Every> = api::Mutex<RawCalock<P, I>, T>;

/// What holds a [`Calock`] locked, and gives access to its data.
pub type CalockGuard<'a, T, P = Private, I = Every> = api::MutexGuard<'a, RawCalock<P, I>, T>;

/// A [`CalockGuard`] narrowed to a part of the data.
pub type MappedCalockGuard<'a, T, P = Private, I = Every> = api::MappedMutexGuard<'a, RawCalock<P, I>, T>;

/// A condition variable for a [`Calock`].
///
/// `notify_one` returns `false` and `notify_all` returns 0, however many threads were notified.
/// lock_api asks this of condition variables whose waits may end spuriously. These may, in the
/// cases that [`RawCondvar`](ulocks_core::condvar::RawCondvar) lists. Its own methods return the
/// true counts: `condvar.raw().inner().notify_all()`. A waiter spins for up to 30 us before it
/// sleeps.
pub type CalockCondvar = CalockCondvarWith<Private>;

/// A [`CalockCondvar`] for a [`CalockWith`] of the same policy and interval.
pub type CalockCondvarWith<P, I = Every> = api::Condvar<RawCalock<P, I>>;
