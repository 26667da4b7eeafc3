//! Plain locks in the contention profile, by their meter.

#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::panic::catch_unwind;
use std::sync::Mutex as Alone;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;
use ulocks_core::api::{Mutex, RwLock};
use ulocks_core::lock_api::{RwLockUpgradableReadGuard, RwLockWriteGuard};
use ulocks_core::meter::{Counted, Off};
use ulocks_core::raw::{Initial, Metered, RawMutex};
use ulocks_core::spin::Adaptive;
use ulocks_core::task::{AsyncRwLock, AsyncRwLockUpgradableReadGuard};
use ulocks_core::{Private, Shared};
use ulocks_fair::SemaphoreWith;
use ulocks_pi::{PiCondvarOf, PiMutexWith};
use ulocks_profile::{LockLine, Profile, Stamped, named};
use ulocks_psrwlock::{BULK, RawPsRwLock, Sifted};
use ulocks_semarray::{Op, SemArrayWith};
use ulocks_testkit as _;

named!(Slow = "slow");
named!(Others = "others");
named!(Unused = "unused");

type On = Private<Adaptive, Stamped<Slow>>;

/// Runs `program` alone, with the profile on and empty.
fn profiled(program: impl FnOnce()) -> Profile {
    static ALONE: Alone<()> = Alone::new(());
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    ulocks_profile::reset();
    ulocks_profile::start();
    program();
    ulocks_profile::stop();
    ulocks_profile::snapshot()
}

fn class<'a>(profile: &'a Profile, name: &str) -> Option<&'a LockLine> {
    profile.classes().iter().find(|line| line.lock.name == name)
}

/// A thread waits for another one, and gives up once.
fn contended<L: RawMutex + Sync>(lock: &str)
where
    L::Token: Send,
{
    let pause = Duration::from_millis(4);
    let profile = profiled(|| {
        let mutex: &Mutex<L, ()> = Box::leak(Box::new(Mutex::new(())));
        let guard = mutex.lock();
        let (sender, receiver) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                assert!(mutex.try_lock().is_none(), "{lock}");
                assert!(mutex.try_lock_for(pause).is_none(), "{lock}");
                sender.send(()).unwrap();
                drop(mutex.lock());
                drop(mutex.try_lock().unwrap());
            });
            receiver.recv().unwrap();
            thread::sleep(4 * pause);
            drop(guard);
        });
    });
    let line = class(&profile, "slow").unwrap_or_else(|| panic!("{lock}: {profile}"));
    let sums = line.sums;
    assert_eq!(sums.acquired, 3, "{lock}");
    // The second wait begins at some time, and may begin when the lock is free again.
    assert!((1..=2).contains(&sums.contended), "{lock}: {sums:?}");
    assert!(sums.waited >= pause && sums.longest_hold >= 5 * pause, "{lock}: {sums:?}");
    assert!(sums.held >= sums.longest_hold, "{lock}: {sums:?}");
    let at = line.held_longest_at.unwrap();
    assert!(at.file() == file!() && at == line.lock.made, "{lock}: {at}");
    assert_eq!(profile.locks().iter().filter(|line| line.lock.name == "slow").count(), 1, "{lock}");
    let text = profile.to_string();
    assert!(text.contains("for (a plain lock: its holder is not recorded)"), "{lock}: {text}");
}

#[test]
fn every_mutex_is_in_the_profile() {
    contended::<ulocks_unfair::RawBargingMutex<On>>("Mutex");
    contended::<ulocks_unfair::RawThroughputMutex<On>>("ThroughputMutex");
    contended::<ulocks_unfair::RawAsymMutex<On>>("AsymMutex");
    contended::<ulocks_fair::RawFairMutex<On>>("FairMutex");
    contended::<ulocks_unfair::RawBargingMutex<Shared<Adaptive, Stamped<Slow>>>>("Mutex, shared");
    contended::<ulocks_calock::RawCalock<On>>("Calock");
    contended::<ulocks_pi::RawPiMutex<On>>("PiMutex");
}

#[test]
fn locks_of_one_name_are_told_apart() {
    let locks = [(); 3]
        .map(|()| Mutex::<ulocks_unfair::RawBargingMutex<Private<Adaptive, Stamped<Others>>>, u8>::new(0));
    let profile = profiled(|| {
        for (times, lock) in (1..).zip(&locks) {
            (0..times).for_each(|_| *lock.lock() += 1);
        }
        // Released out of order.
        let guards: Vec<_> = locks.iter().map(|lock| lock.lock()).collect();
        guards.into_iter().for_each(drop);
    });
    let lines = profile.locks().iter().filter(|line| line.lock.name == "others");
    let mut acquired: Vec<u64> = lines.map(|line| line.sums.acquired).collect();
    acquired.sort_unstable();
    assert_eq!(acquired, [2, 3, 4]);
    assert_eq!(class(&profile, "others").unwrap().sums.acquired, 9);
    assert!(class(&profile, "unused").is_none());
}

