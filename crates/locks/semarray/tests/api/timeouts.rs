//! Deadlines and signals: a set that times out changes nothing.

use crate::steps::{STRUCK, Sleeper, applying, asleep, sleeping, with, with_values};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use ulocks_core::time::Deadline;
use ulocks_semarray::{Builder, Error, Fairness, Op, SemArray};
use ulocks_testkit::task;

const SOON: Duration = Duration::from_millis(5);

/// Sets that stop on `[1, 0, 2]`, simple and complex, at their first and at a later operation.
fn stuck() -> Vec<Vec<Op>> {
    vec![
        vec![Op::sub(1, 1)],
        vec![Op::wait_zero(0)],
        vec![Op::sub(0, 1), Op::sub(1, 1)],
        vec![Op::sub(1, 1), Op::sub(0, 1)],
        vec![Op::wait_zero(1), Op::add(1, 1), Op::sub(0, 2)],
        vec![Op::sub(2, 1), Op::sub(2, 2)],
        vec![Op::sub(0, 1), Op::wait_zero(0), Op::sub(2, 1), Op::wait_zero(2)],
    ]
}

#[test]
fn a_deadline_ends_the_sleep_and_changes_nothing() {
    for fairness in [Fairness::Barging, Fairness::Strict { after: Duration::from_millis(1) }] {
        with(Builder::with_values([1, 0, 2]).fairness(fairness).build().unwrap(), |scope, array| {
            let start = Instant::now();
            let sleepers: Vec<_> = stuck()
                .into_iter()
                .map(|ops| Sleeper::new(scope, move || array.apply_for(&ops, Duration::from_millis(50))))
                .collect();
            sleepers.into_iter().for_each(|sleeper| sleeper.returns(Err(Error::TimedOut)));
            assert!(start.elapsed() >= Duration::from_millis(50), "they gave up early");
            assert_eq!((array.values(), sleeping(array)), (vec![1, 0, 2], vec![(0, 0); 3]));
            // No set is in the way any more.
            array.apply(&[Op::sub(0, 1), Op::add(1, 1), Op::sub(2, 2)]).unwrap();
        });
    }
}

/// A waiter is served and times out at the same time: it has the unit, or the unit is still there.
#[test]
fn a_unit_is_not_lost_between_a_deadline_and_an_addition() {
    for ops in [vec![Op::sub(0, 1)], vec![Op::sub(0, 1), Op::sub(1, 1)], vec![Op::sub(1, 1), Op::sub(0, 1)]] {
        with_values([0, 0], |scope, array| {
            let had = Arc::new(AtomicUsize::new(0));
            for id in 0..3 {
                let (had, ops) = (Arc::clone(&had), ops.clone());
                scope.spawn(move || {
                    for nth in 0..500 {
                        match array.apply_for(&ops, Duration::from_micros((nth * 7 + id * 13) % 120)) {
                            Ok(()) => _ = had.fetch_add(1, Relaxed),
                            Err(error) => assert_eq!(error, Error::TimedOut),
                        }
                    }
                });
            }
            let back: Vec<_> = ops.iter().map(|op| Op::add(op.index(), 1)).collect();
            let mut given = 0;
            while Arc::strong_count(&had) > 1 {
                if array.values() == [0, 0] {
                    array.apply(&back).unwrap();
                    given += 1;
                }
                std::thread::yield_now();
            }
            let left = array.value(0).unwrap() as usize;
            assert_eq!(had.load(Relaxed) + left, given, "units were lost or made");
        });
    }
}

#[test]
fn a_signal_ends_an_interruptible_sleep() {
    let far = Deadline::after(Duration::from_secs(1_000));
    for fairness in [Fairness::Barging, Fairness::Strict { after: Duration::ZERO }] {
        for deadline in [None, Some(far), Some(Deadline::NEVER.interruptible())] {
            for ops in stuck() {
                with(Builder::with_values([1, 0, 2]).fairness(fairness).build().unwrap(), |scope, array| {
                    let call = move |array: &SemArray| array.apply_interruptible(&ops, deadline);
                    asleep(scope, array, call).ends_interrupted();
                    assert_eq!((array.values(), sleeping(array)), (vec![1, 0, 2], vec![(0, 0); 3]));
                });
            }
        }
    }
    // Its deadline ends the sleep too.
    with_values([0], |_, array| {
        let soon = Some(Deadline::after(SOON));
        assert_eq!(array.apply_interruptible(&[Op::sub(0, 1)], soon), Err(Error::TimedOut));
    });
}

/// A signal ends no other sleep, whatever its deadline says, and moves no deadline.
#[test]
fn a_signal_is_nothing_to_others() {
    with_values([0, 0], |scope, array| {
        let sets = [vec![Op::sub(0, 1)], vec![Op::sub(0, 1), Op::sub(1, 1)]];
        let deadlines = [None, Some(Deadline::NEVER.interruptible())];
        for (ops, deadline) in
            sets.into_iter().flat_map(|ops| deadlines.map(|deadline| (ops.clone(), deadline)))
        {
            let own = ops.clone();
            let sleeper = asleep(scope, array, move |array| match deadline {
                Some(deadline) => array.apply_until(&own, deadline),
                None => array.apply(&own),
            });
            task::until_asleep(&[sleeper.id()]);
            let before = STRUCK.load(Relaxed);
            sleeper.strike_until(|| STRUCK.load(Relaxed) > before + 5);
            assert_eq!(sleeping(array), [(1, 0), (0, 0)]);
            array.apply(&[Op::add(0, 1), Op::add(1, 1)]).unwrap();
            sleeper.returns(Ok(()));
            array.set_all(&[0, 0]).unwrap();

            let sleeper = Sleeper::new(scope, move || array.apply_for(&ops, Duration::from_millis(40)));
            sleeper.strike_until(|| sleeper.is_over());
            sleeper.returns(Err(Error::TimedOut));
        }
    });
}

/// A set that has timed out stops no other set any more.
#[test]
fn a_sleeper_that_times_out_lets_later_ones_pass() {
    with_values([1, 0], |scope, array| {
        assert_eq!(array.apply_for(&[Op::sub(0, 2)], SOON), Err(Error::TimedOut));
        assert_eq!(array.apply_for(&[Op::sub(0, 1), Op::sub(1, 1)], SOON), Err(Error::TimedOut));
        let simple = applying(scope, array, [Op::sub(1, 1)]);
        array.apply(&[Op::sub(0, 1), Op::add(1, 1)]).unwrap();
        simple.returns(Ok(()));
    });
}
