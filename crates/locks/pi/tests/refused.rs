//! A kernel that refuses the futex calls of a `PiMutex` and a `PiCondvar`: the process aborts if a
//! waiter depends on the caller, and else the call returns an error.
#![cfg(not(any(miri, ulocks_loom, ulocks_vm)))]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::exit;
use std::thread;
use ulocks_core::Private;
use ulocks_core::futex::PiError;
use ulocks_core::raw::RawMutex as _;
use ulocks_core::spin::NoSpin;
use ulocks_pi::{PiCondvarWith, PiMutexWith, RawPiMutex};
use ulocks_testkit::limit::until;
use ulocks_testkit::refusal;

type Here = Private<NoSpin>;

/// It unwound, and the waiter slept on.
#[test]
fn a_release_that_cannot_hand_over_does_not_go_on() {
    let says = ["a PiMutex could not be released", "ulocks: the process aborts"];
    refusal::aborts("a_release_that_cannot_hand_over_does_not_go_on", &says, || {
        let lock = RawPiMutex::<Here>::new();
        lock.lock();
        thread::scope(|scope| {
            scope.spawn(|| lock.lock());
            until("a waiter sleeps", || lock.state().has_waiters());
            refusal::refuse_futex(libc::FUTEX_UNLOCK_PI);
            // SAFETY: locked above.
            let released = catch_unwind(AssertUnwindSafe(|| unsafe { lock.unlock(()) }));
            eprintln!("a release that is refused has come to its end: {released:?}");
            // Not to wait for a thread that no thread wakes.
            exit(3);
        });
    });
}

#[test]
fn a_wait_that_is_refused_leaves_nothing_behind() {
    refusal::survives("a_wait_that_is_refused_leaves_nothing_behind", || {
        let (mutex, condvar) = (PiMutexWith::<(), Here>::new(()), PiCondvarWith::<Here>::new());
        thread::scope(|scope| {
            scope.spawn(|| {
                refusal::refuse_futex(libc::FUTEX_WAIT_REQUEUE_PI);
                assert!(condvar.wait(mutex.lock().unwrap()).is_err());
            });
        });
        assert!(mutex.try_lock().unwrap().is_some(), "the mutex is held by nobody");
        refusal::refuse_futex(libc::FUTEX_CMP_REQUEUE_PI);
        assert_eq!(condvar.notify_all(&mutex), Ok(0), "a waiter is counted that is gone");
    });
}

#[test]
fn a_notification_that_is_refused_is_told() {
    refusal::survives("a_notification_that_is_refused_is_told", || {
        let (mutex, condvar) = (PiMutexWith::<bool, Here>::new(false), PiCondvarWith::<Here>::new());
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut begun = mutex.lock().unwrap();
                *begun = true;
                drop(condvar.wait(begun).unwrap());
            });
            until("the waiter has released the mutex", || *mutex.lock().unwrap());
            let refused = thread::scope(|scope| {
                let notifies = scope.spawn(|| {
                    refusal::refuse_futex(libc::FUTEX_CMP_REQUEUE_PI);
                    condvar.notify_one(&mutex)
                });
                notifies.join().unwrap()
            });
            assert_eq!(refused, Err(PiError::NotPermitted));
            // The first one may have come before the waiter slept, and ended its wait.
            assert!(condvar.notify_one(&mutex).is_ok());
        });
    });
}
