//! Priority inheritance, with `FUTEX_LOCK_PI2` and with its fallback. Nothing here needs real-time
//! priorities.

#![cfg(all(world = "machine", not(miri)))]

mod support;

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use support::{Mapping, asleep, memory_file, until_child_asleep};
use ulocks_core::capabilities::{Capability, force_fallback};
use ulocks_core::futex::{
    Futex, Global, Local, OWNER_DIED, PiError, PiWaited, RequeueError, Scope, TID_MASK, WAITERS, Waited,
};
use ulocks_core::tid;
use ulocks_core::time::{Clock, Deadline};
use ulocks_testkit::Child;

/// Beyond every limit the kernel sets to thread ids (2^22).
const NOBODY: u32 = TID_MASK;

/// Runs `check` with `FUTEX_LOCK_PI2`, where there is one, and with `FUTEX_LOCK_PI`.
fn both_calls(check: impl Fn()) {
    check();
    let _old_kernel = force_fallback(Capability::LockPi2);
    check();
}

fn lock<S: Scope>(futex: &Futex<S>) {
    if futex.compare_exchange(0, tid::current(), Acquire, Relaxed).is_err() {
        futex.lock_pi(None).unwrap();
    }
}

fn unlock<S: Scope>(futex: &Futex<S>) {
    if futex.compare_exchange(tid::current(), 0, Release, Relaxed).is_err() {
        futex.unlock_pi().unwrap();
    }
}

/// A futex that another thread owns while `body` runs.
fn owned_by_another(body: impl FnOnce(&Futex<Local>)) {
    let (futex, end) = (Futex::new(0), Futex::<Local>::new(0));
    thread::scope(|scope| {
        asleep(scope, || {
            lock(&futex);
            end.wait(0, None);
            unlock(&futex);
        });
        body(&futex);
        end.key().wake(1);
    });
    assert_eq!(futex.load(Relaxed), 0);
}

#[test]
fn a_free_lock_is_taken_and_given_back() {
    fn check<S: Scope>() {
        let futex = Futex::<S>::new(0);
        let past = Deadline::new(Clock::Monotonic, Duration::ZERO);
        for deadline in [None, Some(Deadline::NEVER), Some(past)] {
            assert_eq!(futex.lock_pi(deadline), Ok(()));
            assert_eq!(futex.load(Relaxed) & TID_MASK, tid::current());
            assert_eq!(futex.unlock_pi(), Ok(()));
            assert_eq!(futex.load(Relaxed), 0);
        }
        assert_eq!(futex.try_lock_pi(), Ok(true));
        assert_eq!(futex.load(Relaxed), tid::current());
        unlock(&futex);
    }
    both_calls(|| {
        check::<Local>();
        check::<Global>();
    });
}

#[test]
fn the_owner_cannot_lock_again() {
    both_calls(|| {
        let futex = Futex::<Local>::new(tid::current());
        assert_eq!(futex.lock_pi(None), Err(PiError::Deadlock));
        assert_eq!(futex.try_lock_pi(), Err(PiError::Deadlock));
    });
}

#[test]
fn a_circle_of_owners_is_a_deadlock() {
    both_calls(|| {
        let (first, second) = (Futex::<Local>::new(0), Futex::<Local>::new(0));
        lock(&first);
        thread::scope(|scope| {
            let other = asleep(scope, || {
                lock(&second);
                lock(&first);
                unlock(&first);
                unlock(&second);
            });
            assert_eq!(second.lock_pi(None), Err(PiError::Deadlock));
            unlock(&first);
            other.join();
        });
    });
}

#[test]
fn a_waiter_gets_the_lock_from_the_owner() {
    both_calls(|| {
        let futex = Futex::<Local>::new(0);
        lock(&futex);
        thread::scope(|scope| {
            let waiter = asleep(scope, || {
                lock(&futex);
                let word = futex.load(Relaxed);
                unlock(&futex);
                word & TID_MASK
            });
            assert_eq!(futex.load(Relaxed), tid::current() | WAITERS);
            let id = waiter.id;
            assert_eq!(futex.unlock_pi(), Ok(()));
            assert_eq!(waiter.join(), id);
        });
        assert_eq!(futex.load(Relaxed), 0);
    });
}

/// Asleep, not going round and round: the fallback has to find the deadline on the other clock.
#[test]
fn a_waiter_with_a_far_deadline_sleeps() {
    both_calls(|| {
        for clock in [Clock::Monotonic, Clock::Realtime] {
            let futex = Futex::<Local>::new(0);
            lock(&futex);
            let deadline = Deadline::after_on(clock, Duration::from_secs(3600));
            thread::scope(|scope| {
                let waiter = asleep(scope, || futex.lock_pi(Some(deadline)).map(|()| unlock(&futex)));
                unlock(&futex);
                assert_eq!(waiter.join(), Ok(()));
            });
        }
    });
}

