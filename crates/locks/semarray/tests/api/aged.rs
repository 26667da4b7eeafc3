//! `Fairness::Strict`: no later set passes an aged one, and this keeps no thread waiting for ever.

use crate::steps::{Sleeper, applying, interruptible, sleeping, with_aging};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use ulocks_semarray::{Error, Fairness, Op};

const AT_ONCE: Fairness = Fairness::Strict { after: Duration::ZERO };
const NEVER: Fairness = Fairness::Strict { after: Duration::from_secs(1_000_000) };

#[test]
fn an_arriving_set_takes_nothing_that_an_aged_set_needs() {
    with_aging([1, 1], AT_ONCE, |scope, array| {
        let aged = applying(scope, array, [Op::sub(0, 2)]);
        for take in [&[Op::sub(0, 1)][..], &[Op::sub(0, 1).no_wait()], &[Op::sub(1, 1), Op::sub(0, 1)]] {
            assert_eq!(array.try_apply(take), Err(Error::WouldBlock), "{take:?}");
            assert_eq!(array.values(), [1, 1]);
        }
        assert_eq!(array.apply(&[Op::sub(0, 1).no_wait()]), Err(Error::WouldBlock));
        assert_eq!((array.values(), sleeping(array)), (vec![1, 1], vec![(1, 0), (0, 0)]));
        // An operation on another semaphore, operations that change nothing, and one that gives.
        array.apply(&[Op::sub(1, 1)]).unwrap();
        array.apply(&[Op::add(0, 0), Op::sub(0, 0), Op::wait_zero(1)]).unwrap();
        array.apply(&[Op::add(0, 1)]).unwrap();
        aged.returns(Ok(()));
        assert_eq!(array.values(), [0, 0]);
    });
}

#[test]
fn an_aged_set_that_waits_for_zero_stops_additions() {
    with_aging([1], AT_ONCE, |scope, array| {
        let aged = applying(scope, array, [Op::wait_zero(0), Op::add(0, 7)]);
        assert_eq!(array.try_apply(&[Op::add(0, 1)]), Err(Error::WouldBlock));
        array.apply(&[Op::sub(0, 1)]).unwrap();
        aged.returns(Ok(()));
        assert_eq!(array.value(0), Ok(7));
    });
}

/// If a set that gives as well as takes were stopped, perhaps no set would give the aged one what
/// it needs.
#[test]
fn a_set_that_gives_to_the_aged_set_passes() {
    with_aging([1, 0], AT_ONCE, |scope, array| {
        let aged = applying(scope, array, [Op::sub(0, 1), Op::sub(1, 1)]);
        array.apply(&[Op::sub(0, 1), Op::add(1, 1)]).unwrap();
        assert_eq!((array.values(), sleeping(array)), (vec![0, 1], vec![(1, 0), (0, 0)]));
        array.apply(&[Op::add(0, 1)]).unwrap();
        aged.returns(Ok(()));
    });
}

/// The aged set cannot use what comes after the operation at which it stops.
#[test]
fn an_aged_set_stops_others_as_far_as_it_has_got() {
    with_aging([0, 1], AT_ONCE, |scope, array| {
        let aged = applying(scope, array, [Op::sub(0, 1), Op::sub(1, 1)]);
        array.apply(&[Op::sub(1, 1)]).unwrap();
        array.apply(&[Op::add(0, 1)]).unwrap();
        assert_eq!(sleeping(array), [(0, 0), (1, 0)]);
        // The aged set has got further.
        assert_eq!(array.try_apply(&[Op::sub(0, 1)]), Err(Error::WouldBlock));
        array.apply(&[Op::add(1, 1)]).unwrap();
        aged.returns(Ok(()));
        assert_eq!(array.values(), [0, 0]);
    });
}

/// When an aged set times out, the sets proceed that stopped for it.
#[test]
fn a_set_that_stopped_for_an_aged_one_proceeds_when_that_leaves() {
    with_aging([1, 0], AT_ONCE, |scope, array| {
        let aged = interruptible(scope, array, [Op::sub(0, 1), Op::sub(1, 1)]);
        let behind = Sleeper::new(scope, || array.apply(&[Op::sub(0, 1)]));
        aged.ends_interrupted();
        behind.returns(Ok(()));
        assert_eq!(array.values(), [0, 0]);
    });
}

#[test]
fn the_young_are_passed() {
    with_aging([1, 0], NEVER, |scope, array| {
        let two = applying(scope, array, [Op::sub(0, 2)]);
        let both = applying(scope, array, [Op::sub(0, 1), Op::sub(1, 1)]);
        array.apply(&[Op::sub(0, 1)]).unwrap();
        array.apply(&[Op::add(0, 3), Op::add(1, 1)]).unwrap();
        two.returns(Ok(()));
        both.returns(Ok(()));
    });
}

/// Two workers that take turns leave no moment at which both semaphores are free. A manager that
/// needs both gets them.
#[test]
fn a_manager_gets_in() {
    with_aging([1, 1], Fairness::Strict { after: Duration::from_millis(1) }, |scope, array| {
        let over = AtomicBool::new(false);
        let over = &*Box::leak(Box::new(over));
        for own in 0..2 {
            for _ in 0..2 {
                scope.spawn(move || {
                    while !over.load(Relaxed) {
                        let _held = array.acquire(Op::sub(own, 1)).unwrap();
                        std::hint::spin_loop();
                    }
                });
            }
        }
        for _ in 0..20 {
            drop(array.acquire([Op::sub(0, 1), Op::sub(1, 1)]).unwrap());
        }
        over.store(true, Relaxed);
    });
}

