//! Acquisitions of a task: `lock_async`, `read_async` and `write_async`, and what they return.
//!
//! Threads and tasks wait for one lock in one queue. A mutex whose raw lock is [`RawMutexAsync`]
//! has the methods of [`AsyncMutex`] beside those that block. So has a reader-writer lock those of
//! [`AsyncRwLock`]. Nothing here belongs to a runtime. What is said of a mutex is so for both.
//!
//! # Fairness
//! A waiter has its place in the queue whether it is a thread or a task. A fair mutex serves in the
//! order of arrival. A future arrives when it is polled first, not when it is made. On a mutex that
//! is not fair, others may overtake a task that was woken and found the mutex taken, until the
//! bound of the mutex has passed since. If the task is polled after that, and finds the mutex taken
//! again, the next release hands over. Each wait in a bound includes what an executor takes to
//! poll.
//!
//! A waiter that is served has to run. A task that has the mutex, or is about to, keeps all others
//! waiting until its executor polls it. So a thread of that executor that blocks for the same mutex
//! may wait for itself: in a task, use `lock_async`.
//!
//! # Blocking
//! The first poll, and one that was woken to contend, may spin for
//! [`WOKEN_NS`](crate::spin::Spin::WOKEN_NS) of the policy at a time, 2 us by default, and not at
//! all with [`NoSpin`](crate::spin::NoSpin). In a queue in order that is so only if nobody waits. A
//! task of a `SemArray` never spins for its set. A poll may wait for a thread that changes the
//! queue at the same moment, until that runs. So may the drop of a future that waits.
//!
//! # Cancellation
//! A future may be dropped at any moment, before and after it is polled. Its waiter leaves the
//! queue as one whose time is up. If the mutex was handed over to it meanwhile, the drop releases
//! it: no wake-up is lost. The next acquisition has a new place. So a deadline is the timer of the
//! caller's runtime, which drops the future.
//!
//! A future that was polled and is neither polled again nor dropped keeps its place. Once it is
//! first, all others wait behind it, for ever if it was forgotten. If a reader-writer lock or the
//! condition variable of a fair mutex is moved then, a wake-up of another one that comes to its
//! place may be lost. Beside a forgotten future no thread may free the mutex while another one
//! releases it, as unsafe code may otherwise.
//!
//! # Many tasks
//! A task that leaves a mutex or its condition variable looks at no other one, unless another
//! thread works on the queue just then. The tasks of a reader-writer lock sleep in one of 64 lists
//! of the process, by the address of the lock. So do tasks that wait on the condition variable of a
//! fair mutex. A wake-up there looks at the tasks in its list one after the other, also at those of
//! other locks.
//!
//! The condition variable of a fair mutex counts 65,535 waiters. A task that waits beside so many
//! lets other tasks run once, and goes on as if it was notified.
//!
//! # Wakers
//! Wakers are called when nothing is left to do for other waiters, without a lock of ours. Any
//! operation on the lock may call them: a release, but also `try_lock`, the drop of another future,
//! a poll, a wait that gives up. So do not hold there what a waker takes. One that blocks keeps its
//! caller from what it does, and all that wait for that. The caller may have acquired a
//! reader-writer lock, and not returned with it yet. One that panics harms nobody: the panic hook
//! says so, and its caller goes on. One that drops futures releases what they were given, inside of
//! the release that has called it. Thousands that do so one out of the other overflow the stack.
//!
//! # Panics
//! If a future is polled after it was ready.
//!
//! # Process-shared
//! No. A future is a place in the queue of one process. Two copies of this crate in one process, as
//! in two shared libraries, have lists of their own. So they must not share a reader-writer lock,
//! nor the condition variable of a fair mutex if tasks wait on it: the wake-up would be lost.
//!
//! # Signals and forks
//! A signal handler may not release where tasks wait: it would call a waker. A child of `fork` may
//! not poll a future that its parent has polled, as it may not wait by a thread of its parent. It
//! may drop one if no thread was in a call of the same lock when it forked. Otherwise the drop may
//! wait for that thread, which the child does not have. Forget the future then.
//!
//! # Examples
//! A task and a thread take turns:
//! ```
//! use std::sync::Arc;
//! use ulocks_core::Private;
//! use ulocks_core::api::Mutex;
//! use ulocks_core::queue::{InOrder, QueueMutex};
//! use ulocks_core::task::AsyncMutex;
//! # fn block_on<F: Future>(future: F) -> F::Output {
//! #     struct Unpark(std::thread::Thread);
//! #     impl std::task::Wake for Unpark { fn wake(self: Arc<Self>) { self.0.unpark() } }
//! #     let waker = Arc::new(Unpark(std::thread::current())).into();
//! #     let mut context = std::task::Context::from_waker(&waker);
//! #     let mut future = std::pin::pin!(future);
//! #     loop {
//! #         if let std::task::Poll::Ready(value) = future.as_mut().poll(&mut context) { return value }
//! #         std::thread::park();
//! #     }
//! # }
//!
//! // As `ulocks_fair::FairMutex` is declared.
//! let mutex: Mutex<QueueMutex<Private, InOrder>, u32> = Mutex::new(0);
//! std::thread::scope(|scope| {
//!     scope.spawn(|| *mutex.lock() += 1);
//!     scope.spawn(|| {
//!         block_on(async {
//!             let mut guard = mutex.lock_async().await;
//!             *guard += 1;
//!         })
//!     });
//! });
//! assert_eq!(*mutex.lock(), 2);
//! ```