#[test]
fn a_lock_is_not_given_up_before_its_deadline() {
    both_calls(|| {
        owned_by_another(|futex| {
            let end = Instant::now() + Duration::from_millis(3);
            assert_eq!(futex.lock_pi(Some(end.into())), Err(PiError::TimedOut));
            assert!(Instant::now() >= end);
            let end = SystemTime::now() + Duration::from_millis(3);
            assert_eq!(futex.lock_pi(Some(end.into())), Err(PiError::TimedOut));
            assert!(SystemTime::now() >= end);
        });
    });
}

#[test]
fn trying_does_not_wait_and_only_the_owner_unlocks() {
    owned_by_another(|futex| {
        assert_eq!(futex.try_lock_pi(), Ok(false));
        assert_eq!(futex.unlock_pi(), Err(PiError::NotPermitted));
        assert_ne!(futex.load(Relaxed) & TID_MASK, tid::current());
    });
    assert_eq!(Futex::<Local>::new(0).unlock_pi(), Err(PiError::NotPermitted));
}

#[test]
fn what_a_dead_owner_left_behind_can_be_taken() {
    both_calls(|| {
        for left in [OWNER_DIED, WAITERS, OWNER_DIED | WAITERS] {
            let futex = Futex::<Local>::new(left);
            assert_eq!(futex.try_lock_pi(), Ok(true));
            assert_eq!(futex.load(Relaxed), tid::current() | left & OWNER_DIED);
            futex.store(left, Relaxed);
            assert_eq!(futex.lock_pi(None), Ok(()));
            assert_eq!(futex.load(Relaxed) & !WAITERS, tid::current() | left & OWNER_DIED);
            assert_eq!(futex.unlock_pi(), Ok(()));
        }
    });
}

#[test]
fn an_owner_that_does_not_exist_is_reported() {
    both_calls(|| {
        let futex = Futex::<Local>::new(NOBODY);
        assert_eq!(futex.lock_pi(None), Err(PiError::OwnerGone));
        assert_eq!(futex.try_lock_pi(), Err(PiError::OwnerGone));
        assert_eq!(futex.load(Relaxed) & TID_MASK, NOBODY);
    });
}

#[test]
fn an_owner_that_ended_without_waiters_is_reported() {
    both_calls(|| {
        let futex = Futex::<Local>::new(0);
        thread::scope(|scope| scope.spawn(|| lock(&futex)).join().unwrap());
        // The thread may still be on its way out of the kernel; the call waits for that.
        assert_eq!(futex.lock_pi(None), Err(PiError::OwnerGone));
    });
}

#[test]
fn a_waiter_inherits_from_an_owner_that_ends() {
    both_calls(|| {
        let (futex, end) = (Futex::<Local>::new(0), Futex::<Local>::new(0));
        thread::scope(|scope| {
            asleep(scope, || {
                lock(&futex);
                end.wait(0, None);
            });
            let heir = asleep(scope, || (futex.lock_pi(None), futex.load(Relaxed), tid::current()));
            end.key().wake(1);
            let (locked, word, id) = heir.join();
            assert_eq!(locked, Ok(()));
            assert_eq!(word & !WAITERS, id | OWNER_DIED);
        });
    });
}

#[test]
fn a_plain_sleeper_makes_the_futex_inconsistent() {
    let futex = Futex::<Local>::new(tid::current());
    thread::scope(|scope| {
        asleep(scope, || futex.wait(futex.load(Relaxed), None));
        let locker = scope.spawn(|| futex.lock_pi(None));
        assert_eq!(locker.join().unwrap(), Err(PiError::Inconsistent));
        assert_eq!(futex.key().wake(1), 1);
    });
}

#[test]
fn plain_operations_leave_waiters_alone() {
    let (futex, other) = (Futex::<Local>::new(0), Futex::<Local>::new(0));
    lock(&futex);
    thread::scope(|scope| {
        let waiter = asleep(scope, || {
            lock(&futex);
            unlock(&futex);
        });
        let word = futex.load(Relaxed);
        assert_eq!(futex.key().wake(u32::MAX), 0);
        let refused = Err(RequeueError::PriorityInheriting);
        assert_eq!(futex.cmp_requeue(word, 1, 1, other.key()), refused);
        assert!(!waiter.is_finished());
        unlock(&futex);
    });
    assert_eq!(futex.load(Relaxed), 0);
}

#[test]
fn processes_inherit_from_each_other() {
    let page = Mapping::anonymous();
    let futex = page.futex::<Global>(0);
    lock(futex);
    let child = Child::runs(|| {
        assert_eq!(futex.lock_pi(None), Ok(()));
        assert_eq!(futex.load(Relaxed) & TID_MASK, tid::current());
    });
    until_child_asleep(&child);
    assert_eq!(futex.unlock_pi(), Ok(()));
    // The child ends without unlocking. Its waiters, of which there are none, would be told by the
    // kernel.
    let id = child.id() as u32;
    child.ends();
    assert_eq!(futex.load(Relaxed) & TID_MASK, id);
    assert_eq!(futex.lock_pi(None), Err(PiError::OwnerGone));
}

