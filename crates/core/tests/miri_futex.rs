//! The operations that Miri has too, without any look at the kernel: a test that waits for a
//! sleeper tries to wake it until that works.

#![cfg(world = "machine")]

use std::collections::HashSet;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread;
use std::time::{Duration, Instant};
use ulocks_core::capabilities::{Capability, capabilities};
use ulocks_core::futex::{Bits, Futex, Global, Local, RequeueError, Waited};
use ulocks_core::tid;
use ulocks_core::time::{Clock, Deadline};
use ulocks_testkit as _;

/// Calls `wake` until it finds a sleeper.
fn until_one(mut wake: impl FnMut() -> u32) {
    loop {
        match wake() {
            0 => thread::yield_now(),
            count => return assert_eq!(count, 1),
        }
    }
}

#[test]
fn a_wait_needs_the_expected_value() {
    assert_eq!(Futex::<Local>::new(1).wait(0, None), Waited::Mismatch);
    assert_eq!(Futex::<Global>::new(1).wait(0, Some(Deadline::NEVER)), Waited::Mismatch);
}

#[test]
fn a_wait_ends_at_its_deadline() {
    let futex = Futex::<Local>::new(1);
    let end = Instant::now() + Duration::from_millis(5);
    assert_eq!(futex.wait(1, Some(end.into())), Waited::TimedOut);
    assert!(Instant::now() >= end);
    let past = Deadline::new(Clock::Monotonic, Duration::ZERO);
    assert_eq!(futex.wait(1, Some(past)), Waited::TimedOut);
}

#[test]
fn a_wake_finds_its_sleeper() {
    let futex = Futex::<Local>::new(1);
    for deadline in [None, Some(Deadline::NEVER)] {
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| futex.wait(1, deadline));
            until_one(|| futex.key().wake(1));
            assert_eq!(sleeper.join().unwrap(), Waited::Woken);
        });
    }
}

#[test]
fn bits_select() {
    let futex = Futex::<Local>::new(1);
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| futex.wait_bits(1, Bits::one(3), None));
        until_one(|| {
            assert_eq!(futex.key().wake_bits(1, Bits::one(4)), 0);
            futex.key().wake_bits(1, Bits::one(3))
        });
        assert_eq!(sleeper.join().unwrap(), Waited::Woken);
    });
}

#[test]
fn a_requeue_loses_nobody() {
    let (from, to) = (Futex::<Local>::new(1), Futex::<Local>::new(2));
    assert_eq!(from.cmp_requeue(2, 0, 1, to.key()), Err(RequeueError::Mismatch));
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| from.wait(1, None));
        until_one(|| from.cmp_requeue(1, 0, 1, to.key()).unwrap().requeued);
        // Miri has no requeue: there, the sleeper is awake already.
        assert_eq!(to.key().wake(1), if cfg!(miri) { 0 } else { 1 });
        assert_eq!(sleeper.join().unwrap(), Waited::Woken);
    });
}

#[test]
fn what_was_written_before_the_word_is_seen_after_the_wait() {
    let (ready, mut data) = (Futex::<Local>::new(0), 0);
    let place = SendPointer(&raw mut data);
    thread::scope(|scope| {
        scope.spawn(|| {
            let place = &place;
            // SAFETY: no thread looks at the data before `ready` says so.
            unsafe { *place.0 = 42 };
            ready.store(1, Release);
            ready.key().wake(1);
        });
        while ready.load(Acquire) == 0 {
            ready.wait(0, None);
        }
        // SAFETY: the writer is done with it: Acquire pairs with its Release.
        assert_eq!(unsafe { *place.0 }, 42);
    });
}

struct SendPointer(*mut u32);
// SAFETY: the test that uses it hands the place over by a release store.
unsafe impl Sync for SendPointer {}

#[test]
fn a_key_outlives_its_futex() {
    let futex = Box::new(Futex::<Local>::new(0));
    let key = futex.key();
    drop(futex);
    assert_eq!(key.wake(0), 0);
}

#[test]
fn ids_differ_and_stay() {
    let mine = tid::current();
    let others: HashSet<_> = thread::scope(|scope| {
        let threads = [scope.spawn(tid::current), scope.spawn(tid::current)];
        threads.map(|thread| thread.join().unwrap()).into()
    });
    assert!(mine != 0 && mine <= ulocks_core::futex::TID_MASK);
    assert!(!others.contains(&mine));
    assert_eq!(tid::current(), mine);
}

#[test]
fn capabilities_can_be_asked() {
    assert!(capabilities().has(Capability::Time64) || cfg!(target_pointer_width = "32"));
    assert!(!capabilities().to_string().is_empty());
}
