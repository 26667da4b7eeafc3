//! `close`: waiting sets and arriving sets get the error.

use crate::steps::{applying, asleep, sleeping, with, with_values};
use std::time::{Duration, Instant};
use ulocks_core::time::Deadline;
use ulocks_semarray::{Builder, Error, Fairness, Op, SemArray};

#[test]
fn sleepers_of_every_kind_get_closed() {
    let fairnesses = [
        Fairness::Barging,
        Fairness::Strict { after: Duration::ZERO },
        Fairness::Strict { after: Duration::from_secs(1_000) },
    ];
    for fairness in fairnesses {
        with(Builder::with_values([1, 0, 5]).fairness(fairness).build().unwrap(), |scope, array| {
            let far = Instant::now() + Duration::from_secs(1_000);
            let sleepers = [
                applying(scope, array, [Op::sub(1, 1)]),
                applying(scope, array, [Op::wait_zero(2)]),
                applying(scope, array, [Op::sub(0, 1), Op::sub(1, 1)]),
                applying(scope, array, [Op::wait_zero(1), Op::wait_zero(2), Op::add(1, 1)]),
                applying(scope, array, [Op::add(0, 1), Op::sub(0, 2), Op::sub(0, 1)]),
                asleep(scope, array, |array| array.apply_for(&[Op::sub(1, 2)], Duration::from_secs(1_000))),
                asleep(scope, array, move |array| array.apply_until(&[Op::sub(0, 2), Op::sub(1, 2)], far)),
                asleep(scope, array, |array| array.apply_interruptible(&[Op::sub(1, 3)], None)),
                asleep(scope, array, move |array| {
                    array.apply_interruptible(&[Op::sub(0, 1), Op::sub(1, 3)], Some(Deadline::from(far)))
                }),
                asleep(scope, array, |array| array.acquire([Op::sub(1, 1)]).map(drop)),
            ];
            let values = array.values();
            array.close();
            assert!(array.is_closed());
            assert_eq!(sleeping(array), [(0, 0); 3], "{fairness:?}");
            sleepers.into_iter().for_each(|sleeper| sleeper.returns(Err(Error::Closed)));
            assert_eq!(array.values(), values);
        });
    }
}

#[test]
fn an_arriving_set_gets_closed() {
    let array = SemArray::with_values([3, 0]);
    array.close();
    array.close();
    for ops in [
        &[Op::sub(0, 1)][..],
        &[Op::add(1, 1)],
        &[Op::wait_zero(1)],
        &[Op::wait_zero(0)],
        &[Op::sub(1, 1)],
        &[Op::sub(1, 1).no_wait()],
        &[Op::sub(0, 0)],
        &[Op::sub(0, 1), Op::add(1, 1)],
        &[Op::sub(1, 1), Op::add(0, 1)],
    ] {
        assert_eq!(array.apply(ops), Err(Error::Closed), "{ops:?}");
        assert_eq!(array.try_apply(ops), Err(Error::Closed), "{ops:?}");
        assert_eq!(array.apply_for(ops, Duration::from_secs(1_000)), Err(Error::Closed), "{ops:?}");
        assert_eq!(array.apply_interruptible(ops, None), Err(Error::Closed), "{ops:?}");
        assert_eq!(array.acquire(ops).map(drop), Err(Error::Closed), "{ops:?}");
    }
    assert_eq!((array.set(0, 1), array.set_all(&[1, 1])), (Err(Error::Closed), Err(Error::Closed)));
    // A set that is in error fails so in a closed array, too, and values can be read.
    assert_eq!(array.apply(&[Op::add(2, 1)]), Err(Error::IndexOutOfRange { index: 2, len: 2 }));
    assert_eq!((array.values(), array.value(0)), (vec![3, 0], Ok(3)));
    assert_eq!(sleeping(&array), [(0, 0); 2]);
}

/// A set that is about to wait while the array is closed gets the error, and no set is performed
/// after that.
#[test]
fn closing_beside_threads_that_come_and_go() {
    let sets = [
        vec![Op::sub(0, 1)],
        vec![Op::sub(1, 1), Op::sub(0, 1)],
        vec![Op::sub(0, 1), Op::sub(1, 1), Op::wait_zero(0)],
    ];
    for round in 0..300 {
        with_values([1, 1], |scope, array| {
            let workers = sets.each_ref().map(|set| {
                let set = set.clone();
                scope.spawn(move || {
                    loop {
                        match array.acquire(&set[..]) {
                            Ok(permit) => drop(permit),
                            Err(error) => return error,
                        }
                    }
                })
            });
            // In time, not in pauses: where QEMU translates the instructions, a pause gives the CPU
            // to another one.
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_nanos(400) * round {}
            array.close();
            let values = array.values();
            for worker in workers {
                assert_eq!(worker.join().unwrap(), Error::Closed);
            }
            assert_eq!(array.values(), values, "a closed array has changed");
        });
    }
}
