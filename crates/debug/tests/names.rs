//! The names of `checked` are the plain locks in release builds, and the checked ones in others.

#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::any::TypeId;
use std::panic::{RefUnwindSafe, UnwindSafe};
use ulocks_testkit as _;

/// They may be used across `catch_unwind` in both.
const _: fn() = || {
    fn mutex<T: UnwindSafe>() {}
    fn left_whole<T: UnwindSafe + RefUnwindSafe>() {}
    mutex::<ulocks_debug::checked::Mutex<u8>>();
    mutex::<ulocks_debug::checked::FairMutex<u8>>();
    mutex::<ulocks_debug::checked::RwLock<u8>>();
    mutex::<ulocks_debug::checked::PiMutex<u8>>();
    left_whole::<ulocks_debug::checked::Condvar>();
    left_whole::<ulocks_debug::checked::PiCondvar>();
    left_whole::<ulocks_debug::checked::Semaphore>();
};

/// One import serves both: an import without a use is an error here.
#[test]
fn a_class_is_named_by_one_trait() {
    #![deny(unused_imports)]
    use ulocks_debug::checked::{ByClass, RwLock};

    let table = RwLock::new(1);
    let (bulk, nested) = (table.read(), table.read_in::<ulocks_psrwlock::Nested>());
    assert_eq!(*bulk + *nested, 2);
}

#[test]
fn checked_names_are_the_plain_types_without_debug_assertions() {
    let name = TypeId::of::<ulocks_debug::checked::FairMutex<u8>>();
    if cfg!(debug_assertions) {
        assert_eq!(name, TypeId::of::<ulocks_debug::FairMutex<u8>>());
    } else {
        assert_eq!(name, TypeId::of::<ulocks_fair::FairMutex<u8>>());
    }
    let name = TypeId::of::<ulocks_debug::checked::RwLock<u8>>();
    if cfg!(debug_assertions) {
        assert_eq!(name, TypeId::of::<ulocks_debug::RwLock<u8>>());
    } else {
        assert_eq!(name, TypeId::of::<ulocks_psrwlock::PsRwLock<u8>>());
    }
    let names = (
        TypeId::of::<ulocks_debug::checked::PiMutex<u8>>(),
        TypeId::of::<ulocks_debug::checked::PiCondvar>(),
    );
    if cfg!(debug_assertions) {
        let checked = TypeId::of::<ulocks_debug::PiMutex<u8>>();
        assert_eq!(names, (checked, TypeId::of::<ulocks_debug::PiCondvar>()));
    } else {
        let plain = TypeId::of::<ulocks_pi::PiMutex<u8>>();
        assert_eq!(names, (plain, TypeId::of::<ulocks_pi::PiCondvar>()));
    }
}

/// The words are counted for 64-bit processors.
#[cfg(target_pointer_width = "64")]
#[test]
fn a_checked_lock_is_the_plain_one_and_two_words() {
    use ulocks_core::raw::Initial;
    fn size<R: Initial>() -> (usize, usize) {
        (size_of::<ulocks_debug::Checked<R>>(), size_of::<R>())
    }
    for (checked, plain) in [size::<ulocks_unfair::RawThroughputMutex>(), size::<ulocks_fair::RawFairMutex>()]
    {
        assert_eq!(checked - plain, 2 * size_of::<usize>());
    }
    assert_eq!(size_of::<ulocks_debug::Mutex<u64>>(), 32);
    assert_eq!(size_of::<ulocks_debug::Condvar>(), 72);
    type Raw = ulocks_psrwlock::RawPsRwLock;
    assert_eq!(size_of::<ulocks_debug::CheckedRw<Raw>>() - size_of::<Raw>(), 2 * size_of::<usize>());
}

#[test]
fn a_program_of_checked_names_works_in_both_builds() {
    use ulocks_debug::checked::{Condvar, Mutex, MutexGuard};
    static READY: Mutex<bool> = Mutex::new(false);
    static CHANGED: Condvar = Condvar::new();
    let maker = std::thread::spawn(|| {
        *READY.lock() = true;
        CHANGED.notify_one();
    });
    let mut ready: MutexGuard<'_, bool> = READY.lock();
    while !*ready {
        CHANGED.wait(&mut ready);
    }
    drop(ready);
    maker.join().unwrap();
    assert!(!READY.is_locked());
}

