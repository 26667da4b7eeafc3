//! The reader-writer lock.

use crate::psrwlock::{RawPsRwLock, Sifted};
use ulocks_core::api::Raw;
use ulocks_core::lock_api;

/// `RwLock<T>` is shared access for readers and exclusive access for a writer, around a `T`, with
/// turns between the two: sixteen bytes beside the data.
///
/// It is a name for [`psrwlock::PsRwLock`](crate::psrwlock::PsRwLock), whose page has the promises
/// at full length. Other classes of readers, readers that scale, other patience, counters and locks
/// between processes are in [`PsRwLockWith`](crate::psrwlock::PsRwLockWith).
/// [`migrate`](crate::migrate) is for those who come from std, parking_lot or tokio.
///
/// # Fairness
/// Readers and writers take turns. A reader waits for one writer, and for readers that were inside
/// before; while it still spins, several short writes may pass it. A writer waits for one phase of
/// readers of each class: while it waits, no new reader of [`read`](RwLock#method.read) enters.
/// Among themselves writers are unfair. Readers of a higher class, by
/// [`read_in`](crate::psrwlock::ByClass::read_in), pass a writer that waits for those of a lower.
///
/// *A thread that reads must not `read` again*: a writer that comes between the two waits for the
/// first, and the second for the writer. In place of parking_lot's `read_recursive` there is
/// [`read_in`](crate::psrwlock::ByClass::read_in)`::<`[`Nested`](crate::psrwlock::Nested)`>()`,
/// once inside a `read`: it waits for no writer that waits for that. A second `Nested` read of one
/// thread may deadlock as a second `read` does. For any depth there is `RecursiveRwLock` of
/// `ulocks-parking-lot`.
///
/// # Blocking
/// [`read`](RwLock#method.read) is one atomic addition if no writer is there, and its release one
/// subtraction. [`write`](RwLock#method.write) is one compare-exchange if no thread is there.
/// Otherwise the thread spins in stages of some 30 us, and then sleeps in the kernel. The stages of
/// a reader take up to 66 us together, those of a writer up to some 200 us. It blocks the thread,
/// not the task: for async code see [`migrate`](crate::migrate#from-tokiosync). A timed writer
/// beside readers that use every CPU may have to give up often.
///
/// # Panics
/// In debug builds, if a thread locks again what it holds, so that it may wait for itself: the
/// message names both places. In release builds that is a deadlock. If there are more than 131,072
/// readers of a class beside those in slots, or 12,000 that wait, or 6,000 that wait as `Nested`.
/// No poisoning: a panic of the holder releases the lock. If the kernel refuses to let a waiter
/// sleep (a seccomp filter), the process aborts.
///
/// # Process-shared
/// By another type, [`PsRwLockWith`](crate::psrwlock::PsRwLockWith)`<T, Shared>`. It is not robust:
/// for processes that may be killed there is `ulocks_shm::RwLock`.
///
/// # Signals and forks
/// Signals are handled while a thread waits, and the wait goes on, or ends if it is one of those in
/// [`interrupt`](crate::interrupt). A handler must not lock it; a
/// [`PsRwLockWith`](crate::psrwlock::PsRwLockWith) that has the class
/// [`Handler`](crate::psrwlock::Handler) may be read there. The child of a `fork` may release what
/// the forking thread held. It may lock a lock that no other thread held or waited for. But no
/// thread may have been in a call of it then, or in a read of another lock. What another thread
/// held stays locked.
///
/// # Methods
/// | method | what it does |
/// |---|---|
/// | [`new`](RwLock#method.new) | an unlocked lock; `const`, so it can be a `static` |
/// | [`read`](RwLock#method.read) | locks for reading, and waits as long as that takes |
/// | [`try_read`](RwLock#method.try_read) | the same if no writer holds it or waits: `Option` of a guard |
/// | [`try_read_for`](RwLock#method.try_read_for), [`try_read_until`](RwLock#method.try_read_until) | the same, or gives up after a `Duration`, at an `Instant` |
/// | [`write`](RwLock#method.write) | locks for writing, and waits as long as that takes |
/// | [`try_write`](RwLock#method.try_write) | the same if no thread holds it: `Option` of a guard |
/// | [`try_write_for`](RwLock#method.try_write_for), [`try_write_until`](RwLock#method.try_write_until) | the same, or gives up after a `Duration`, at an `Instant` |
/// | [`upgradable_read`](RwLock#method.upgradable_read) | locks for reading, with the right to write later; one such reader at a time |
/// | [`try_upgradable_read`](RwLock#method.try_upgradable_read), [`try_upgradable_read_for`](RwLock#method.try_upgradable_read_for), [`try_upgradable_read_until`](RwLock#method.try_upgradable_read_until) | the same without waiting, for a `Duration`, until an `Instant` |
/// | [`read_interruptible`], [`write_interruptible`], [`upgradable_read_interruptible`](crate::interrupt::InterruptibleUpgrade::upgradable_read_interruptible) | waits, or gives up when a signal handler runs; each has a form that ends in `_until`, and [`read_in_interruptible`](crate::psrwlock::ByClass::read_in_interruptible) is for a class |
/// | [`read_in`](crate::psrwlock::ByClass::read_in), [`try_read_in`](crate::psrwlock::ByClass::try_read_in), [`try_read_in_for`](crate::psrwlock::ByClass::try_read_in_for), [`try_read_in_until`](crate::psrwlock::ByClass::try_read_in_until) | the same as `read` in a class; `use ulocks::psrwlock::ByClass` |
/// | [`is_locked`](RwLock#method.is_locked), [`is_locked_exclusive`](RwLock#method.is_locked_exclusive) | whether it is held at this moment, whether by a writer |
/// | [`get_mut`](RwLock#method.get_mut) | the data by `&mut self`, without locking |
/// | [`into_inner`](RwLock#method.into_inner) | the data, and the lock is gone |
#[cfg_attr(
    feature = "arc_lock",
    doc = "| [`read_arc`](RwLock#method.read_arc), [`try_read_arc`](RwLock#method.try_read_arc), \
           [`try_read_arc_for`](RwLock#method.try_read_arc_for), \
           [`try_read_arc_until`](RwLock#method.try_read_arc_until) | reading on an `Arc`, with an owned \
           [`ArcRwLockReadGuard`] |\n\
           | [`write_arc`](RwLock#method.write_arc), [`try_write_arc`](RwLock#method.try_write_arc), \
           [`try_write_arc_for`](RwLock#method.try_write_arc_for), \
           [`try_write_arc_until`](RwLock#method.try_write_arc_until) | writing on an `Arc`, with an owned \
           [`ArcRwLockWriteGuard`] |\n\
           | [`upgradable_read_arc`](RwLock#method.upgradable_read_arc), \
           [`try_upgradable_read_arc`](RwLock#method.try_upgradable_read_arc), \
           [`try_upgradable_read_arc_for`](RwLock#method.try_upgradable_read_arc_for), \
           [`try_upgradable_read_arc_until`](RwLock#method.try_upgradable_read_arc_until) | the same with \
           an [`ArcRwLockUpgradableReadGuard`] |\n\
           | [`make_arc_read_guard_unchecked`](RwLock#method.make_arc_read_guard_unchecked), \
           [`make_arc_write_guard_unchecked`](RwLock#method.make_arc_write_guard_unchecked), \
           [`make_upgradable_arc_guard_unchecked`](RwLock#method.make_upgradable_arc_guard_unchecked) | \
           for code that locks in ways of its own: `unsafe` |"
)]
/// | [`from_raw`](RwLock#method.from_raw), [`into_inner_with_raw`](RwLock#method.into_inner_with_raw) | of the raw lock and the data, and into both |
/// | [`raw`](RwLock#method.raw), [`data_ptr`](RwLock#method.data_ptr), [`make_read_guard_unchecked`](RwLock#method.make_read_guard_unchecked), [`make_write_guard_unchecked`](RwLock#method.make_write_guard_unchecked), [`make_upgradable_guard_unchecked`](RwLock#method.make_upgradable_guard_unchecked) | for code that locks in ways of its own; all but `data_ptr` are `unsafe` |
/// | [`force_unlock_read`](RwLock#method.force_unlock_read), [`force_unlock_write`](RwLock#method.force_unlock_write), [`force_unlock_read_fair`](RwLock#method.force_unlock_read_fair), [`force_unlock_write_fair`](RwLock#method.force_unlock_write_fair) | release without the guard: `unsafe` |
///
/// What a guard can do is on its page: to downgrade a [`RwLockWriteGuard`], to upgrade a
/// [`RwLockUpgradableReadGuard`], to narrow one to a part of the data, to release it to a waiter.
/// [`Partial`](crate::psrwlock::Partial) upgrades in two phases. With the feature `arc_lock` there
/// are guards that own an `Arc`. A lock has `Default`, `From<T>` and `Debug`.
///
/// [`read_interruptible`]: crate::interrupt::InterruptibleRwLock::read_interruptible
/// [`write_interruptible`]: crate::interrupt::InterruptibleRwLock::write_interruptible
///
/// # Examples
/// ```
/// use ulocks::psrwlock::{ByClass, Nested};
/// use ulocks::{RwLock, RwLockUpgradableReadGuard, RwLockWriteGuard};
///
/// static LIMITS: RwLock<Vec<u32>> = RwLock::new(Vec::new());
///
/// // A write that goes on as a read: no other writer comes between.
/// let mut write = LIMITS.write();
/// write.extend([1, 10]);
/// let read = RwLockWriteGuard::downgrade(write);
/// assert!(LIMITS.try_read().is_some() && LIMITS.try_write().is_none());
///
/// // A second read of the same thread is in the class for that.
/// assert_eq!(LIMITS.read_in::<Nested>().len(), read.len());
/// drop(read);
///
/// // A read that turns into a write if it has to.
/// let upgradable = LIMITS.upgradable_read();
/// if !upgradable.contains(&20) {
///     RwLockUpgradableReadGuard::upgrade(upgradable).push(20);
/// }
/// assert_eq!(*LIMITS.read(), [1, 10, 20]);
/// ```
pub type RwLock<T> = lock_api::RwLock<Raw<RawPsRwLock<Sifted>>, T>;