use crate::lock::api::{Condvar, MappedMutexGuard, Mutex, MutexGuard, lock_with, wait_with};
use crate::lock::condvar::{RawCondvar, WaitsAsync};
use crate::lock::traits::{RawMutex, RawMutexAsync};
use crate::sys::sync::is_abandoned;
use core::convert::Infallible;
use core::fmt;
use core::future::poll_fn;
use core::ops::{Deref, DerefMut};
use core::pin::{Pin, pin};
use core::task::{Context, Poll, ready};
use std::sync::Arc;

#[macro_use]
mod guard;
mod rwlock;

#[doc(hidden)]
pub use rwlock::read_guard;
pub use rwlock::{
    AsyncRwLock, AsyncRwLockReadGuard, AsyncRwLockUpgradableReadGuard, AsyncRwLockWriteGuard,
    MappedAsyncRwLockReadGuard, MappedAsyncRwLockWriteGuard, OwnedAsyncRwLockReadGuard,
    OwnedAsyncRwLockWriteGuard, ReadAsync, ReadOwnedAsync, UpgradableAsync, UpgradeAsync, WriteAsync,
    WriteOwnedAsync,
};

mod sealed {
    use crate::lock::api::{Condvar, Mutex};
    use crate::lock::traits::RawMutex;

    pub trait Sealed {}
    impl<L: RawMutex, T: ?Sized> Sealed for Mutex<L, T> {}
    impl<L: RawMutex> Sealed for Condvar<L> {}
}

/// Acquisitions of a [`Mutex`] by a task. What they have in common is told in the [module](self).
pub trait AsyncMutex: sealed::Sealed {
    /// The lock without its data.
    type Lock: RawMutexAsync;
    /// What the lock protects.
    type Data: ?Sized;

    /// Acquires the lock. The future waits in the queue of all waiters, and may be dropped at any
    /// moment.
    fn lock_async(&self) -> LockAsync<'_, Self::Lock, Self::Data>;

    /// As [`lock_async`](Self::lock_async), of a mutex of which the future, and then the guard, own
    /// a share.
    fn lock_owned_async(self: Arc<Self>) -> LockOwnedAsync<Self::Lock, Self::Data>
    where
        Self::Lock: 'static,
        Self::Data: 'static;
}

impl<L: RawMutexAsync, T: ?Sized> AsyncMutex for Mutex<L, T> {
    type Lock = L;
    type Data = T;

