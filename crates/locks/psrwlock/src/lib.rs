#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod by_class;
mod class;
#[doc(hidden)]
mod configuration;
mod exits;
mod face;
mod first;
mod nesting;
mod queue;
mod raw;
mod readers;
mod release;
mod rows;
mod sift;
mod task;
mod word;
mod writer;

pub use by_class::{ByClass, Partial};
pub use class::{BULK, Bulk, Class, HANDLER, Handler, NESTED, Nested, ThreadClass, URGENT, Urgent};
pub use configuration::{Configuration, Fairness, PhaseFair, ReadersFirst, Sifted};
pub use nesting::{Checked, InDebug, Nesting, Unchecked};
pub use raw::{RawPsRwLock, ReadToken};
pub use readers::{Biased, Central, Readers};
#[doc(hidden)]
pub use readers::{Eager, Fenced};
#[doc(hidden)]
pub use task::{OwnAsync, ReadAsync};
#[doc(hidden)]
pub use word::State;

/// For locks that signal handlers read: handlers that wait for writers, and the ways to mask them.
#[doc(inline)]
pub use ulocks_core::signal;

use ulocks_core::api;

/// `PsRwLock<T>` is a reader-writer lock around a `T`: a writer that waits for readers of a lower
/// class never delays a reader of a higher class. It has sixteen bytes beside the data.
///
/// There are four classes of readers: [`Bulk`], which [`read`](api::RwLock::read) acquires,
/// [`Urgent`], [`Nested`] and [`Handler`]. A writer *sifts*: it closes the lowest class and waits
/// until its readers have left; only then it closes the next. So while it waits for slow readers,
/// urgent ones come and go. The methods that name a class are in [`ByClass`].
///
/// This one is for the threads of one process, with the three classes of threads, fair to readers
/// and writers in turn; [`PsRwLockWith`] has the others.
///
/// # Fairness
/// A reader waits for one writer, wherever that one is in its section, and for readers of its own
/// class and of higher ones that were inside before it. It never waits for readers of a lower
/// class.
///
/// Several waiting writers do not add up. A reader first spins, for
/// [`FIRST_NS`](ulocks_core::spin::Spin::FIRST_NS) of its policy, 30 us by default, or less if
/// other readers sleep. In this time several short writes may pass it. Then it joins a queue. A
/// queued reader enters after the present write phase, before the next writer closes its class
/// ([`PhaseFair`]).
///
/// A writer waits for at most one read phase of each class: once a class is closed, no new reader
/// enters. Readers cannot starve it, unless the type says [`ReadersFirst`]. Among themselves
/// writers are unfair: an arriving writer takes a free write side past sleeping ones. A fair
/// release (`RwLockWriteGuard::unlock_fair`) keeps it for a waiting writer.
///
/// *Nesting.* A thread that holds a read lock may take one of a *higher* class, whatever writers
/// wait. A second one of the same class, or of a lower one, deadlocks if a writer comes between. In
/// debug builds, and with [`Checked`] in all, the second one panics nearly every time, and names
/// both places. The check may miss it if the thread holds more than sixteen locks, or if another
/// thread came to the lock at the moment of the first one. By chance it misses one in ten thousand.
///
/// *Tasks* wait beside threads, by `read_async`, `write_async` and `upgradable_async` of
/// [`AsyncRwLock`](ulocks_core::task::AsyncRwLock). A task that waits to read is a queued reader.
/// Where a release wakes one writer, threads and tasks take turns. The check of nesting does not
/// see what tasks hold. A lock that signal handlers read is not for tasks.
///
/// # Blocking
/// A read lock is one atomic addition if no writer has closed its class, and its release one
/// subtraction. While many threads read in the class [`Bulk`], they count themselves in a row of
/// slots that the lock borrows from the process. A row has a slot for each CPU, so that readers do
/// not move one cache line from CPU to CPU. A writer then looks at each slot, which takes some
/// microseconds with 64 of them. Where writes are frequent the lock gives the row back ([`Biased`],
/// with figures in the source). There are 15 rows. A lock that is seldom written keeps its row,
/// also if it is not read any more. Where none is free, readers count themselves in the lock. A
/// write lock is one compare-exchange if no thread is there and the lock has no row, and so is its
/// release.
///
/// Otherwise the caller spins, and then sleeps in the kernel. Each stage of a wait has a spin
/// budget of its own, by default of some 30 us. For a reader the first stage ends when it joins the
/// queue; the first queued reader has a second one. A writer has a stage for the write side, one
/// for each queue and each class of readers, and one for the row. A writer that waits for readers
/// sleeps until the last of them wakes it; between processes it looks each millisecond, too. No
/// thread ever yields to the scheduler.
///
/// A release is a bounded number of read-modify-writes, however many readers come and go meanwhile.
/// It makes one system call for each kind of sleepers that it wakes.
///
/// A timed acquisition tries at least once. It may return late by a spin budget for each stage and
/// by what the scheduler takes. With the default policy the budgets of a reader are some 66 us
/// together, and those of a writer up to some 200 us. A timed writer that gives up lets all readers
/// in again. Beside readers that use every CPU it may have to give up often: see [`PhaseFair`].
///
/// # Panics
/// If there are too many readers at once. A class has 131,072 with three classes, 8,192 with four,
/// and 65,536 more in each slot. If 12,000 readers are queued, 6,000 in the top class. With nesting
/// checked, at an acquisition that may wait for its own thread; inside `with_upgraded`, `unlocked`,
/// `unlocked_fair` and `bump` that aborts. Without the check it is a deadlock, or, with a deadline,
/// a timeout.
///
/// # Aborts
/// If the kernel refuses to let a waiter sleep, or to wake a sleeper: a seccomp filter forbids it.
/// A panic would leave other threads waiting for ever. Likewise if it refuses membarrier(2) to a
/// writer after it has allowed it to readers, where a locked instruction is no fence.
///
/// # Process-shared
/// [`PsRwLockWith`]`<T, Shared>`, or a [`Sifted`] without the class of signal handlers: no address
/// is stored, all-zero memory is an unlocked lock, and processes may map it anywhere.
///
/// It is not robust. If a process dies while it reads or is queued, its count stays, and writers
/// wait for ever; readers go on until the next writer comes. If it dies as a writer, or as the
/// writer that was woken to be next, no other thread enters. If it dies inside a release, the
/// waiters that it was about to wake may sleep on. Bound such waits with a timeout.
///
/// # Signals and forks
/// A lock with the class [`Handler`] may be [read in signal handlers](ByClass::read_handler): an
/// attempt that makes no system call, allocates nothing and leaves errno alone. Its writers mask
/// the handlers of their own thread while the class is closed. That is the last stage and the write
/// itself, not the wait for slower readers. [`signal::Soft`] is for handlers that are wrapped by
/// `signal::Handlers`, at the cost of two additions; [`signal::Hard`] is for others. All other
/// operations are not for handlers. Signals are handled while a thread waits, and the wait goes on,
/// or [ends](ulocks_core::interrupt) if it asks for that.
///
/// A child of `fork` gets a private copy of a `Private` lock in its present state, with the counts
/// of readers that its other threads were. What another thread held stays locked there. What the
/// forking thread held, the child can release. The child may lock it if no other thread held it,
/// waited for it, was in a call of it, or in a read of another `Private` lock. Two locks may use
/// one row.
///
/// Two copies of this crate in one process, as in two shared libraries, must not share a `Private`
/// lock. Each has its own table of rows and exits.
///
/// # Memory
/// A release ends with one read-modify-write and touches the lock no more, so the thread that
/// releases last may free or unmap it at once. Nothing is allocated, but by a release that wakes
/// more than 32 tasks, so it can guard a global allocator. A guard may be forgotten, which leaves
/// the lock locked, and a locked lock may be moved or dropped. A lock that is dropped gives its row
/// back, unless readers whose guards were forgotten are in it. On a lock with handlers a forgotten
/// write guard leaves the mask of its thread set, too.
///
/// # Methods
/// `PsRwLock<T>` is a name for [lock_api]'s type around a raw lock of this family. The page of
/// lock_api lists the methods: `new`, `read`, `write`, `upgradable_read`, each with `try_` and time
/// limits, `get_mut`, `into_inner` and more. This page says what they promise. [`ByClass`] has
/// those that name a class. `is_locked_exclusive` is true, too, while a writer waits for the last
/// readers of the highest class, and while an upgradable reader shuts all classes out.
///
/// [lock_api]: https://docs.rs/lock_api/0.5/lock_api/struct.RwLock.html
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