/// Shared access to the data of a [`RwLock`]. Its drop unlocks.
///
/// It stays on its thread: it is not `Send`.
///
/// # Methods
/// | function | what it does |
/// |---|---|
/// | [`map`](RwLockReadGuard#method.map) | narrows the guard to a part of the data |
/// | [`try_map`](RwLockReadGuard#method.try_map), [`try_map_or_err`](RwLockReadGuard#method.try_map_or_err) | the same if there is such a part |
/// | [`unlocked`](RwLockReadGuard#method.unlocked), [`unlocked_fair`](RwLockReadGuard#method.unlocked_fair) | unlocks, runs a closure, and locks again as `read` does, in the class [`Bulk`](crate::psrwlock::Bulk): not for a guard of another class beside one of the same thread, nor for signal handlers |
/// | [`unlock_fair`](RwLockReadGuard#method.unlock_fair) | unlocks, and leaves the lock to a waiting writer |
/// | [`bump`](RwLockReadGuard#method.bump) | lets waiters come in between, and reads again in its class |
/// | [`rwlock`](RwLockReadGuard#method.rwlock) | the lock that it holds |
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, Raw<RawPsRwLock<Sifted>>, T>;

/// Exclusive access to the data of a [`RwLock`]. Its drop unlocks.
///
/// It stays on its thread: it is not `Send`.
///
/// # Methods
/// | function | what it does |
/// |---|---|
/// | [`downgrade`](RwLockWriteGuard#method.downgrade) | goes on as a reader, without unlocking between |
/// | [`downgrade_to_upgradable`](RwLockWriteGuard#method.downgrade_to_upgradable) | goes on as an upgradable reader, without unlocking between |
/// | [`map`](RwLockWriteGuard#method.map) | narrows the guard to a part of the data |
/// | [`try_map`](RwLockWriteGuard#method.try_map), [`try_map_or_err`](RwLockWriteGuard#method.try_map_or_err) | the same if there is such a part |
/// | [`unlocked`](RwLockWriteGuard#method.unlocked), [`unlocked_fair`](RwLockWriteGuard#method.unlocked_fair) | unlocks, runs a closure, and locks again |
/// | [`unlock_fair`](RwLockWriteGuard#method.unlock_fair) | unlocks, and keeps the write side for a waiting writer |
/// | [`bump`](RwLockWriteGuard#method.bump) | lets waiters come in between |
/// | [`rwlock`](RwLockWriteGuard#method.rwlock) | the lock that it holds |
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, Raw<RawPsRwLock<Sifted>>, T>;

