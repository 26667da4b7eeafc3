//! Coming from parking_lot, std or tokio: old names and new ones, and what behaves differently.
//!
//! [`which`](crate::which) is for the choice of a lock; this page is for code that is there. All
//! names are those of this crate: `ulocks::Mutex` and so on.
//!
//! | | parking_lot | std | tokio::sync | ulocks |
//! |---|---|---|---|---|
//! | a panic of the holder | unlocks | poisons | unlocks | unlocks |
//! | `lock()` returns | the guard | `Result` | a future | the guard; [`lock_async()`](crate::task) a future |
//! | waits end without a notification | no | yes | - | yes |
//! | a thread that locks again | deadlock | deadlock or panic | deadlock | deadlock, which `checked` reports |
//! | a thread that reads again | may deadlock | may deadlock or panic | may deadlock | panic in debug builds, with both places |
//! | a waiter sleeps | as a thread | as a thread | as a task | as a thread, or as a task |
//! | the next holder of a mutex | barging; 0.12 hands over each 0.5 ms on average | barging | FIFO | barging with a bound; [`fair::FairMutex`] is FIFO |
//! | timed methods | yes | of `Condvar` | by `timeout` | yes |
//! | systems | many | many | many | Linux |
//!
//! # From `parking_lot`
//!
//! Both crates use lock_api, so it is often a change of the imports:
//!
//! ```diff
//! -use parking_lot::{Condvar, Mutex, RwLock};
//! +use ulocks::{Condvar, Mutex, RwLock};
//! ```
//!
//! If dependencies use parking_lot, or if no name may change, the crate `ulocks-parking-lot` takes
//! its place by a line of `Cargo.toml`.
//!
//! | parking_lot 0.12 and 0.13 | ulocks | what differs |
//! |---|---|---|
//! | `Mutex`, its guards and their methods | [`Mutex`], [`MutexGuard`], [`MappedMutexGuard`] | eight bytes and not one; the wait has a bound |
//! | `MutexGuard::unlock_fair`, `unlocked_fair`, `bump`, `Mutex::force_unlock_fair` | [`fair::FairMutex`] and its guard | `Mutex` has none: its bound takes their place |
//! | `FairMutex` | [`fair::FairMutex`] | strict: no thread overtakes a waiter |
//! | `ReentrantMutex`, its guards and their methods | `ReentrantMutex` and guards of the same names | no fair release either |
//! | `RwLock`, its guards and their methods | [`RwLock`] and guards of the same names | 16 bytes and not eight; readers and writers take turns |
//! | `RwLock::read_recursive` (0.12), `RecursiveRwLock` (0.13) | [`read_in`]`::<`[`Nested`]`>()` | once, inside a `read`: see below. `try_read_recursive_for` is [`try_read_in_for`] |
//! | `Condvar` and its methods | [`Condvar`] | a wait may end without a notification; `notify_one` returns `false`, `notify_all` 0 |
//! | `Once`, `OnceState` | [`std::sync::Once`], [`std::sync::OnceState`] | see [below](#barrier-once-and-park) |
//! | `const_mutex`, `const_rwlock` (0.12) | [`Mutex::new`](Mutex#method.new), [`RwLock::new`](RwLock#method.new) | |
//! | `Mutex::const_new` of a raw lock (0.12) | [`Mutex::from_raw`](Mutex#method.from_raw) | |
//! | `force_unlock()` (0.12) | [`Mutex::force_unlock`](Mutex#method.force_unlock)`(token)` | takes what the guard owes, as in 0.13 |
//! | `lock_api`, `RawMutex`, `RawRwLock` | [`lock_api`](crate::lock_api), [`Raw`](crate::Raw)`<`[`RawThroughputMutex`](crate::unfair::RawThroughputMutex)`>`, `Raw<`[`RawPsRwLock`](crate::psrwlock::RawPsRwLock)`>` | lock_api is 0.5, also for programs that come from 0.12; its traits are those of `Raw` |
//! | `ArcMutexGuard` and others, `serde` | the same names and features | |
//! | feature `send_guard` | the guard of [`lock_async`](crate::task) | that of `lock` stays on its thread. A [`Permit`] of a [`Semaphore`] may go to another |
//! | feature `deadlock_detection`, `deadlock::check_deadlock` | feature `debug`: `ulocks::checked` | finds a wrong order before it deadlocks, and says where |
//!
//! What to look for in the code:
//!
//! - *An `if` before a `wait`.* parking_lot ends no wait without a notification, so an `if` was
//!   enough there. Make it a loop, or `wait_while`.
//! - *A second `read` on a thread that reads.* It may deadlock with parking_lot, too. Here a debug
//!   build panics at each of them.
//! - *`read_recursive` inside `read_recursive`.* A second `Nested` read of one thread may deadlock
//!   with a writer that comes between, and a debug build panics. For any depth take
//!   `RecursiveRwLock` of `ulocks-parking-lot`.
//! - *What `notify_one` returns.* Count waiters under the mutex instead.
//!
//! ```diff
//! -if queue.is_empty() {
//! -    FILLED.wait(&mut queue);
//! -}
//! +FILLED.wait_while(&mut queue, |queue| queue.is_empty());
//! ```
//!
//! ```diff
//! -let again = LIMITS.read_recursive();
//! +let again = LIMITS.read_in::<Nested>();
//! ```
//!
//! ```
//! use ulocks::psrwlock::{ByClass, Nested};
//! use ulocks::{Condvar, Mutex, RwLock};
//!
//! static QUEUE: Mutex<Vec<u32>> = Mutex::new(Vec::new());
//! static FILLED: Condvar = Condvar::new();
//! static LIMITS: RwLock<u32> = RwLock::new(7);
//!
//! let taker = std::thread::spawn(|| {
//!     let mut queue = QUEUE.lock();
//!     FILLED.wait_while(&mut queue, |queue| queue.is_empty());
//!     queue.pop()
//! });
//! let limit = LIMITS.read();
//! // Once, inside a `read`: does not wait for a writer that waits.
//! let again = LIMITS.read_in::<Nested>();
//! QUEUE.lock().push((*limit).min(*again));
//! FILLED.notify_one();
//! assert_eq!(taker.join().unwrap(), Some(7));
//! ```
//!
//! For code that is generic over lock_api's traits:
//!
//! ```
//! use ulocks::lock_api::{self, RawMutex};
//! use ulocks::{Mutex, Raw, unfair::RawThroughputMutex};
//!
//! fn take<R: RawMutex>(value: &lock_api::Mutex<R, Vec<u32>>) -> Vec<u32> {
//!     std::mem::take(&mut value.lock())
//! }
//! let value: lock_api::Mutex<Raw<RawThroughputMutex>, _> = Mutex::new(vec![7]);
//! assert_eq!(take(&value), [7]);
//! ```
//!
//! # From `std::sync`
//!
//! ```diff
//! -let mut queue = self.queue.lock().unwrap();
//! -queue = self.filled.wait(queue).unwrap();
//! +let mut queue = self.queue.lock();
//! +self.filled.wait(&mut queue);
//! ```
//!
//! | std | ulocks | what differs |
//! |---|---|---|
//! | `Mutex::lock`, `RwLock::read`, `RwLock::write` | [`Mutex::lock`](Mutex#method.lock), [`RwLock::read`](RwLock#method.read), [`RwLock::write`](RwLock#method.write) | the guard, and no `Result` |
//! | `try_lock`, `try_read`, `try_write` | [`Mutex::try_lock`](Mutex#method.try_lock), [`RwLock::try_read`](RwLock#method.try_read), [`RwLock::try_write`](RwLock#method.try_write) | `Option`, and no `TryLockError` |
//! | `get_mut`, `into_inner` | [`Mutex::get_mut`](Mutex#method.get_mut), [`Mutex::into_inner`](Mutex#method.into_inner) and so on | the data, and no `Result` |
//! | `is_poisoned`, `clear_poison`, `PoisonError` | none | see the example |
//! | `RwLockWriteGuard::downgrade` | [`RwLockWriteGuard::downgrade`](RwLockWriteGuard#method.downgrade) | |
//! | `Condvar::wait(guard)` | [`Condvar::wait`](Condvar#method.wait)`(&mut guard)` | the guard stays |
//! | `Condvar::wait_while(guard, condition)` | [`Condvar::wait_while`](Condvar#method.wait_while)`(&mut guard, condition)` | the guard stays |
//! | `Condvar::wait_timeout(guard, time)` | [`Condvar::wait_for`](Condvar#method.wait_for)`(&mut guard, time)` | the guard stays; only [`WaitTimeoutResult`] comes back |
//! | `Condvar::wait_timeout_while(guard, time, condition)` | [`Condvar::wait_while_for`](Condvar#method.wait_while_for)`(&mut guard, condition, time)` | the condition comes before the time |
//! | `Condvar::notify_one`, `notify_all` | the same | they return `false` and 0 |
//! | `Barrier`, `Once`, `OnceLock`, `LazyLock`, `mpsc` | std's | see [below](#barrier-once-and-park) |
//!
//! There are more: timed acquisitions, [`Mutex::is_locked`](Mutex#method.is_locked), upgradable
//! readers, guards of a part of the data. Where a panic must make the data unusable, keep
//! [`std::sync::Mutex`], or say so in the data:
//!
//! ```
//! use ulocks::Mutex;
//!
//! struct Ledger {
//!     sums: [i64; 2],
//!     is_whole: bool,
//! }
//!
//! static LEDGER: Mutex<Ledger> = Mutex::new(Ledger { sums: [100, 0], is_whole: true });
//!
//! let torn = std::thread::spawn(|| {
//!     let mut ledger = LEDGER.lock();
//!     ledger.is_whole = false;
//!     ledger.sums[0] -= 40;
//!     panic!("before the other half");
//! });
//! assert!(torn.join().is_err());
//! assert!(!LEDGER.is_locked()); // the panic unlocked
//! assert!(!LEDGER.lock().is_whole); // and this is what remains of it
//! ```
//!
//! # From `tokio::sync`
//!
//! *`lock`, `read`, `write` and `acquire` block their thread while they wait*: on a runtime, a
//! worker with all of its tasks. [`lock_async`](crate::task) and
//! [`acquire_async`](Semaphore::acquire_async) do not: a task waits in one queue with the threads.
//! So ask for each lock of an async program how long it is held:
//!
//! - *Between two awaits, for a few lines*: a blocking mutex is right and cheaper, as the
//!   documentation of tokio's `Mutex` says, too. Take [`Mutex`] or [`RwLock`].
//! - *Across an `.await`*: take `lock_async`, whose guard is `Send`, and only that. A task that
//!   calls `lock` while another task of its thread holds the mutex blocks both. The guard of `lock`
//!   is not `Send`, so the compiler refuses to spawn a task that holds it there. `spawn_local` and
//!   `block_on` do not ask for `Send`. An attempt is a future of `lock_async` that is polled
//!   once. An [`RwLock`] has [`read_async`], [`write_async`] and `upgradable_async`.
//! - *A task waits for a permit*: `acquire_async`. Threads may share the semaphore, and all are
//!   served in the order in which they came. A [`Permit`] is `Send`.
//! - *A task waits for a condition*: [`wait_async`](crate::task::AsyncCondvar::wait_async) of a
//!   [`Condvar`], beside threads, or tokio's `Notify`. It takes the guard of `lock_async` by value
//!   and returns it: `queue = FILLED.wait_async(queue).await`.
//! - *A task hands out permits*: [`Semaphore::release`] never waits.
//!
//! ```diff
//! -let mut cache = self.cache.lock().await;
//! -cache.insert(key, fetch(key).await);
//! +let value = fetch(key).await;
//! +self.cache.lock().insert(key, value);
//! ```
//!
//! ```
//! use std::pin::pin;
//! use std::task::{Context, Poll, Waker};
//! use ulocks::Mutex;
//!
//! static CACHE: Mutex<Vec<u32>> = Mutex::new(Vec::new());
//!
//! async fn fetch(key: u32) -> u32 {
//!     key * 10
//! }
//!
//! async fn fill(key: u32) {
//!     let value = fetch(key).await;
//!     CACHE.lock().push(value); // locked and unlocked between two awaits
//! }
//!
//! fn spawn(task: impl Future<Output = ()> + Send) {
//!     let mut context = Context::from_waker(Waker::noop());
//!     assert_eq!(pin!(task).poll(&mut context), Poll::Ready(()));
//! }
//! spawn(fill(7));
//! assert_eq!(*CACHE.lock(), [70]);
//! ```
//!
//! The compiler refuses this one:
//!
//! ```compile_fail,E0277
//! # use ulocks::Mutex;
//! # static CACHE: Mutex<Vec<u32>> = Mutex::new(Vec::new());
//! # async fn fetch(key: u32) -> u32 { key }
//! # fn spawn(_task: impl Future<Output = ()> + Send) {}
//! spawn(async {
//!     let mut cache = CACHE.lock();
//!     cache.push(fetch(7).await); // held while the task may move to another thread
//! });
//! ```
//!
//! | tokio::sync | ulocks | what differs |
//! |---|---|---|
//! | `Mutex::lock().await` | [`lock_async`](crate::task::AsyncMutex::lock_async)`().await` | a trait has it; not FIFO; [`fair::FairMutex`] is |
//! | `blocking_lock` | [`Mutex::lock`](Mutex#method.lock) | |
//! | `Mutex::const_new`, `RwLock::const_new` | [`Mutex::new`](Mutex#method.new), [`RwLock::new`](RwLock#method.new) | |
//! | `Mutex::try_lock`, `RwLock::try_read`, `RwLock::try_write` | [`Mutex::try_lock`](Mutex#method.try_lock), [`RwLock::try_read`](RwLock#method.try_read), [`RwLock::try_write`](RwLock#method.try_write) | `Option`, and no `TryLockError`; the guard stays on its thread |
//! | `lock_owned().await` | [`lock_owned_async`](crate::task::AsyncMutex::lock_owned_async)`().await` | |
//! | `blocking_lock_owned`, `try_lock_owned` | `lock_arc`, `try_lock_arc` | feature `arc_lock`; the `Arc` stays with the caller |
//! | `timeout(time, mutex.lock())` | `timeout(time, mutex.lock_async())`, [`Mutex::try_lock_for`](Mutex#method.try_lock_for) on a thread | |
//! | `MutexGuard::map`, `try_map`, `mutex` | those of [`AsyncMutexGuard`](crate::task::AsyncMutexGuard::map) and [`MutexGuard`](MutexGuard#method.map) | those of an `RwLock`, too; owned guards have no `map` |
//! | `RwLock::read().await`, `write().await` | [`read_async`]`().await`, [`write_async`]`().await` | a trait has them; in turn, and not FIFO |
//! | `blocking_read`, `blocking_write` | [`RwLock::read`](RwLock#method.read), [`RwLock::write`](RwLock#method.write) | |
//! | `read_owned().await`, `write_owned().await` | [`read_owned_async`](crate::task::AsyncRwLock::read_owned_async)`().await`, [`write_owned_async`](crate::task::AsyncRwLock::write_owned_async)`().await` | |
//! | `try_read_owned`, `try_write_owned` | `try_read_arc`, `try_write_arc` | feature `arc_lock`; the `Arc` stays with the caller |
//! | `guard.downgrade()`, `downgrade_map` | [`RwLockWriteGuard::downgrade`](RwLockWriteGuard#method.downgrade)`(guard)`, and that of [`AsyncRwLockWriteGuard`](crate::task::AsyncRwLockWriteGuard::downgrade) and [`OwnedAsyncRwLockWriteGuard`](crate::task::OwnedAsyncRwLockWriteGuard::downgrade) | a function, so that it hides no method of the data; then `map` |
//! | `RwLock::with_max_readers` | none | 131,072 readers |
//! | `Semaphore::new(usize)`, `const_new` | [`Semaphore::new`] of a `u32` | at most 1,073,741,823 permits |
//! | `acquire().await`, `acquire_many(n).await` | [`Semaphore::acquire_async`]`().await`, [`Semaphore::acquire_many_async`]`(n).await` | |
//! | `blocking_acquire`, `blocking_acquire_many` | [`Semaphore::acquire_unless_closed`], [`Semaphore::acquire_many_unless_closed`] | [`acquire`](Semaphore::acquire) returns the permit, for a semaphore that is never closed |
//! | `acquire_owned().await`, `blocking_acquire_owned`, `try_acquire_owned` and others | `acquire_owned_async().await`, `acquire_owned_unless_closed`, `try_acquire_owned` | feature `arc_lock` |
//! | `close`, `is_closed`, `AcquireError` | [`Semaphore::close`], [`Semaphore::is_closed`], [`fair::Closed`] | |
//! | `try_acquire`, `try_acquire_many` | [`Semaphore::try_acquire`], [`Semaphore::try_acquire_many`] | `Option`: [`Semaphore::is_closed`] tells why not |
//! | `timeout(time, semaphore.acquire())` | `timeout(time, semaphore.acquire_async())`, [`Semaphore::try_acquire_for`] on a thread | |
//! | `add_permits(n)` | [`Semaphore::add_permits`]`(n)`, or [`Semaphore::release`], for which too many are an error | |
//! | `forget_permits(n)` | [`Semaphore::try_acquire_many`]`(n)`, and [`Permit::forget`] | all or none |
//! | `available_permits` | [`Semaphore::available_permits`] | |
//! | `SemaphorePermit::forget`, `merge`, `split`, `num_permits` | [`Permit::forget`], [`Permit::merge`], [`Permit::split`], [`Permit::count`] | |
//! | `Notify::notify_one`, `notified().await` | [`Semaphore::release`]`(1)`, [`Semaphore::acquire`] and [`Permit::forget`] | `Notify` keeps one notification, a semaphore each |
//! | `Notify::notify_waiters` | [`Condvar::notify_all`](Condvar#method.notify_all) | with a condition under a mutex |
//! | `Barrier`, `OnceCell` | [`std::sync::Barrier`], [`std::sync::OnceLock`] | see below |
//! | `mpsc`, `oneshot`, `broadcast`, `watch` | none: keep tokio's | |
//!
//! # Barrier, Once and park
//!
//! - *`Barrier`*: std's. All threads of a phase leave it together, so there is no order to promise,
//!   no bound on a wait, and nobody to overtake.
//! - *`Once`, `OnceLock`, `LazyLock`*: std's. After the first call they are one load, and a thread
//!   waits for one at most once in its life. parking_lot's `Once` is in `ulocks-parking-lot`.
//! - *`park` and `unpark` of a thread*: [`std::thread::park`] where the waker knows the thread.
//! - *`park` and `unpark` by address*, for a lock of your own: take parking_lot_core if the state
//!   has fewer than four bytes, or if the wake-up needs a callback or a token. Its table of queues
//!   serves any address, and a second table would only be another one. Otherwise a `Futex` of
//!   `ulocks-core`: a word of four bytes, whose queue the kernel keeps. It allocates nothing, works
//!   between processes, and runs in the models. `unfair::ByteMutex` is made of the first, the other
//!   locks of the second.
//!
//! ```
//! use ulocks_core::futex::{Futex, Local};
//! use ulocks_core::sync::Ordering::{Acquire, Release};
//!
//! /// An event that happens once.
//! struct Event(Futex<Local>);
//!
//! impl Event {
//!     fn wait(&self) {
//!         while self.0.load(Acquire) == 0 {
//!             self.0.wait(0, None); // sleeps while the word is 0
//!         }
//!     }
//!
//!     fn set(&self) {
//!         let key = self.0.key();
//!         self.0.store(1, Release);
//!         key.wake(u32::MAX); // touches the key, and the event no more
//!     }
//! }
//!
//! static EVENT: Event = Event(Futex::new(0));
//! let waiters: Vec<_> = (0..3).map(|_| std::thread::spawn(|| EVENT.wait())).collect();
//! EVENT.set();
//! waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
//! ```
//!
//! [`read_async`]: crate::task::AsyncRwLock::read_async
//! [`write_async`]: crate::task::AsyncRwLock::write_async
//! [`read_in`]: crate::psrwlock::ByClass::read_in
//! [`try_read_in_for`]: crate::psrwlock::ByClass::try_read_in_for

// The names in the page above.
#[cfg(doc)]
use crate::psrwlock::Nested;
#[cfg(doc)]
use crate::{
    Condvar, MappedMutexGuard, Mutex, MutexGuard, Permit, RwLock, RwLockWriteGuard, Semaphore,
    WaitTimeoutResult, fair,
};
