//! Locks whose waiters are tasks, so that each client of a lock is one of tasks too.

use core::fmt;
use core::future::poll_fn;
use core::pin::pin;
use core::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::sync::Arc;
use ulocks_core::condvar::{Sequence, Waits, WaitsAsync, Wakeup};
use ulocks_core::futex::{Futex, Local, Waited};
use ulocks_core::raw::{
    Initial, Metered, RawMutex, RawMutexAsync, RawRwLock, RawRwLockAsync, RawRwLockDowngrade,
    RawRwLockUpgrade,
};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicU64, yield_now};
use ulocks_core::time::Deadline;

/// Whether the executor's thread was woken.
struct Alarm(Futex<Local>);

impl Alarm {
    fn ring(&self) {
        self.0.swap(1, Release);
        self.0.key().wake(1);
    }

    /// Waits until it rings; false if `deadline` passed first. If it has rung, another thread is to
    /// do something before the task can go on, perhaps.
    fn wait(&self, deadline: Option<Deadline>) -> bool {
        if self.0.swap(0, Acquire) == 1 {
            yield_now();
            return true;
        }
        while self.0.swap(0, Acquire) == 0 {
            if self.0.wait(0, deadline) == Waited::TimedOut {
                return false;
            }
        }
        true
    }
}

// `std`'s `Wake` would do, but for loom's futex, which is not `Send` by itself.
static TABLE: RawWakerVTable = RawWakerVTable::new(
    |alarm| {
        // SAFETY: the waker that is cloned owns a count of `alarm`.
        unsafe { Arc::increment_strong_count(alarm.cast::<Alarm>()) };
        RawWaker::new(alarm, &TABLE)
    },
    |alarm| {
        // SAFETY: the waker gives up its count of `alarm`.
        unsafe { Arc::from_raw(alarm.cast::<Alarm>()) }.ring();
    },
    |alarm| {
        // SAFETY: the waker owns a count of `alarm`.
        unsafe { &*alarm.cast::<Alarm>() }.ring();
    },
    |alarm| {
        // SAFETY: the waker gives up its count of `alarm`.
        drop(unsafe { Arc::from_raw(alarm.cast::<Alarm>()) });
    },
);

/// Polls `future` until it is ready; `None` if `deadline` passed first: then it is dropped.
///
/// Each poll has a waker of its own, as that of a future that goes from task to task. Before it
/// waits, it polls so many times: only the last waker is waited for.
pub fn block_on_until<F: Future>(future: F, deadline: Option<Deadline>, polls: u32) -> Option<F::Output> {
    let mut future = pin!(future);
    for poll in 1.. {
        let alarm = Arc::new(Alarm(Futex::new(0)));
        if cfg!(not(world = "machine")) {
            // A model does not know what the counts of `std`'s `Arc` order, and would report its
            // end.
            let _ = Arc::into_raw(Arc::clone(&alarm));
        }
        let data = Arc::into_raw(Arc::clone(&alarm)).cast();
        // SAFETY: `data` is a pointer of an `Arc<Alarm>`, as the functions of the table demand, and
        // they keep the contract of `RawWaker`.
        let waker = unsafe { Waker::from_raw(RawWaker::new(data, &TABLE)) };
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(value);
        }
        if poll % polls == 0 && !alarm.wait(deadline) {
            break;
        }
    }
    None
}

/// Polls `future` until it is ready.
pub fn block_on<F: Future>(future: F) -> F::Output {
    block_on_until(future, None, 1).expect("there is no deadline")
}

/// `L`, of whose acquisitions each `EVERY`th is that of a task, which polls `POLLS` times before it
/// waits. A deadline that passes drops its future.
pub struct Tasks<L, const EVERY: u32 = 1, const POLLS: u32 = 1> {
    lock: L,
    /// As wide as a lock is aligned: padding may not be freed while a release returns, by Miri.
    acquisitions: AtomicU64,
}

/// Threads and tasks by turns.
pub type Mixed<L> = Tasks<L, 2>;

/// Tasks that are polled when they were not woken.
pub type Restless<L> = Tasks<L, 1, 2>;

ulocks_core::initial!([L: Initial, const EVERY: u32, const POLLS: u32] Tasks<L, EVERY, POLLS> =
    Self { lock: ulocks_core::initial!(L), acquisitions: AtomicU64::new(0) });