    #[inline]
    #[track_caller]
    fn lock_async(&self) -> LockAsync<'_, L, T> {
        // SAFETY: the lock is acquired, which disturbs no guard.
        LockAsync { raw: unsafe { self.raw() }.inner().lock_async(), mutex: self }
    }

    #[track_caller]
    fn lock_owned_async(self: Arc<Self>) -> LockOwnedAsync<L, T>
    where
        L: 'static,
        T: 'static,
    {
        // SAFETY: the share lives as long as the future, and is dropped after it; what it owns does
        // not move.
        let mutex: &'static Self = unsafe { &*Arc::as_ptr(&self) };
        LockOwnedAsync { future: mutex.lock_async(), mutex: self }
    }
}

/// Waits of a task on a [`Condvar`]. What they have in common with acquisitions is told in the
/// [module](self).
///
/// The condition variables of all mutexes that tasks wait for have it.
pub trait AsyncCondvar: sealed::Sealed {
    /// The lock of the mutexes.
    type Lock: RawMutexAsync;

    /// Releases the mutex, waits until notified, and acquires the mutex again. May end spuriously.
    ///
    /// The task is queued on the condition variable before it releases the mutex, both when it is
    /// polled first. A notification is not missed then. If the future is dropped after it was
    /// notified, it passes that on, to the waiter that has waited longest. The condition variable
    /// of a fair mutex tells all.
    ///
    /// # Examples
    /// ```
    /// use ulocks_core::api::{Condvar, Mutex};
    /// use ulocks_core::condvar::WaitsAsync;
    /// use ulocks_core::raw::RawMutexAsync;
    /// use ulocks_core::task::{AsyncCondvar, AsyncMutex};
    ///
    /// async fn take<L>(items: &Mutex<L, Vec<u32>>, changed: &Condvar<L>) -> u32
    /// where
    ///     L: RawMutexAsync<Token = (), Condvar: WaitsAsync<L>>,
    /// {
    ///     let mut items = items.lock_async().await;
    ///     loop {
    ///         if let Some(item) = items.pop() {
    ///             return item;
    ///         }
    ///         items = changed.wait_async(items).await;
    ///     }
    /// }
    /// ```
    fn wait_async<'a, T: ?Sized + Send>(
        &'a self,
        guard: AsyncMutexGuard<'a, Self::Lock, T>,
    ) -> impl Future<Output = AsyncMutexGuard<'a, Self::Lock, T>>;
}

impl<L: RawMutexAsync<Token = ()>> AsyncCondvar for Condvar<L>
where
    L::Condvar: WaitsAsync<L>,
{
    type Lock = L;

    async fn wait_async<'a, T: ?Sized + Send>(
        &'a self,
        guard: AsyncMutexGuard<'a, L, T>,
    ) -> AsyncMutexGuard<'a, L, T> {
        let mutex = AsyncMutexGuard::mutex(&guard);
        let (mut guard, mut notified) = (Some(guard), pin!(self.raw().inner().waits().notified()));
        poll_fn(|context| {
            let polled = notified.as_mut().poll(context);
            // The first poll has queued it.
            if let Some(AsyncMutexGuard { guard }) = guard.take() {
                unlock_to_wait(guard);
            }
            polled
        })
        .await;
        // A task that is dropped here has been notified, and does not look.
        let passes_on = PassesOn(self.raw().inner());
        let guard = mutex.lock_async().await;
        core::mem::forget(passes_on);
        guard
    }
}

/// Releases the mutex as a thread does that is about to wait.
fn unlock_to_wait<L: RawMutex<Token = ()>, T: ?Sized>(guard: MutexGuard<'_, L, T>) {
    // SAFETY: the caller holds the mutex by the guard, whose token is nothing. The wait is called
    // once, and fails: it does not hold the mutex then.
    let released = unsafe {
        wait_with(guard, |mutex| {
            mutex.unlock_to_wait(());
            Err::<(), _>(())
        })
    };
    debug_assert!(released.is_err());
}

/// Passes a notification on when it is dropped.
struct PassesOn<'a, L: RawMutex<Condvar: WaitsAsync<L>>>(&'a RawCondvar<L>);