/// A thread holds what the aged set needs, and asks for more before it gives that back. It would
/// wait for the aged set, which waits for it.
#[test]
fn a_holder_that_waits_is_let_pass() {
    with_aging([1, 1], AT_ONCE, |scope, array| {
        let held = array.acquire(Op::sub(0, 1)).unwrap();
        let aged = applying(scope, array, [Op::sub(1, 1), Op::sub(0, 1)]);
        // The set stops for the aged one at first, and that one waits for what this thread holds.
        let more = array.acquire(Op::sub(1, 1)).unwrap();
        assert_eq!(sleeping(array), [(0, 0), (1, 0)]);
        drop(more);
        drop(held);
        aged.returns(Ok(()));
    });
}

/// The aged set is that of a task, which cannot look at the clock.
#[test]
fn a_holder_that_waits_is_let_pass_by_a_task() {
    with_aging([1, 1], AT_ONCE, |_, array| {
        let mut aged = Box::pin(array.acquire_async([Op::sub(1, 1), Op::sub(0, 1)]));
        let held = array.acquire(Op::sub(0, 1)).unwrap();
        assert!(polled(&mut aged).is_none());
        let more = array.acquire(Op::sub(1, 1)).unwrap();
        assert!(polled(&mut aged).is_none());
        drop(more);
        drop(held);
        assert!(polled(&mut aged).is_some());
    });
}

/// Whoever gives back looks at the clock of a task's set.
#[test]
fn the_set_of_a_task_becomes_aged_in_time() {
    for (after, is_aged) in [(Duration::from_millis(1), true), (Duration::from_secs(1_000_000), false)] {
        with_aging([1], Fairness::Strict { after }, |_, array| {
            let mut both = Box::pin(array.acquire_async(Op::sub(0, 2)));
            assert!(polled(&mut both).is_none());
            std::thread::sleep(Duration::from_millis(2));
            drop(array.acquire(Op::sub(0, 1)).unwrap());
            let taken = array.try_apply(&[Op::sub(0, 1)]);
            assert_eq!(taken, if is_aged { Err(Error::WouldBlock) } else { Ok(()) });
        });
        with_aging([1], Fairness::Strict { after }, |_, array| {
            let mut none = Box::pin(array.acquire_async(Op::wait_zero(0)));
            assert!(polled(&mut none).is_none());
            std::thread::sleep(Duration::from_millis(2));
            array.apply(&[Op::add(0, 1)]).unwrap();
            array.apply(&[Op::sub(0, 1)]).unwrap();
            let added = array.try_apply(&[Op::add(0, 1)]);
            assert_eq!(added, if is_aged { Err(Error::WouldBlock) } else { Ok(()) });
        });
    }
}

fn polled<F: Future>(future: &mut Pin<Box<F>>) -> Option<F::Output> {
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// A task holds what the aged set of another task needs, and asks for more. No thread waits. The
/// next poll, and a set that would have to wait, look at the clock.
#[test]
fn a_task_that_holds_is_let_pass() {
    for by_poll in [true, false] {
        with_aging([1, 1], AT_ONCE, |_, array| {
            let held = array.acquire(Op::sub(0, 1)).unwrap();
            let mut aged = Box::pin(array.acquire_async([Op::sub(1, 1), Op::sub(0, 1)]));
            assert!(polled(&mut aged).is_none());
            let mut more = Box::pin(array.acquire_async(Op::sub(1, 1)));
            assert!(polled(&mut more).is_none(), "it stops for the aged set at first");
            std::thread::sleep(Duration::from_millis(15));
            if !by_poll {
                assert_eq!(array.try_apply(&[Op::sub(1, 1)]), Err(Error::WouldBlock));
                assert_eq!(array.values(), [0, 0], "nobody was let pass");
            }
            drop((polled(&mut more).expect("it was let pass"), held));
            assert!(polled(&mut aged).is_some());
        });
    }
}

/// The same as a way of life.
#[test]
fn holders_that_ask_for_more_do_not_hang() {
    for after in [Duration::ZERO, Duration::from_micros(200)] {
        with_aging([1, 1, 1], Fairness::Strict { after }, |scope, array| {
            let rounds = &*Box::leak(Box::new(AtomicU32::new(0)));
            for id in 0..3 {
                scope.spawn(move || {
                    for _ in 0..30 {
                        match id {
                            // In an order, so that by themselves they do not deadlock.
                            0 => {
                                let _first = array.acquire(Op::sub(0, 1)).unwrap();
                                let _second = array.acquire(Op::sub(1, 1)).unwrap();
                                let _third = array.acquire(Op::sub(2, 1)).unwrap();
                            }
                            1 => drop(array.acquire([Op::sub(2, 1), Op::sub(1, 1), Op::sub(0, 1)]).unwrap()),
                            _ => {
                                let _first = array.acquire([Op::sub(0, 1), Op::sub(1, 1)]).unwrap();
                                let _second = array.acquire(Op::sub(2, 1)).unwrap();
                            }
                        }
                        rounds.fetch_add(1, Relaxed);
                    }
                });
            }
        });
    }
}