impl<L, const EVERY: u32, const POLLS: u32> Tasks<L, EVERY, POLLS> {
    fn is_task(&self) -> bool {
        EVERY == 1 || self.acquisitions.fetch_add(1, Relaxed).is_multiple_of(EVERY.into())
    }
}

// SAFETY: as `L`, which does it all.
unsafe impl<L: RawMutexAsync, const EVERY: u32, const POLLS: u32> RawMutex for Tasks<L, EVERY, POLLS> {
    type Scope = L::Scope;
    type Token = L::Token;
    type Condvar = Sequence<Self>;
    const CONDVAR_NS: u32 = L::CONDVAR_NS;
    crate::passes_on! { lock: try_lock, unlock, is_locked }

    fn lock(&self) -> L::Token {
        if self.is_task() {
            block_on_until(self.lock.lock_async(), None, POLLS).expect("there is no deadline")
        } else {
            self.lock.lock()
        }
    }

    fn lock_until(&self, deadline: Deadline) -> Option<L::Token> {
        if self.is_task() {
            block_on_until(self.lock.lock_async(), Some(deadline), POLLS)
        } else {
            self.lock.lock_until(deadline)
        }
    }
}

impl<L: RawRwLockAsync, const EVERY: u32, const POLLS: u32> Tasks<L, EVERY, POLLS> {
    /// An acquisition by a task, or by a thread.
    fn acquire<T>(&self, future: impl Future<Output = T>, thread: impl FnOnce(&L) -> T) -> T {
        if self.is_task() {
            block_on_until(future, None, POLLS).expect("there is no deadline")
        } else {
            thread(&self.lock)
        }
    }

    /// The same until a deadline.
    fn acquire_until<T>(
        &self,
        deadline: Deadline,
        future: impl Future<Output = T>,
        thread: impl FnOnce(&L) -> Option<T>,
    ) -> Option<T> {
        if self.is_task() { block_on_until(future, Some(deadline), POLLS) } else { thread(&self.lock) }
    }
}

// SAFETY: as `L`, which does it all.
unsafe impl<L: RawRwLockAsync, const EVERY: u32, const POLLS: u32> RawRwLock for Tasks<L, EVERY, POLLS> {
    type Scope = L::Scope;
    type ReadToken = L::ReadToken;
    type WriteToken = L::WriteToken;
    crate::passes_on! { lock:
        fn try_read() -> Option<L::ReadToken>;
        fn try_write() -> Option<L::WriteToken>;
        fn is_locked() -> bool;
        fn is_write_locked() -> bool;
    }
    crate::passes_on! { lock:
        unsafe fn unlock_read(token: L::ReadToken);
        unsafe fn unlock_write(token: L::WriteToken);
    }

    fn read(&self) -> L::ReadToken {
        self.acquire(self.lock.read_async(), L::read)
    }

    fn read_until(&self, deadline: Deadline) -> Option<L::ReadToken> {
        self.acquire_until(deadline, self.lock.read_async(), |lock| lock.read_until(deadline))
    }

    fn write(&self) -> L::WriteToken {
        self.acquire(self.lock.write_async(), L::write)
    }

    fn write_until(&self, deadline: Deadline) -> Option<L::WriteToken> {
        self.acquire_until(deadline, self.lock.write_async(), |lock| lock.write_until(deadline))
    }
}

// SAFETY: as `L`, which does it all.
unsafe impl<L: RawRwLockAsync, const EVERY: u32, const POLLS: u32> RawRwLockDowngrade
    for Tasks<L, EVERY, POLLS>
{
    crate::passes_on! { lock: unsafe fn downgrade(token: L::WriteToken) -> L::ReadToken; }
}

