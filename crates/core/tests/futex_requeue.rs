//! Moving sleepers between futexes: counts, order, and what stays with a sleeper.

#![cfg(all(world = "machine", not(miri)))]

mod support;

use std::thread;
use support::{Mapping, Sleeper, asleep, until};
use ulocks_core::futex::{Bits, Futex, Global, Local, RequeueError, Requeued, Scope, Waited};
use ulocks_testkit as _;

fn counts_and_order<S: Scope>() {
    let (from, to) = (Futex::<S>::new(1), Futex::<S>::new(2));
    thread::scope(|scope| {
        let earlier = asleep(scope, || to.wait(2, None));
        let mut sleepers: Vec<_> = (0..6).map(|_| asleep(scope, || from.wait(1, None))).collect();
        assert_eq!(from.cmp_requeue(1, 0, 0, to.key()), Ok(Requeued { woken: 0, requeued: 0 }));

        // Two wake, three move, one stays.
        assert_eq!(from.cmp_requeue(1, 2, 3, to.key()), Ok(Requeued { woken: 2, requeued: 3 }));
        let stayed = sleepers.pop().unwrap();
        let moved = sleepers.split_off(2);
        assert!(sleepers.into_iter().map(Sleeper::join).all(|waited| waited == Waited::Woken));
        assert_eq!(from.key().wake(u32::MAX), 1);
        assert_eq!(stayed.join(), Waited::Woken);

        // They stand behind the sleepers that were there before, in their order.
        for sleeper in std::iter::once(earlier).chain(moved) {
            assert_eq!(to.key().wake(1), 1);
            assert_eq!(sleeper.join(), Waited::Woken);
        }
        assert_eq!(to.key().wake(1), 0);
    });
}

#[test]
fn cmp_requeue_counts_and_keeps_the_order() {
    counts_and_order::<Local>();
    counts_and_order::<Global>();
}

#[test]
fn the_largest_counts_mean_all() {
    let (from, to) = (Futex::<Local>::new(1), Futex::<Local>::new(2));
    thread::scope(|scope| {
        let sleepers: Vec<_> = (0..3).map(|_| asleep(scope, || from.wait(1, None))).collect();
        assert_eq!(from.cmp_requeue(1, 0, u32::MAX, to.key()), Ok(Requeued { woken: 0, requeued: 3 }));
        assert_eq!(to.cmp_requeue(2, u32::MAX, u32::MAX, from.key()), Ok(Requeued { woken: 3, requeued: 0 }));
        until(|| sleepers.iter().all(Sleeper::is_finished));
    });
}

#[test]
fn another_value_moves_nobody() {
    let (from, to) = (Futex::<Local>::new(1), Futex::<Local>::new(2));
    thread::scope(|scope| {
        asleep(scope, || from.wait(1, None));
        assert_eq!(from.cmp_requeue(0, 1, 1, to.key()), Err(RequeueError::Mismatch));
        assert_eq!(to.key().wake(1), 0);
        assert_eq!(from.key().wake(1), 1);
    });
}

#[test]
fn bits_stay_with_a_sleeper() {
    let (from, to) = (Futex::<Local>::new(1), Futex::<Local>::new(2));
    thread::scope(|scope| {
        asleep(scope, || from.wait_bits(1, Bits::one(7), None));
        assert_eq!(from.cmp_requeue(1, 0, 1, to.key()), Ok(Requeued { woken: 0, requeued: 1 }));
        assert_eq!(to.key().wake_bits(1, Bits::one(8)), 0);
        assert_eq!(to.key().wake_bits(1, Bits::one(7)), 1);
    });
}

#[test]
fn a_deadline_stays_with_a_sleeper() {
    let (from, to) = (Futex::<Local>::new(1), Futex::<Local>::new(2));
    let soon = ulocks_core::time::Deadline::after(std::time::Duration::from_millis(50));
    thread::scope(|scope| {
        let sleeper = support::started(scope, || from.wait(1, Some(soon)));
        // Under load, the sleep may be over before it is seen: then there is no sleeper to move,
        // which is also right.
        let moved = from.cmp_requeue(1, 0, 1, to.key()).unwrap();
        assert_eq!(moved.woken, 0);
        assert_eq!(sleeper.join(), Waited::TimedOut);
        assert_eq!(to.key().wake(1), 0);
    });
}

#[test]
fn a_futex_that_is_not_mapped_is_an_error_if_shared() {
    let from = Futex::<Global>::new(1);
    let page = Mapping::inaccessible();
    let gone = page.futex::<Global>(0).key();
    assert_eq!(from.cmp_requeue(1, 1, 1, gone), Err(RequeueError::Inaccessible));
    // A private name is an address and no more.
    let from = Futex::<Local>::new(1);
    let gone = page.futex::<Local>(0).key();
    assert_eq!(from.cmp_requeue(1, 1, 1, gone), Ok(Requeued::default()));
}

#[test]
fn errors_say_what_to_do() {
    for (error, advice) in [
        (RequeueError::Mismatch, "look at it again"),
        (RequeueError::Inaccessible, "keep both mapped"),
        (RequeueError::PriorityInheriting, "cmp_requeue_pi"),
    ] {
        assert!(error.to_string().contains(advice), "{error}");
    }
}
