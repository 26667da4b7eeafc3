//! What a child of `fork` can do with its copy of a lock: for each lock that is held by the thread
//! that forks, with and without waiters, and that is held by another thread.
//!
//! The README says which locks go on in the child. Here each of them does. The others are tried
//! once: a wait for a thread that is not there would never end.

use std::sync::{Arc, mpsc};
use std::task::{Context, Waker};
use std::time::Duration;
use ulocks::semarray::{Op, SemArray};
use ulocks::task::AsyncRwLock;
use ulocks_testkit::{Child, task};

const WAITERS: usize = 3;

/// A lock, in one of its modes.
trait Lock: Sync {
    /// What releases it when dropped.
    type Held<'a>
    where
        Self: 'a;

    fn acquire(&self) -> Self::Held<'_>;
    fn try_acquire(&self) -> Option<Self::Held<'_>>;
}

/// `Lock` for a type, or for a mode of it.
macro_rules! lock {
    ($name:ident, $lock:ty, $held:ty, $acquire:expr, $try_acquire:expr) => {
        struct $name<'l>(&'l $lock);
        impl Lock for $name<'_> {
            type Held<'a>
                = $held
            where
                Self: 'a;

            fn acquire(&self) -> Self::Held<'_> {
                $acquire(self.0)
            }

            fn try_acquire(&self) -> Option<Self::Held<'_>> {
                $try_acquire(self.0)
            }
        }
    };
}

macro_rules! mutex {
    ($name:ident, $lock:ty, $held:ty) => {
        lock!($name, $lock, $held, <$lock>::lock, <$lock>::try_lock);
    };
}

