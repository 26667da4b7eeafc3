#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod by_class;
mod class;
mod face;
mod line;
mod nesting;
mod pending;
mod raw;
mod readers;
mod release;
#[doc(hidden)]
mod sifted;
mod steps;
mod word;
mod writer;

pub use by_class::{ByClass, Partial};
pub use class::{BULK, Bulk, Class, HANDLER, Handler, NESTED, Nested, ThreadClass, URGENT, Urgent};
pub use nesting::{Checked, InDebug, Nesting, Unchecked};
pub use pending::Stage;
pub use raw::{RawPsRwLock, ReadToken};
pub use readers::{Central, Distributed, Readers};
pub use sifted::{Discipline, Fairness, PhaseFair, Sifted, WriterBatch};
pub use steps::{News, PendingWrite};
pub use word::State;

/// What a lock needs that signal handlers read: handlers that wait for its writers, and the ways to
/// keep them off.
#[doc(inline)]
pub use ulocks_core::signal;

use ulocks_core::api;

/// Shared access for readers, exclusive access for a writer, around a `T`, where a reader of a
/// higher class is never delayed by a writer that waits for readers of a lower class: sixteen bytes
/// beside the data.
///
/// There are four classes of readers: [`Bulk`], which is what [`read`](api::RwLock::read) acquires,
/// [`Urgent`], [`Nested`] and [`Handler`]. A writer *sifts*: it shuts out the lowest class and
/// waits until its readers have left; only then it shuts out the next. So while it waits for slow
/// readers, urgent ones come and go. The methods that name a class are in [`ByClass`].
///
/// This one is for the threads of one process, with the three classes of threads, fair to readers
/// and writers in turn; [`PsRwLockWith`] has the others.
///
/// # Fairness
/// A reader waits for one writer, wherever that one is in its section, and for readers of its own
/// class and of higher ones that were inside before it; never for readers of a lower class, however
/// long they take. Writers that queue do not add up: a reader that waits in line gets in after the
/// write phase that is on when it joins, before the next writer shuts its class ([`PhaseFair`];
/// with [`WriterBatch`] after some more, unless it is of the top class). Before it joins the line
/// it spins, for [`FIRST_NS`](ulocks_core::spin::Spin::FIRST_NS) of its policy, 30 us by default,
/// or less if others sleep there, and in this time several short writes may pass it. A writer that
/// has spun for half a microsecond of another's section comes before `Bulk` readers that are not in
/// line, or before those of the lowest class that there is.
///
/// A writer waits for at most one read phase of each class: once a class is shut, nobody new gets
/// in. Readers cannot starve it. Among themselves writers are unfair: who finds the write side free
/// takes it, past those that sleep; a fair release (`RwLockWriteGuard::unlock_fair`) keeps it for
/// one that waits.
///
/// *Nesting.* A thread that holds a read lock may take one of a *higher* class, whatever writers
/// wait. A second one of the same class, or of a lower one, deadlocks if a writer comes between. In
/// debug builds, and with [`Checked`] in all, that panics and names both places.
///
/// # Blocking
/// A read lock is one atomic addition if no writer has shut its class, and its release one
/// subtraction. A write lock is one compare-exchange if nobody is there, and so is its release.
/// Otherwise who waits spins, for up to 30 us if nobody else sleeps for the same, and then sleeps
/// in the kernel; a reader that is the first in line spins for as long again before it sleeps, and
/// a writer up to three times as long, if others write for more than half a microsecond at a time.
/// A release, of whatever kind, is a fixed number of read-modify-writes, however many readers come
/// and go meanwhile; and a system call for each kind of sleepers it has to wake. A writer that
/// waits for readers sleeps in naps of at most a millisecond, which the last reader cuts short.
/// Nobody ever yields to the scheduler. A timed acquisition tries at least once, and may return
/// late by its spinning budget and by what the scheduler takes; a timed writer that gives up lets
/// everybody in again. Beside readers that use every CPU it may have to give up often: see
/// [`PhaseFair`].
///
/// # Panics
/// If there are too many readers at once: half of what the class's share of some 56 bits can hold,
/// 131,072 with three classes, 8,192 with four, and 65,536 more at each slot of [`Distributed`]; or
/// if 12,000 wait in one line, 6,000 in that of the top class. With nesting checked, at an
/// acquisition that may wait for its own thread; inside `with_upgraded` that aborts. Otherwise it
/// is a deadlock, or, with a deadline, a timeout.
///
/// # Aborts
/// If the kernel refuses to let a waiter sleep, or to wake a sleeper: a seccomp filter forbids it.
/// A panic would leave other threads waiting for ever.
///
/// # Process-shared
/// [`PsRwLockWith`]`<T, Sifted<{ BULK | URGENT }, Shared>>`, without the class of signal handlers:
/// no address is stored, all-zero memory is an unlocked lock, and processes may map it wherever
/// they like. It is not robust: if a process dies while it holds the lock for reading, or waits in
/// line, its count stays, and writers wait for ever; readers go on, until the next writer comes. If
/// it dies as a writer, or as one that has been woken to be the next, nobody else gets in; if it
/// dies inside of a release, the waiters that it was about to wake may sleep on. Bound such waits
/// with a timeout.
///
/// # Signals and forks
/// A lock with the class [`Handler`] may be [read in signal handlers](ByClass::read_handler): an
/// attempt that makes no system call, allocates nothing and leaves errno alone. Its writers keep
/// handlers off their own thread for as long as the class is shut, which is the last stage and the
/// write itself, not while they wait for slower readers: [`signal::Soft`] for handlers that are
/// wrapped by `signal::Handlers`, at the cost of two additions, [`signal::Hard`] for others. All
/// other operations are not for handlers. Signals are handled while a thread waits, and the wait
/// goes on. A child of `fork` gets a private copy of a `Private` lock in the state it was in, with
/// the readers that its other threads were: unless nobody used it, the child may not.
///
/// # Memory
/// A release ends with one read-modify-write and touches the lock no more, so the thread that
/// releases last may free or unmap it at once. Nothing is allocated, so it can guard a global
/// allocator. A guard may be forgotten, which leaves the lock locked, and a locked lock may be
/// moved or dropped. On a lock with handlers a forgotten write guard leaves the mask of its thread
/// up, too. So does a forgotten [`PendingWrite`] that was [ready](Stage::Ready); one that owns the
/// write side keeps it.
///
/// # Examples
/// ```
/// use ulocks_psrwlock::{ByClass, Nested, PsRwLock, Urgent};
///
/// static ROUTES: PsRwLock<Vec<u32>> = PsRwLock::new(Vec::new());
///
/// ROUTES.write().extend([1, 2, 3]);
/// let report = ROUTES.read(); // may take long
/// assert_eq!(ROUTES.read_in::<Urgent>()[0], 1); // on another thread: does not wait for the report, even if a writer does
///
/// // Code that this thread comes into again, and that does not know what its caller holds.
/// fn hook() -> usize {
///     ROUTES.read_in::<Nested>().len()
/// }
/// assert_eq!(hook(), report.len());
/// ```
pub type PsRwLock<T> = PsRwLockWith<T, Sifted>;