#[test]
fn nothing_counts_while_it_is_off() {
    let lock = Mutex::<ulocks_unfair::RawBargingMutex<On>, ()>::new(());
    let profile = profiled(|| {
        ulocks_profile::stop();
        let begun_before = lock.lock();
        ulocks_profile::start();
        drop(begun_before);
        let begun_before = lock.lock();
        ulocks_profile::reset();
        drop(begun_before);
    });
    assert!(class(&profile, "slow").is_none(), "{profile}");
}

/// The sizes of a lock without a meter, with the default policy, and in the profile.
macro_rules! sizes {
    ($($raw:ty, $plain:ty, $stamped:ty;)*) => {
        [$((stringify!($plain), size_of::<$raw>(), size_of::<$plain>(), size_of::<$stamped>())),*]
    };
}

#[test]
fn a_lock_is_as_large_with_the_meter_as_without() {
    type Plain = Private<Adaptive, Off>;
    let sizes = sizes! {
        ulocks_unfair::RawBargingMutex<Plain>, ulocks_unfair::RawBargingMutex, ulocks_unfair::RawBargingMutex<On>;
        ulocks_unfair::RawThroughputMutex<Plain>, ulocks_unfair::RawThroughputMutex, ulocks_unfair::RawThroughputMutex<On>;
        ulocks_unfair::RawAsymMutex<Plain>, ulocks_unfair::RawAsymMutex, ulocks_unfair::RawAsymMutex<On>;
        ulocks_fair::RawFairMutex<Plain>, ulocks_fair::RawFairMutex, ulocks_fair::RawFairMutex<On>;
        ulocks_calock::RawCalock<Plain>, ulocks_calock::RawCalock, ulocks_calock::RawCalock<On>;
        ulocks_pi::RawPiMutex<Plain>, ulocks_pi::RawPiMutex, ulocks_pi::RawPiMutex<On>;
    };
    for (lock, off, plain, stamped) in sizes {
        assert_eq!((off, stamped), (plain, plain), "{lock}");
    }
}

fn counts_of<L: RawMutex + Metered<Meter = Counted>>(mutex: &Mutex<L, u8>) -> u64 {
    mutex.counts().acquired
}

#[test]
fn counters_are_read_through_the_typed_lock() {
    type Policy = Private<Adaptive, Counted>;
    fn acquired<L: RawMutex + Initial + Metered<Meter = Counted>>() -> u64 {
        let mutex = Mutex::<L, u8>::new(0);
        *mutex.lock() += 1;
        *mutex.lock() += 1;
        counts_of(&mutex)
    }
    let all = [
        acquired::<ulocks_unfair::RawBargingMutex<Policy>>(),
        acquired::<ulocks_unfair::RawThroughputMutex<Policy>>(),
        acquired::<ulocks_unfair::RawAsymMutex<Policy>>(),
        acquired::<ulocks_fair::RawFairMutex<Policy>>(),
        acquired::<ulocks_calock::RawCalock<Policy>>(),
        acquired::<ulocks_pi::RawPiMutex<Policy>>(),
    ];
    assert_eq!(all, [2; 6]);
    let semaphore = SemaphoreWith::<Policy>::new(1);
    drop(semaphore.acquire());
    assert_eq!(semaphore.counts().acquired, 1);
}

type PsRwLock<M> = RwLock<RawPsRwLock<Sifted<BULK, Private<Adaptive, M>>>, u8>;

#[test]
fn a_reader_writer_lock_is_in_the_profile() {
    let lock = PsRwLock::<Stamped<Slow>>::new(0);
    let counted = PsRwLock::<Counted>::new(0);
    let profile = profiled(|| {
        *lock.write() += 1;
        drop(lock.upgradable_read());
        let reader = lock.read();
        thread::scope(|scope| {
            scope.spawn(|| assert!(lock.try_write_for(Duration::from_millis(3)).is_none()));
        });
        drop(reader);
        let upgradable = lock.upgradable_read();
        thread::scope(|scope| {
            let waits = || lock.try_upgradable_read_for(Duration::from_millis(3)).is_none();
            scope.spawn(move || assert!(waits() && waits()));
        });
        drop(upgradable);
        drop(counted.read());
        drop(counted.write());
    });
    let sums = class(&profile, "slow").unwrap().sums;
    assert_eq!((sums.acquired, sums.contended), (4, 3));
    // A wait begins after its deadline was reckoned, so it may be shorter than that says.
    assert!(sums.waited > Duration::ZERO && sums.held >= sums.waited);
    assert_eq!(counted.counts().acquired, 2);
}

