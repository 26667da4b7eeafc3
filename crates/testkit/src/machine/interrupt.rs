//! Waits that a signal handler ends, for each kind of lock. Signals are sent to a waiter until it
//! has returned, so no client looks at a clock. The handler is installed with `SA_RESTART`, as most
//! are.
//!
//! `SIGUSR2` belongs to this module in a test program that uses it.

use super::limit::until;
use super::task;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};
use std::thread;
use std::time::Duration;
use ulocks_core::api::{Condvar, Mutex, RwLock};
use ulocks_core::interrupt::{
    Interrupted, InterruptibleCondvar, InterruptibleMutex, InterruptibleRwLock, InterruptibleUpgrade,
    WaitError,
};
use ulocks_core::raw::{RawInterruptible, RawMutex, RawRwLockUpgrade};
use ulocks_core::time::{Clock, Deadline};

extern "C" fn nothing(_: libc::c_int) {}

fn install() {
    static ONCE: Once = Once::new();
    // SAFETY: the handler does nothing.
    ONCE.call_once(|| unsafe { task::handle(libc::SIGUSR2, nothing, libc::SA_RESTART) });
}

/// Runs `wait` in a thread that is sent signals until `wait` has returned.
///
/// # Panics
/// If `wait` does, or does not return within the limit of `until`.
pub fn struck<R: Send>(wait: impl FnOnce() -> R + Send) -> R {
    install();
    let (returned, sent) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let (id, waiter) = task::begun(scope, || {
            let result = wait();
            returned.store(true, Release);
            // No signal is sent to a thread that has ended.
            until("the last signal is sent", || sent.load(Acquire));
            result
        });
        until("a handler ends the wait", || {
            task::signal(id, libc::SIGUSR2);
            returned.load(Acquire)
        });
        sent.store(true, Release);
        waiter.join().expect("the waiter panicked")
    })
}

/// Runs `beside` while a thread sleeps in `wait`, which goes on after the handlers that strike it
/// before. Returns when both have.
fn beside_a_patient_waiter(wait: impl FnOnce() + Send, beside: impl FnOnce()) {
    install();
    thread::scope(|scope| {
        let (id, waiter) = task::begun(scope, wait);
        for _ in 0..3 {
            task::until_asleep(&[id]);
            task::signal(id, libc::SIGUSR2);
        }
        task::until_asleep(&[id]);
        beside();
        waiter.join().expect("the waiter panicked");
    });
}

/// Deadlines that do not pass during the test, on each clock.
fn far() -> [Deadline; 3] {
    let later = |clock| Deadline::after_on(clock, Duration::from_secs(3600));
    [Deadline::NEVER, later(Clock::Monotonic), later(Clock::Realtime)]
}

/// Deadlines that have passed.
fn past() -> [Deadline; 2] {
    [Clock::Monotonic, Clock::Realtime].map(|clock| Deadline::new(clock, Duration::ZERO))
}

/// What is asked of one way to wait, by its two forms, while a thread stands in its way.
fn gives_up(
    wait: impl Fn() -> Result<(), Interrupted> + Sync,
    wait_until: impl Fn(Deadline) -> Result<(), WaitError> + Sync,
) {
    assert_eq!(struck(&wait), Err(Interrupted));
    for far in far() {
        assert_eq!(struck(|| wait_until(far)), Err(WaitError::Interrupted));
    }
    for past in past() {
        assert_eq!(wait_until(past), Err(WaitError::TimedOut));
        assert_eq!(wait_until(past.interruptible()), Err(WaitError::TimedOut));
    }
}