/// Shared access to the data of a [`RwLock`], beside readers and no writer, that can become
/// exclusive. Its drop unlocks.
///
/// It stays on its thread: it is not `Send`. [`Partial`](crate::psrwlock::Partial) closes some
/// classes of readers before an upgrade.
///
/// # Methods
/// | function | what it does |
/// |---|---|
/// | [`upgrade`](RwLockUpgradableReadGuard#method.upgrade) | waits for the readers, and goes on as the writer |
/// | [`try_upgrade`](RwLockUpgradableReadGuard#method.try_upgrade), [`try_upgrade_for`](RwLockUpgradableReadGuard#method.try_upgrade_for), [`try_upgrade_until`](RwLockUpgradableReadGuard#method.try_upgrade_until) | the same without waiting, for a `Duration`, until an `Instant`; else the guard back |
/// | [`with_upgraded`](RwLockUpgradableReadGuard#method.with_upgraded) | runs a closure as the writer, and goes on as the upgradable reader |
/// | [`try_with_upgraded`](RwLockUpgradableReadGuard#method.try_with_upgraded), [`try_with_upgraded_for`](RwLockUpgradableReadGuard#method.try_with_upgraded_for), [`try_with_upgraded_until`](RwLockUpgradableReadGuard#method.try_with_upgraded_until) | the same without waiting, for a `Duration`, until an `Instant`: `Option` of its value |
/// | [`downgrade`](RwLockUpgradableReadGuard#method.downgrade) | goes on as a plain reader |
/// | [`unlocked`](RwLockUpgradableReadGuard#method.unlocked), [`unlocked_fair`](RwLockUpgradableReadGuard#method.unlocked_fair) | unlocks, runs a closure, and locks again |
/// | [`unlock_fair`](RwLockUpgradableReadGuard#method.unlock_fair) | unlocks, and leaves the lock to a waiter |
/// | [`bump`](RwLockUpgradableReadGuard#method.bump) | lets waiters come in between |
/// | [`rwlock`](RwLockUpgradableReadGuard#method.rwlock) | the lock that it holds |
pub type RwLockUpgradableReadGuard<'a, T> =
    lock_api::RwLockUpgradableReadGuard<'a, Raw<RawPsRwLock<Sifted>>, T>;