/// A [`PsRwLock`] with another configuration: other classes, between processes, with other
/// patience, with counters inside, or with another mask.
///
/// `D` is a policy, or a [`Sifted`] if more is to be chosen:
///
/// ```
/// use ulocks_core::Shared;
/// use ulocks_psrwlock::{ByClass, PsRwLockWith, Urgent};
///
/// /// Between processes, with the three classes of threads.
/// static TABLE: PsRwLockWith<u32, Shared> = PsRwLockWith::new(0);
/// *TABLE.write() += 1;
/// assert_eq!(*TABLE.read_in::<Urgent>(), 1);
/// ```
///
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
/// exclusive. [`Partial`] closes some classes of readers before.
pub type PsRwLockUpgradableReadGuard<'a, T, D = Sifted> =
    api::RwLockUpgradableReadGuard<'a, RawPsRwLock<D>, T>;

/// A [`PsRwLockReadGuard`] narrowed to a part of the data.
pub type MappedPsRwLockReadGuard<'a, T, D = Sifted> = api::MappedRwLockReadGuard<'a, RawPsRwLock<D>, T>;

/// A [`PsRwLockWriteGuard`] narrowed to a part of the data.
pub type MappedPsRwLockWriteGuard<'a, T, D = Sifted> = api::MappedRwLockWriteGuard<'a, RawPsRwLock<D>, T>;
