//! Guards of lock_api 0.4 live on if the acquisition that gives them their lock back panics. So no
//! operation of this face does: a fault is printed, and the process aborts. Each such test runs in
//! a process of its own.

use super::*;
use ::ulocks_parking_lot::checked::{ulocks_debug::waiters, v0_12 as lot};
use lot::{FairMutex, FairMutexGuard, Mutex, MutexGuard, ReentrantMutex, ReentrantMutexGuard};
use lot::{RwLock, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard};
use std::panic::{AssertUnwindSafe, catch_unwind};
use ulocks_testkit::limit::{again, output};
use ulocks_testkit::refusal;

include!("both.inc");

const WHY: &str = "ulocks: the process aborts, because guards of lock_api 0.4";

/// In a second process, that `fault` is reported as `rule` with `lines` of this file, and aborts.
#[track_caller]
fn aborts(test: &str, rule: &str, lines: &[u32], fault: impl FnOnce()) {
    let places: Vec<String> = lines.iter().map(|line| format!("v0_12.rs:{line}:")).collect();
    let says: Vec<&str> = [rule, WHY].into_iter().chain(places.iter().map(String::as_str)).collect();
    refusal::aborts(&format!("v0_12::{test}"), &says, || {
        let _ = catch_unwind(AssertUnwindSafe(fault));
        eprintln!("the acquisition has unwound");
    });
}

#[test]
fn a_mutex_is_not_locked_twice() {
    aborts("a_mutex_is_not_locked_twice", "self-deadlock", &[line!() + 2, line!() + 3], || {
        let mutex = Mutex::new(());
        let _held = mutex.lock();
        drop(mutex.lock());
    });
}

#[test]
fn a_lock_is_not_read_twice() {
    aborts("a_lock_is_not_read_twice", "if a writer comes between", &[line!() + 2, line!() + 3], || {
        let lock = RwLock::new(());
        let _held = lock.read_recursive();
        drop(lock.read());
    });
}

#[test]
fn a_lock_is_not_written_while_it_is_read() {
    let lines = [line!() + 3, line!() + 4];
    aborts("a_lock_is_not_written_while_it_is_read", "self-deadlock", &lines, || {
        let lock = RwLock::new(());
        let _held = lock.read();
        drop(lock.write());
    });
}

#[test]
fn locks_have_one_order() {
    let lines = [line!() + 5, line!() + 6];
    aborts("locks_have_one_order", "inversion", &lines, || {
        let (mutex, lock) = (Mutex::new(0), RwLock::new(0));
        let in_mutex = mutex.lock();
        drop((lock.read(), in_mutex));
        let _in_lock = lock.read();
        drop(mutex.lock());
    });
}

#[test]
fn read_recursive_comes_in_beside_a_waiting_writer() {
    let lock = RwLock::new(0);
    std::thread::scope(|scope| {
        let first = lock.read();
        scope.spawn(|| *lock.write() += 1);
        until("a thread waits", || !waiters().is_empty());
        let again = (lock.read_recursive(), lock.read_recursive());
        assert_eq!(*first, *again.0);
        drop(first);
        drop(again);
    });
    assert_eq!(lock.into_inner(), 1);
}

/// A harness keeps what a test prints, and an abort loses that. The report must not be lost.
#[test]
fn a_report_is_seen_although_the_harness_captures() {
    let Some(mut command) = again("v0_12::a_report_is_seen_although_the_harness_captures") else {
        let mutex = Mutex::new(());
        let _held = mutex.lock();
        return drop(mutex.lock());
    };
    let output = output(command.env_remove("RUST_TEST_NOCAPTURE"));
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && printed.contains("self-deadlock") && printed.contains(WHY),
        "{printed}"
    );
}

/// Each way to a guard. It gives up its lock for a while in each way there is, and is to get it
/// back in the wrong order, which is a fault.
macro_rules! revivals {
    ($($name:ident: $lock:expr, $acquire:path, $guard:ident;)*) => {$(
        mod $name {
            use super::*;

            macro_rules! aborts_in {
                ($method:ident, $way:expr) => {
                    #[test]
                    fn $method() {
                        aborts(concat!(stringify!($name), "::", stringify!($method)), "inversion", &[], || {
                            let (lock, other) = ($lock, Mutex::new(()));
                            let mut guard = $acquire(&lock);
                            let _other = other.lock();
                            $way(&mut guard);
                        });
                    }
                };
            }
            aborts_in!(unlocked, |guard| $guard::unlocked(guard, || ()));
            aborts_in!(unlocked_fair, |guard| $guard::unlocked_fair(guard, || ()));
            aborts_in!(bump, $guard::bump);
        }
    )*};
}

revivals! {
    mutex: Mutex::new(0), Mutex::lock, MutexGuard;
    fair_mutex: FairMutex::new(0), FairMutex::lock, FairMutexGuard;
    reentrant: ReentrantMutex::new(0), ReentrantMutex::lock, ReentrantMutexGuard;
    read: RwLock::new(0), RwLock::read, RwLockReadGuard;
    read_recursive: RwLock::new(0), RwLock::read_recursive, RwLockReadGuard;
    write: RwLock::new(0), RwLock::write, RwLockWriteGuard;
    upgradable: RwLock::new(0), RwLock::upgradable_read, RwLockUpgradableReadGuard;
}

#[cfg(feature = "arc_lock")]
use lot::{ArcMutexGuard, ArcReentrantMutexGuard};
#[cfg(feature = "arc_lock")]
use lot::{ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard, ArcRwLockWriteGuard};
#[cfg(feature = "arc_lock")]
use std::sync::Arc;

#[cfg(feature = "arc_lock")]
revivals! {
    arc_mutex: Arc::new(Mutex::new(0)), Mutex::lock_arc, ArcMutexGuard;
    arc_reentrant: Arc::new(ReentrantMutex::new(0)), ReentrantMutex::lock_arc, ArcReentrantMutexGuard;
    arc_read: Arc::new(RwLock::new(0)), RwLock::read_arc, ArcRwLockReadGuard;
    arc_read_recursive: Arc::new(RwLock::new(0)), RwLock::read_arc_recursive, ArcRwLockReadGuard;
    arc_write: Arc::new(RwLock::new(0)), RwLock::write_arc, ArcRwLockWriteGuard;
    arc_upgradable: Arc::new(RwLock::new(0)), RwLock::upgradable_read_arc, ArcRwLockUpgradableReadGuard;
}

/// The upgrade would wait for a reader that waits for a mutex of the thread that upgrades.
#[test]
fn an_upgrade_for_a_while_aborts() {
    aborts("an_upgrade_for_a_while_aborts", "inversion", &[], || {
        let (lock, mutex) = (RwLock::new(0), Mutex::new(0));
        let (mut guard, in_mutex) = (lock.upgradable_read(), mutex.lock());
        std::thread::scope(|scope| {
            scope.spawn(|| drop((lock.read(), mutex.lock())));
            until("a thread waits", || !waiters().is_empty());
            guard.with_upgraded(|value| *value += 1);
        });
        drop(in_mutex);
    });
}