// SAFETY: as `L`, which does it all.
unsafe impl<L: RawRwLockAsync, const EVERY: u32, const POLLS: u32> RawRwLockUpgrade
    for Tasks<L, EVERY, POLLS>
{
    type UpgradableToken = L::UpgradableToken;
    crate::passes_on! { lock: fn try_upgradable() -> Option<L::UpgradableToken>; }
    // `upgrade_until` too: a future that is dropped would release the lock.
    crate::passes_on! { lock:
        unsafe fn unlock_upgradable(token: L::UpgradableToken);
        unsafe fn try_upgrade(token: L::UpgradableToken) -> Result<L::WriteToken, L::UpgradableToken>;
        unsafe fn upgrade_until(token: L::UpgradableToken, deadline: Deadline)
            -> Result<L::WriteToken, L::UpgradableToken>;
        unsafe fn downgrade_upgradable(token: L::UpgradableToken) -> L::ReadToken;
        unsafe fn downgrade_to_upgradable(token: L::WriteToken) -> L::UpgradableToken;
    }

    fn upgradable(&self) -> L::UpgradableToken {
        self.acquire(self.lock.upgradable_async(), L::upgradable)
    }

    fn upgradable_until(&self, deadline: Deadline) -> Option<L::UpgradableToken> {
        self.acquire_until(deadline, self.lock.upgradable_async(), |lock| lock.upgradable_until(deadline))
    }

    unsafe fn upgrade(&self, token: L::UpgradableToken) -> L::WriteToken {
        if !self.is_task() {
            // SAFETY: the caller's contract is the callee's.
            return unsafe { self.lock.upgrade(token) };
        }
        // SAFETY: the caller's contract is the callee's.
        let future = unsafe { self.lock.upgrade_async(token) };
        block_on_until(future, None, POLLS).expect("there is no deadline")
    }
}

impl<L: Metered, const EVERY: u32, const POLLS: u32> Metered for Tasks<L, EVERY, POLLS> {
    type Meter = L::Meter;

    fn meter(&self) -> &L::Meter {
        self.lock.meter()
    }
}

/// `L`, with a condition variable of whose waits each `EVERY`th is that of a task.
pub struct Monitor<L, const EVERY: u32 = 1>(L);

ulocks_core::initial!([L: Initial, const EVERY: u32] Monitor<L, EVERY> = Self(ulocks_core::initial!(L)));

// SAFETY: as `L`, which does it all.
unsafe impl<L: RawMutexAsync, const EVERY: u32> RawMutex for Monitor<L, EVERY>
where
    L::Condvar: WaitsAsync<L>,
{
    type Scope = L::Scope;
    type Token = L::Token;
    type Condvar = MonitorCondvar<L, EVERY>;
    crate::passes_on! { 0: lock, try_lock, lock_until, unlock, is_locked }
}

/// The condition variable of a [`Monitor`].
pub struct MonitorCondvar<L: RawMutex, const EVERY: u32> {
    condvar: L::Condvar,
    waits: AtomicU64,
}

ulocks_core::initial!([L: RawMutex, const EVERY: u32] MonitorCondvar<L, EVERY> =
    Self { condvar: ulocks_core::initial!(L::Condvar), waits: AtomicU64::new(0) });

impl<L: RawMutex, const EVERY: u32> fmt::Debug for MonitorCondvar<L, EVERY> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condvar.fmt(f)
    }
}

// SAFETY: it releases the token that it is given, and returns that of an acquisition of the mutex.
unsafe impl<L: RawMutexAsync, const EVERY: u32> Waits<Monitor<L, EVERY>> for MonitorCondvar<L, EVERY>
where
    L::Condvar: WaitsAsync<L>,
{
    unsafe fn wait(
        &self,
        mutex: &Monitor<L, EVERY>,
        token: L::Token,
        deadline: Option<Deadline>,
    ) -> (L::Token, Wakeup) {
        if !self.waits.fetch_add(1, Relaxed).is_multiple_of(EVERY.into()) {
            // SAFETY: the caller's contract is the callee's.
            return unsafe { self.condvar.wait(&mutex.0, token, deadline) };
        }
        let mut token = Some(token);
        let notified = async {
            let mut notified = pin!(self.condvar.notified());
            poll_fn(|context| {
                let polled = notified.as_mut().poll(context);
                if let Some(token) = token.take() {
                    // SAFETY: the caller holds the mutex by this token.
                    unsafe { mutex.0.unlock(token) };
                }
                polled
            })
            .await;
        };
        let wakeup = match block_on_until(notified, deadline, 1) {
            Some(()) => Wakeup::Notified,
            None => Wakeup::TimedOut,
        };
        (block_on(mutex.0.lock_async()), wakeup)
    }

    fn notify_one(&self) -> bool {
        self.condvar.notify_one()
    }

    fn notify_all(&self) -> usize {
        self.condvar.notify_all()
    }
}