/// A [`RwLockReadGuard`] narrowed to a part of the data.
pub type MappedRwLockReadGuard<'a, T> = lock_api::MappedRwLockReadGuard<'a, Raw<RawPsRwLock<Sifted>>, T>;

/// A [`RwLockWriteGuard`] narrowed to a part of the data.
pub type MappedRwLockWriteGuard<'a, T> = lock_api::MappedRwLockWriteGuard<'a, Raw<RawPsRwLock<Sifted>>, T>;

/// A [`RwLockReadGuard`] that owns a share of its lock.
#[cfg(feature = "arc_lock")]
#[cfg_attr(docsrs, doc(cfg(feature = "arc_lock")))]
pub type ArcRwLockReadGuard<T> = lock_api::ArcRwLockReadGuard<Raw<RawPsRwLock<Sifted>>, T>;

/// A [`RwLockWriteGuard`] that owns a share of its lock.
#[cfg(feature = "arc_lock")]
#[cfg_attr(docsrs, doc(cfg(feature = "arc_lock")))]
pub type ArcRwLockWriteGuard<T> = lock_api::ArcRwLockWriteGuard<Raw<RawPsRwLock<Sifted>>, T>;

/// A [`RwLockUpgradableReadGuard`] that owns a share of its lock.
#[cfg(feature = "arc_lock")]
#[cfg_attr(docsrs, doc(cfg(feature = "arc_lock")))]
pub type ArcRwLockUpgradableReadGuard<T> =
    lock_api::ArcRwLockUpgradableReadGuard<Raw<RawPsRwLock<Sifted>>, T>;