/// A [`PsRwLock`] with another discipline: other classes, between processes, with other patience,
/// with counters inside, with batches of writers, with readers that scale, or with another mask.
/// See [`Sifted`].
///
/// Where reads are many and writes rare, readers can be counted in several cache lines, so that
/// they do not pass one line to and fro. The price is memory, and a write that looks at all of
/// them:
///
/// ```
/// use ulocks_core::Private;
/// use ulocks_psrwlock::{BULK, Distributed, PhaseFair, PsRwLockWith, Sifted};
///
/// static CONFIG: PsRwLockWith<u32, Sifted<BULK, Private, PhaseFair, Distributed<16>>> = PsRwLockWith::new(0);
///
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| assert!(*CONFIG.read() <= 1));
///     }
///     *CONFIG.write() += 1;
/// });
/// ```
pub type PsRwLockWith<T, D> = api::RwLock<RawPsRwLock<D>, T>;

/// Shared access to what a [`PsRwLock`] protects. Like all guards it stays on its thread.
///
/// ```compile_fail,E0277
/// fn elsewhere<T: Send>() {}
/// elsewhere::<ulocks_psrwlock::PsRwLockReadGuard<'static, u32>>();
/// ```
/// ```compile_fail,E0277
/// # fn elsewhere<T: Send>() {}
/// elsewhere::<ulocks_psrwlock::PsRwLockWriteGuard<'static, u32>>();
/// ```
/// ```compile_fail,E0277
/// # fn elsewhere<T: Send>() {}
/// elsewhere::<ulocks_psrwlock::PsRwLockUpgradableReadGuard<'static, u32>>();
/// ```
pub type PsRwLockReadGuard<'a, T, D = Sifted> = api::RwLockReadGuard<'a, RawPsRwLock<D>, T>;

/// Exclusive access to what a [`PsRwLock`] protects.
pub type PsRwLockWriteGuard<'a, T, D = Sifted> = api::RwLockWriteGuard<'a, RawPsRwLock<D>, T>;

/// Shared access to what a [`PsRwLock`] protects, beside readers and no writer, that can become
/// exclusive. [`Partial`] shuts out some classes of readers before.
pub type PsRwLockUpgradableReadGuard<'a, T, D = Sifted> =
    api::RwLockUpgradableReadGuard<'a, RawPsRwLock<D>, T>;

/// A [`PsRwLockReadGuard`] narrowed to a part of the data.
pub type MappedPsRwLockReadGuard<'a, T, D = Sifted> = api::MappedRwLockReadGuard<'a, RawPsRwLock<D>, T>;

/// A [`PsRwLockWriteGuard`] narrowed to a part of the data.
pub type MappedPsRwLockWriteGuard<'a, T, D = Sifted> = api::MappedRwLockWriteGuard<'a, RawPsRwLock<D>, T>;