#[test]
fn a_program_of_promises_works_in_both_builds() {
    use ulocks_debug::checked::{Promise, PromiseOwner};
    static DONE: Promise = Promise::new();
    let maker = std::thread::spawn(|| {
        let owner: PromiseOwner<'_> = DONE.own();
        drop(owner);
        7
    });
    assert_eq!(DONE.wait(|| maker.join().unwrap()), 7);
    assert_eq!(size_of::<Promise>(), if cfg!(debug_assertions) { 2 * size_of::<usize>() } else { 0 });
}

#[test]
fn a_program_of_a_checked_pi_mutex_works_in_both_builds() {
    use ulocks_debug::checked::{PiCondvar, PiLockError, PiLockResult, PiMutex, PiWaitResult, Wakeup};
    static READY: PiMutex<bool> = PiMutex::new(false);
    static CHANGED: PiCondvar = PiCondvar::new();
    let maker = std::thread::spawn(|| {
        // SAFETY: no thread leaks a guard.
        *READY.lock().or_else(|error: PiLockError<_>| unsafe { error.recover() }).unwrap() = true;
        CHANGED.notify_one(&READY).unwrap();
    });
    let ready: PiLockResult<'_, bool> = READY.lock();
    let ready = CHANGED.wait_while(ready.unwrap(), |ready| !*ready).unwrap();
    let waited: PiWaitResult<'_, bool> = CHANGED.wait_for(ready, std::time::Duration::ZERO);
    assert!(matches!(waited, Ok((_, Wakeup::TimedOut | Wakeup::Notified))));
    drop(waited);
    maker.join().unwrap();
    assert!(!READY.is_locked());
}

#[test]
fn a_wait_that_can_be_interrupted_works_in_both_builds() {
    use ulocks_core::interrupt::{
        InterruptibleCondvar as _, InterruptibleMutex as _, InterruptibleRwLock as _,
        InterruptibleUpgrade as _, WaitError,
    };
    use ulocks_core::time::Deadline;
    use ulocks_debug::checked::{Condvar, Mutex, RwLock, Semaphore};
    let past = || Deadline::after(std::time::Duration::ZERO);

    let mutex = Mutex::new(0);
    *mutex.lock_interruptible().unwrap() += 1;
    let mut held = mutex.lock_interruptible_until(past()).unwrap();
    let waited = Condvar::new().wait_interruptible_until(&mut held, past());
    assert!(matches!(waited, Ok(()) | Err(WaitError::TimedOut)));
    assert_eq!(*held, 1);

    let rwlock = RwLock::new(0);
    *rwlock.write_interruptible().unwrap() += 1;
    assert_eq!(*rwlock.read_interruptible().unwrap(), 1);
    assert_eq!(*rwlock.upgradable_read_interruptible().unwrap(), 1);

    let semaphore = Semaphore::new(1);
    drop(semaphore.acquire_interruptible().unwrap());
    let late = semaphore.acquire_many_interruptible_until(2, past());
    assert_eq!(late.err().map(|error| error.to_string()), Some(WaitError::TimedOut.to_string()));
}

#[test]
fn a_program_of_tasks_works_in_both_builds() {
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};
    use ulocks_core::task::{
        AsyncCondvar as _, AsyncMutex as _, AsyncRwLock, AsyncRwLockUpgradableReadGuard,
    };
    use ulocks_debug::checked::{Condvar, Mutex, RwLock};
    let (mutex, changed, lock) = (Arc::new(Mutex::new(0)), Condvar::new(), Arc::new(RwLock::new(0)));
    let mut task = std::pin::pin!(async {
        let mut ready = mutex.lock_async().await;
        while *ready == 0 {
            ready = changed.wait_async(ready).await;
        }
        drop(ready);
        *mutex.clone().lock_owned_async().await += 1;
        *lock.write_async().await += 1;
        let upgradable = lock.upgradable_async().await;
        *AsyncRwLockUpgradableReadGuard::upgrade_async(upgradable).await += 1;
        *lock.clone().write_owned_async().await += 1;
        let sum = *lock.read_async().await + *lock.clone().read_owned_async().await;
        sum + *mutex.lock_async().await
    });
    let mut poll = || task.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(poll(), Poll::Pending);
    *mutex.lock() = 1;
    changed.notify_one();
    assert_eq!(poll(), Poll::Ready(8));
}