/// The kernel gives the mutex to a waiter that sleeps. That is an acquisition as any other.
#[test]
fn a_waiter_on_a_pi_condvar_acquires_again() {
    let mutex = PiMutexWith::<bool, On>::new(false);
    let changed = PiCondvarOf::<ulocks_pi::RawPiMutex<On>>::new();
    let profile = profiled(|| {
        let (sender, receiver) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                let ready = mutex.lock().unwrap();
                // SAFETY: the call has no contract.
                sender.send(unsafe { libc::gettid() }).unwrap();
                drop(changed.wait_while(ready, |ready| !*ready).unwrap());
            });
            let waiter = receiver.recv().unwrap();
            drop(mutex.lock().unwrap());
            ulocks_testkit::task::until_asleep(&[waiter]);
            let mut ready = mutex.lock().unwrap();
            *ready = true;
            changed.notify_one(&mutex).unwrap();
        });
    });
    let line = class(&profile, "slow").unwrap();
    // Twice by each of the two threads.
    assert_eq!(line.sums.acquired, 4, "{profile}");
}

/// A semaphore's permits are released by anybody, so they have no holds.
#[test]
fn permits_take_no_room_of_the_holds_of_locks() {
    type Policy = Private<Adaptive, Stamped<Others>>;
    let semaphore = SemaphoreWith::<Policy>::new(200);
    let array = SemArrayWith::<Policy>::with_values([200]);
    let lock = Mutex::<ulocks_unfair::RawBargingMutex<On>, ()>::new(());
    let profile = profiled(|| {
        let held = lock.lock();
        (0..100).for_each(|_| drop(semaphore.acquire()));
        (0..100).for_each(|_| array.apply(&[Op::sub(0, 1)]).unwrap());
        drop(held);
    });
    assert_eq!(class(&profile, "others").unwrap().sums.acquired, 200);
    assert!(class(&profile, "slow").unwrap().held_longest_at.is_some(), "{profile}");
}

/// Polls a future once, which waits, and drops it.
fn is_cancelled(future: impl Future) {
    let mut future = std::pin::pin!(future);
    assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

/// Each wait that ends without permits counts, and none is put down to the next acquisition.
#[test]
fn a_wait_counts_that_ends_without_permits() {
    let pause = Duration::from_millis(1);
    let semaphore = SemaphoreWith::<On>::new(0);
    let array = SemArrayWith::<Private<Adaptive, Stamped<Others>>>::with_values([0]);
    let profile = profiled(|| {
        assert!(semaphore.try_acquire_for(pause).is_none() && semaphore.try_acquire_for(pause).is_none());
        is_cancelled(semaphore.acquire_async());
        is_cancelled(semaphore.acquire_async());
        semaphore.release(1).unwrap();
        semaphore.acquire().forget();
        semaphore.close();
        assert!(semaphore.acquire_unless_closed().is_err());
        assert!(catch_unwind(|| drop(semaphore.acquire())).is_err());
        let mut late = std::pin::pin!(semaphore.acquire_async());
        assert!(late.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());

        let take = || array.apply_for(&[Op::sub(0, 1)], pause).is_err();
        assert!(take() && take());
        is_cancelled(array.acquire_async(Op::sub(0, 1)));
        is_cancelled(array.acquire_async(Op::sub(0, 1)));
        array.apply(&[Op::add(0, 1)]).unwrap();
    });
    let counted = ["slow", "others"].map(|name| {
        let sums = class(&profile, name).unwrap().sums;
        (sums.acquired, sums.contended)
    });
    assert_eq!(counted, [(1, 7), (1, 4)], "{profile}");
}

#[test]
fn a_fair_release_ends_a_hold() {
    let lock = PsRwLock::<Stamped<Slow>>::new(0);
    let profile = profiled(|| {
        RwLockWriteGuard::unlock_fair(lock.write());
        RwLockUpgradableReadGuard::unlock_fair(lock.upgradable_read());
    });
    let line = class(&profile, "slow").unwrap();
    assert_eq!(line.sums.acquired, 2);
    assert!(line.sums.held > line.sums.longest_hold, "both holds have ended: {profile}");
}

/// What a future is at its first poll.
fn at_once<F: Future>(future: F) -> F::Output {
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits"),
    }
}

/// The future of an upgrade has the access that it is to turn, and gives that back.
#[test]
fn an_upgrade_that_is_dropped_ends_a_hold() {
    for is_polled in [false, true] {
        let lock = PsRwLock::<Stamped<Slow>>::new(0);
        let profile = profiled(|| {
            if is_polled {
                // The only hold that has an end is that of the future.
                std::mem::forget(at_once(lock.read_async()));
            }
            let upgrade = AsyncRwLockUpgradableReadGuard::upgrade_async(at_once(lock.upgradable_async()));
            if is_polled { is_cancelled(upgrade) } else { drop(upgrade) }
        });
        let line = class(&profile, "slow").unwrap();
        assert!(line.held_longest_at.is_some(), "polled {is_polled}: {profile}");
    }
}