impl<L: RawMutex<Condvar: WaitsAsync<L>>> Drop for PassesOn<'_, L> {
    fn drop(&mut self) {
        if !is_abandoned() {
            self.0.waits().pass_on();
        }
    }
}

/// The future of [`lock_async`](AsyncMutex::lock_async).
#[must_use = "a future does nothing unless it is polled"]
pub struct LockAsync<'a, L: RawMutexAsync + 'a, T: ?Sized> {
    raw: L::LockAsync<'a>,
    mutex: &'a Mutex<L, T>,
}

impl<'a, L: RawMutexAsync, T: ?Sized> Future for LockAsync<'a, L, T> {
    type Output = AsyncMutexGuard<'a, L, T>;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: `raw` is not moved until it is dropped in its place.
        let (raw, mutex) = unsafe {
            let this = self.get_unchecked_mut();
            (Pin::new_unchecked(&mut this.raw), this.mutex)
        };
        let token = ready!(raw.poll(context));
        // SAFETY: the token is of an acquisition of this lock, which makes no other guard.
        let guard = unsafe { lock_with(mutex, |_| Ok::<_, Infallible>(token)) };
        Poll::Ready(AsyncMutexGuard { guard: guard.unwrap_or_else(|never| match never {}) })
    }
}

/// The future of [`lock_owned_async`](AsyncMutex::lock_owned_async).
#[must_use = "a future does nothing unless it is polled"]
pub struct LockOwnedAsync<L: RawMutexAsync + 'static, T: ?Sized + 'static> {
    // Dropped before the mutex.
    future: LockAsync<'static, L, T>,
    mutex: Arc<Mutex<L, T>>,
}

impl<L: RawMutexAsync, T: ?Sized> Future for LockOwnedAsync<L, T> {
    type Output = OwnedAsyncMutexGuard<L, T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mutex = Arc::clone(&self.mutex);
        // SAFETY: `future` is not moved until it is dropped in its place.
        let future = unsafe { self.map_unchecked_mut(|this| &mut this.future) };
        future.poll(context).map(|guard| OwnedAsyncMutexGuard { guard, mutex })
    }
}

impl<L: RawMutexAsync, T: ?Sized> fmt::Debug for LockOwnedAsync<L, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LockOwnedAsync { .. }")
    }
}

impl<'a, L: RawMutexAsync, T: ?Sized> fmt::Debug for LockAsync<'a, L, T>
where
    L::LockAsync<'a>: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.raw.fmt(f)
    }
}

/// Access to the data of a [`Mutex`] that a task has acquired; its drop releases the lock.
///
/// Unlike a [`MutexGuard`] it may be sent to another thread, if the data may: it can be held across
/// an `.await`.
///
/// # Examples
/// ```
/// use ulocks_core::api::Mutex;
/// use ulocks_core::raw::RawMutexAsync;
/// use ulocks_core::task::{AsyncMutex, AsyncMutexGuard, MappedAsyncMutexGuard};
///
/// /// The first job, if there is one, with the list locked.
/// async fn first<L: RawMutexAsync>(
///     jobs: &Mutex<L, Vec<String>>,
/// ) -> Option<MappedAsyncMutexGuard<'_, L, String>> {
///     let jobs = jobs.lock_async().await;
///     AsyncMutexGuard::try_map(jobs, |jobs| jobs.first_mut()).ok()
/// }
/// ```
#[must_use = "if unused the lock will immediately unlock"]
#[clippy::has_significant_drop]
pub struct AsyncMutexGuard<'a, L: RawMutexAsync, T: ?Sized> {
    guard: MutexGuard<'a, L, T>,
}

// SAFETY: what a `MutexGuard` keeps on its thread is the release, and `RawMutexAsync` allows that
// on another one. The data goes along, and the lock is shared.
unsafe impl<L: RawMutexAsync + Sync, T: ?Sized + Send> Send for AsyncMutexGuard<'_, L, T> where L::Token: Send {}

impl<'a, L: RawMutexAsync, T: ?Sized> AsyncMutexGuard<'a, L, T> {
    /// The mutex whose guard this is.
    pub fn mutex(s: &Self) -> &'a Mutex<L, T> {
        MutexGuard::<L, T>::mutex(&s.guard)
    }
}