mutex!(Throughput, ulocks::Mutex<()>, ulocks::MutexGuard<'a, ()>);
mutex!(Unfair, ulocks::unfair::BargingMutex<()>, ulocks::unfair::BargingMutexGuard<'a, ()>);
mutex!(Asym, ulocks::unfair::AsymMutex<()>, ulocks::unfair::AsymMutexGuard<'a, ()>);
#[cfg(feature = "parking_lot")]
mutex!(Byte, ulocks::unfair::ByteMutex<()>, ulocks::unfair::ByteMutexGuard<'a, ()>);
mutex!(Calock, ulocks::calock::Calock<()>, ulocks::calock::CalockGuard<'a, ()>);
mutex!(Fair, ulocks::fair::FairMutex<()>, ulocks::fair::FairMutexGuard<'a, ()>);
lock!(
    Write,
    ulocks::RwLock<()>,
    ulocks::RwLockWriteGuard<'a, ()>,
    ulocks::RwLock::write,
    ulocks::RwLock::try_write
);
lock!(
    Read,
    ulocks::RwLock<()>,
    ulocks::RwLockReadGuard<'a, ()>,
    ulocks::RwLock::read,
    ulocks::RwLock::try_read
);
lock!(
    Permit,
    ulocks::Semaphore,
    ulocks::fair::Permit<'a>,
    ulocks::Semaphore::acquire,
    ulocks::Semaphore::try_acquire
);
lock!(Set, SemArray, ulocks::semarray::Permit<'a>, permit, try_permit);

fn permit(array: &SemArray) -> ulocks::semarray::Permit<'_> {
    array.acquire(Op::sub(0, 1)).unwrap()
}

fn try_permit(array: &SemArray) -> Option<ulocks::semarray::Permit<'_>> {
    array.try_acquire(Op::sub(0, 1)).ok()
}

/// What a child has found, and the number that it ends with. A child that panics ends with 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// An attempt failed.
    Locked = 2,
    /// An attempt got the lock.
    Free = 3,
}

/// Runs `body` in a child.
fn child(body: impl FnOnce() -> Found) -> Found {
    let child = Child::runs(|| {
        let found = body();
        // SAFETY: ends the child.
        unsafe { libc::_exit(found as i32) }
    });
    let status = child.waited();
    let ends = [Found::Locked, Found::Free].into_iter().find(|end| (*end as i32) << 8 == status);
    ends.unwrap_or_else(|| panic!("the child has failed: {status:#x}"))
}

/// What a child finds that releases what this thread holds of `held`, while `waiters` threads wait
/// for `wanted`, a mode of the same lock. If the child is to go on, it uses both.
fn held_by_the_forking_thread<H: Lock, W: Lock>(
    held: &H,
    wanted: &W,
    waiters: usize,
    goes_on: bool,
) -> Found {
    let mut holding = Some(held.acquire());
    std::thread::scope(|scope| {
        let (here, threads) = mpsc::channel();
        for _ in 0..waiters {
            let here = here.clone();
            scope.spawn(move || {
                here.send(task::id()).unwrap();
                drop(wanted.acquire());
            });
        }
        task::until_asleep(&threads.iter().take(waiters).collect::<Vec<_>>());
        let found = child(|| {
            drop(holding.take());
            let found = if held.try_acquire().is_some() { Found::Free } else { Found::Locked };
            for _ in 0..if goes_on { 3 } else { 0 } {
                drop(held.acquire());
                drop(wanted.acquire());
            }
            found
        });
        drop(holding.take()); // Or the waiters of this process wait for ever.
        found
    })
}

/// What a child finds while another thread holds the lock.
fn held_by_another_thread<L: Lock>(lock: &L) -> Found {
    std::thread::scope(|scope| {
        let (holds, held) = mpsc::channel();
        let (over, end) = mpsc::channel::<()>();
        scope.spawn(move || {
            let holding = lock.acquire();
            holds.send(()).unwrap();
            let _ = end.recv();
            drop(holding);
        });
        held.recv().expect("the other thread holds the lock");
        let found = child(|| if lock.try_acquire().is_some() { Found::Free } else { Found::Locked });
        drop(over);
        found
    })
}

/// What a child finds that uses a lock after another thread, which still lives.
fn used_by_another_thread<L: Lock>(lock: &L) -> Found {
    std::thread::scope(|scope| {
        let (uses, used) = mpsc::channel();
        let (over, end) = mpsc::channel::<()>();
        scope.spawn(move || {
            (0..100).for_each(|_| drop(lock.acquire()));
            uses.send(()).unwrap();
            let _ = end.recv();
        });
        used.recv().expect("the other thread uses the lock");
        let found = child(|| {
            (0..3).for_each(|_| drop(lock.acquire()));
            Found::Free
        });
        drop(over);
        found
    })
}

/// The cases of a lock. With waiters a child goes on, or may not use the lock.
fn check<L: Lock>(lock: &L, goes_on_with_waiters: bool) {
    assert_eq!(used_by_another_thread(lock), Found::Free, "used by another thread before");
    assert_eq!(held_by_another_thread(lock), Found::Locked, "held by another thread");
    for waiters in if goes_on_with_waiters { &[0, WAITERS][..] } else { &[0] } {
        let found = held_by_the_forking_thread(lock, lock, *waiters, true);
        assert_eq!(found, Found::Free, "with {waiters} waiters");
    }
}

#[test]
fn unfair_mutex_goes_on_also_with_waiters() {
    check(&Unfair(&ulocks::unfair::BargingMutex::new(())), true);
}

#[test]
fn asym_mutex_goes_on_also_with_waiters() {
    check(&Asym(&ulocks::unfair::AsymMutex::new(())), true);
}

/// With waiters the child may not use it, nor any of the following.
#[test]
fn throughput_mutex_goes_on_without_waiters() {
    check(&Throughput(&ulocks::Mutex::new(())), false);
}

#[cfg(feature = "parking_lot")]
#[test]
fn byte_mutex_goes_on_without_waiters() {
    check(&Byte(&ulocks::unfair::ByteMutex::new(())), false);
}

#[test]
fn calock_goes_on_without_waiters() {
    check(&Calock(&ulocks::calock::Calock::new(())), false);
}

#[test]
fn fair_mutex_goes_on_without_waiters() {
    check(&Fair(&ulocks::fair::FairMutex::new(())), false);
}

#[test]
fn semaphore_goes_on_without_waiters() {
    check(&Permit(&ulocks::Semaphore::new(1)), false);
}

#[test]
fn semarray_goes_on_without_waiters() {
    check(&Set(&SemArray::with_values([1])), false);
}

#[test]
fn rwlock_with_waiters_of_the_other_kind_stays_locked() {
    let lock = ulocks::RwLock::new(());
    let (read, write) = (Read(&lock), Write(&lock));
    check(&write, false);
    assert_eq!(held_by_the_forking_thread(&read, &write, 0, true), Found::Free, "a reader alone");
    assert_eq!(held_by_the_forking_thread(&read, &write, WAITERS, false), Found::Locked);
    assert_eq!(held_by_the_forking_thread(&write, &read, WAITERS, false), Found::Locked);
    // Another reader is one that never leaves: the child can read, and not write.
    let held = held_by_another_thread(&write);
    assert_eq!(held, Found::Locked);
    assert_eq!(held_by_another_thread(&read), Found::Free);
}

/// The child holds nothing, whoever held it in the parent.
#[test]
fn pi_mutex_stays_with_the_thread_of_the_parent() {
    let mutex = ulocks::pi::PiMutex::new(());
    let mut holding = Some(mutex.lock().unwrap());
    let found = child(|| {
        drop(holding.take());
        let is_free = mutex.try_lock().unwrap().is_some();
        // The kernel lets the child wait for the other process's thread, or refuses at once.
        let waited = mutex.try_lock_for(Duration::from_millis(10));
        let is_refused = matches!(waited, Ok(None) | Err(ulocks::pi::PiLockError::Inconsistent));
        if is_free || !is_refused { Found::Free } else { Found::Locked }
    });
    assert_eq!(found, Found::Locked);
    drop(holding.take());
    let found = child(|| if mutex.try_lock().unwrap().is_some() { Found::Free } else { Found::Locked });
    assert_eq!(found, Found::Free, "nobody held it");
}

/// The list in which a future sleeps may be locked by another thread when the process forks. The
/// child may drop its copy all the same, and release what it holds.
#[test]
fn a_future_of_the_parent_is_dropped_by_the_child() {
    static LOCK: ulocks::RwLock<()> = ulocks::RwLock::new(());
    // The other thread ends when this is gone, also if the test fails.
    let ends = Arc::new(());
    let waits = || {
        let mut future = Box::pin(LOCK.write_async());
        assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        future
    };
    let mut held = Some(LOCK.write());
    // It locks the list all the time.
    let others = {
        let ends = Arc::downgrade(&ends);
        std::thread::spawn(move || {
            while ends.upgrade().is_some() {
                drop(waits());
            }
        })
    };
    for _ in 0..300 {
        let mut future = Some(waits());
        let found = child(|| {
            drop(future.take());
            drop(held.take());
            Found::Free
        });
        assert_eq!(found, Found::Free);
    }
    drop(ends);
    others.join().unwrap();
    drop(held);
    assert!(LOCK.try_write().is_some());
}