/// Handlers end waits for a held mutex; a waiter that no handler ends, and those that come later,
/// get it all the same.
///
/// # Panics
/// If the property fails.
pub fn mutex<L: RawMutex + RawInterruptible + Send + Sync>()
where
    L::Token: Sync,
{
    let mutex = Mutex::<L, usize>::new(0);
    let wait = || mutex.lock_interruptible().map(|mut count| *count += 1);
    let wait_until = |deadline| mutex.lock_interruptible_until(deadline).map(|mut count| *count += 1);
    let held = mutex.lock();
    gives_up(wait, wait_until);
    beside_a_patient_waiter(
        || *mutex.lock() += 1,
        || {
            gives_up(wait, wait_until);
            drop(held);
        },
    );
    // A signal that comes before or after is nothing to an acquisition.
    for _ in 0..10 {
        until("the lock is had between signals", || struck(wait).is_ok());
        assert_eq!(past().map(wait_until), [Ok(()); 2], "a free lock is acquired whatever the deadline");
    }
    assert!(!mutex.is_locked());
    assert_eq!(mutex.into_inner(), 31, "updates were lost");
}

/// Handlers end waits of readers and writers; a writer that no handler ends, and those that come
/// later, get the lock all the same.
///
/// # Panics
/// If the property fails.
pub fn rwlock<L: RawRwLockUpgrade + RawInterruptible + Send + Sync>() {
    let rwlock = RwLock::<L, usize>::new(0);
    let read = || rwlock.read_interruptible().map(drop);
    let read_until = |deadline| rwlock.read_interruptible_until(deadline).map(drop);
    let write = || rwlock.write_interruptible().map(|mut count| *count += 1);
    let write_until = |deadline| rwlock.write_interruptible_until(deadline).map(|mut count| *count += 1);
    let upgradable = || rwlock.upgradable_read_interruptible().map(drop);
    let upgradable_until = |deadline| rwlock.upgradable_read_interruptible_until(deadline).map(drop);
    let writer = || *rwlock.write() += 1;

    let held = rwlock.write();
    gives_up(read, read_until);
    gives_up(write, write_until);
    gives_up(upgradable, upgradable_until);
    beside_a_patient_waiter(writer, || {
        gives_up(write, write_until);
        gives_up(read, read_until);
        drop(held);
    });
    let held = rwlock.read();
    gives_up(write, write_until);
    assert_eq!(read(), Ok(()), "writers that gave up keep readers out");
    beside_a_patient_waiter(writer, || {
        gives_up(write, write_until);
        drop(held);
    });
    let held = rwlock.upgradable_read();
    gives_up(write, write_until);
    gives_up(upgradable, upgradable_until);
    assert_eq!(read(), Ok(()), "writers that gave up keep readers out");
    drop(held);
    for _ in 0..10 {
        until("the lock is had between signals", || struck(write).is_ok());
        until("the lock is had between signals", || struck(read).is_ok());
        until("the lock is had between signals", || struck(upgradable).is_ok());
        assert_eq!(past().map(write_until), [Ok(()); 2]);
        assert_eq!(past().map(read_until), [Ok(()); 2]);
        assert_eq!(past().map(upgradable_until), [Ok(()); 2]);
    }
    assert!(!rwlock.is_locked());
    assert_eq!(rwlock.into_inner(), 32, "updates were lost");
}

/// Handlers end waits for a notification; the mutex is held then, and a notification reaches the
/// waiter that no handler ends.
///
/// # Panics
/// If the property fails.
pub fn condvar<L: RawMutex + Send + Sync>()
where
    L::Token: Sync,
{
    let (mutex, changed) = (Mutex::<L, usize>::new(0), Condvar::<L>::new());
    // A wait may end spuriously.
    let wait = || {
        let mut count = mutex.lock();
        while *count < 2 {
            changed.wait_interruptible(&mut count)?;
        }
        Ok(())
    };
    let wait_until = |deadline| {
        let mut count = mutex.lock();
        while *count < 2 {
            changed.wait_interruptible_until(&mut count, deadline)?;
        }
        Ok(())
    };
    gives_up(wait, wait_until);
    let patient = || {
        let mut count = mutex.lock();
        while *count == 0 {
            changed.wait(&mut count);
        }
        *count += 1;
    };
    beside_a_patient_waiter(patient, || {
        gives_up(wait, wait_until);
        *mutex.lock() += 1;
        changed.notify_one();
    });
    assert_eq!((wait(), mutex.into_inner()), (Ok(()), 2));
}