/// As [`AsyncMutexGuard`], and owns a share of the mutex.
#[must_use = "if unused the lock will immediately unlock"]
#[clippy::has_significant_drop]
pub struct OwnedAsyncMutexGuard<L: RawMutexAsync + 'static, T: ?Sized + 'static> {
    // Dropped before the mutex.
    guard: AsyncMutexGuard<'static, L, T>,
    mutex: Arc<Mutex<L, T>>,
}

impl<L: RawMutexAsync, T: ?Sized> OwnedAsyncMutexGuard<L, T> {
    /// The mutex whose guard this is.
    pub fn mutex(s: &Self) -> &Arc<Mutex<L, T>> {
        &s.mutex
    }
}

mapped!(
    AsyncMutexGuard(MutexGuard) -> MappedAsyncMutexGuard(MappedMutexGuard), mut;
    RawMutexAsync<Token>, Send
);
access!(mut AsyncMutexGuard<'_, RawMutexAsync>);
access!(mut OwnedAsyncMutexGuard<RawMutexAsync>);

#[cfg(all(test, world = "machine"))]
mod tests {
    use super::*;
    use crate::Private;
    use crate::lock::condvar::Sequence;
    use crate::lock::policy::Policy;
    use crate::lock::queue::{HandOff, QueueMutex};
    use crate::sys::sync::{AtomicU32, Ordering::Relaxed};
    use crate::sys::time::Deadline;
    use core::task::Waker;

    type Raw = QueueMutex<Private, HandOff>;

    /// A mutex that counts releases by threads and tasks that are about to wait.
    struct Counts {
        raw: Raw,
        to_wait: AtomicU32,
    }

    crate::initial!([] Counts = Self { raw: Raw::new(), to_wait: AtomicU32::new(0) });

    // SAFETY: as the mutex inside, which does the work.
    unsafe impl RawMutex for Counts {
        type Scope = <Private as Policy>::Scope;
        type Token = ();
        type Condvar = Sequence<Self>;

        fn lock(&self) {
            self.raw.lock();
        }

        fn try_lock(&self) -> Option<()> {
            self.raw.try_lock()
        }

        fn lock_until(&self, deadline: Deadline) -> Option<()> {
            self.raw.lock_until(deadline)
        }

        unsafe fn unlock(&self, (): ()) {
            // SAFETY: the caller's promise.
            unsafe { self.raw.unlock(()) };
        }

        unsafe fn unlock_to_wait(&self, (): ()) {
            self.to_wait.fetch_add(1, Relaxed);
            // SAFETY: the caller's promise.
            unsafe { self.raw.unlock_to_wait(()) };
        }

        fn is_locked(&self) -> bool {
            self.raw.is_locked()
        }
    }

    // SAFETY: as the mutex inside.
    unsafe impl RawMutexAsync for Counts {
        type LockAsync<'a> = <Raw as RawMutexAsync>::LockAsync<'a>;

        fn lock_async(&self) -> Self::LockAsync<'_> {
            self.raw.lock_async()
        }
    }

    #[test]
    fn a_task_that_waits_on_a_condition_releases_as_one_that_waits() {
        let (mutex, condvar) = (Mutex::<Counts, u32>::new(0), Condvar::<Counts>::new());
        let mut wait = pin!(async {
            let guard = mutex.lock_async().await;
            drop(condvar.wait_async(guard).await);
        });
        let mut context = Context::from_waker(Waker::noop());
        assert!(wait.as_mut().poll(&mut context).is_pending());
        // SAFETY: the lock is looked at only.
        let raw = unsafe { mutex.raw() }.inner();
        assert_eq!((raw.to_wait.load(Relaxed), raw.is_locked()), (1, false));
        condvar.notify_one();
        assert!(wait.as_mut().poll(&mut context).is_ready());
        assert_eq!((raw.to_wait.load(Relaxed), raw.is_locked()), (1, false));
    }
}