#[test]
fn a_truncated_file_is_an_error() {
    let file = memory_file();
    let page = Mapping::of_file(&file, libc::PROT_READ | libc::PROT_WRITE);
    file.set_len(0).unwrap();
    let futex = page.futex::<Global>(0);
    both_calls(|| assert_eq!(futex.lock_pi(None), Err(PiError::Inaccessible)));
    assert_eq!(futex.try_lock_pi(), Err(PiError::Inaccessible));
    assert_eq!(futex.unlock_pi(), Err(PiError::Inaccessible));
}

#[test]
fn requeued_waiters_own_the_lock_one_after_another() {
    let (event, futex) = (Futex::<Local>::new(1), Futex::<Local>::new(0));
    lock(&futex);
    thread::scope(|scope| {
        let waiters: Vec<_> = (0..4)
            .map(|_| {
                asleep(scope, || {
                    let waited = event.wait_requeue_pi(1, &futex, None);
                    assert_eq!(futex.load(Relaxed) & TID_MASK, tid::current());
                    unlock(&futex);
                    waited
                })
            })
            .collect();
        assert_eq!(event.cmp_requeue_pi(0, u32::MAX, &futex), Err(PiError::Mismatch));
        assert_eq!(event.cmp_requeue_pi(1, 0, &futex), Ok(1));
        assert_eq!(event.cmp_requeue_pi(1, u32::MAX, &futex), Ok(3));
        assert_eq!(event.cmp_requeue_pi(1, u32::MAX, &futex), Ok(0));
        assert_eq!(futex.load(Relaxed), tid::current() | WAITERS);
        assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
        unlock(&futex);
        assert!(waiters.into_iter().map(|waiter| waiter.join()).all(|waited| waited == Ok(PiWaited::Locked)));
    });
    assert_eq!(futex.load(Relaxed), 0);
}

#[test]
fn a_requeue_to_a_free_lock_gives_it_to_the_first() {
    let (event, futex) = (Futex::<Local>::new(1), Futex::<Local>::new(0));
    thread::scope(|scope| {
        let waiter = asleep(scope, || {
            let waited = event.wait_requeue_pi(1, &futex, None);
            let word = futex.load(Relaxed);
            unlock(&futex);
            (waited, word & TID_MASK, tid::current())
        });
        assert_eq!(event.cmp_requeue_pi(1, 0, &futex), Ok(1));
        let (waited, owner, id) = waiter.join();
        assert_eq!((waited, owner), (Ok(PiWaited::Locked), id));
    });
}

#[test]
fn a_wait_for_a_requeue_ends_without_one() {
    let (event, futex) = (Futex::<Local>::new(1), Futex::<Local>::new(0));
    assert_eq!(event.wait_requeue_pi(2, &futex, None), Ok(PiWaited::Retry));
    for clock in [Clock::Monotonic, Clock::Realtime] {
        let deadline = Deadline::after_on(clock, Duration::from_millis(3));
        assert_eq!(event.wait_requeue_pi(1, &futex, Some(deadline)), Err(PiError::TimedOut));
        assert!(deadline.has_passed());
    }
    assert_eq!(futex.load(Relaxed), 0);
}

#[test]
fn a_requeue_that_makes_no_sense_is_refused() {
    let (event, futex) = (Futex::<Local>::new(1), Futex::<Local>::new(0));
    assert_eq!(event.wait_requeue_pi(1, &event, None), Err(PiError::Inconsistent));
    assert_eq!(event.cmp_requeue_pi(1, 1, &event), Err(PiError::Inconsistent));
    thread::scope(|scope| {
        let plain = asleep(scope, || event.wait(1, None));
        assert_eq!(event.cmp_requeue_pi(1, 1, &futex), Err(PiError::Inconsistent));
        assert_eq!(event.key().wake(1), 1);
        assert_eq!(plain.join(), Waited::Woken);
    });
}

#[test]
fn a_kernel_thread_owns_no_lock() {
    // The kernel's thread number 2, unless this is a container with its own numbers.
    if std::fs::read_to_string("/proc/2/comm").is_ok_and(|name| name.trim() == "kthreadd") {
        both_calls(|| assert_eq!(Futex::<Local>::new(2).lock_pi(None), Err(PiError::NotPermitted)));
    } else {
        println!("not tested: no kernel threads are to be seen here");
    }
}

#[test]
fn errors_say_what_to_do() {
    for (error, advice) in [
        (PiError::TimedOut, "not held"),
        (PiError::Mismatch, "look at it again"),
        (PiError::Deadlock, "would never end"),
        (PiError::OwnerGone, "repair"),
        (PiError::NotPermitted, "only its owner unlocks"),
        (PiError::Inconsistent, "by these operations"),
        (PiError::OutOfMemory, "later"),
        (PiError::Inaccessible, "mapped"),
        (PiError::Unsupported, "CONFIG_FUTEX_PI"),
    ] {
        assert!(error.to_string().contains(advice), "{error}");
    }
}
