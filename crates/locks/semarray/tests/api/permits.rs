//! Permits: what a set did is given back.

use crate::steps::{applying, sleeping, with_values};
use std::time::{Duration, Instant};
use ulocks_semarray::{Builder, Error, Op, SemArray, Set};
use ulocks_testkit::cancel::cancel;

#[test]
fn a_permit_gives_back_what_the_set_did() {
    let array = SemArray::with_values([3, 0, 0]);
    for (set, taken) in [
        (Set::new().sub(0, 2), [1, 0, 0]),
        (Set::new().sub(0, 2).add(1, 5), [1, 5, 0]),
        (Set::new().wait_zero(1).add(1, 1).wait_zero(2), [3, 1, 0]),
        // What a set takes back itself is not given back again.
        (Set::new().sub(0, 3).add(0, 2), [2, 0, 0]),
        (Set::new().add(1, 3).sub(1, 3), [3, 0, 0]),
        (Set::new().add(2, 1).sub(0, 1).add(2, 1).sub(0, 1), [1, 0, 2]),
        (Set::new().wait_zero(2), [3, 0, 0]),
        (Set::new(), [3, 0, 0]),
    ] {
        let permit = array.acquire(set.clone()).unwrap();
        assert_eq!((permit.ops(), array.values()), (&set[..], taken.to_vec()));
        drop(permit);
        assert_eq!(array.values(), [3, 0, 0], "{set:?}");
        array.try_acquire(&set[..]).unwrap().forget();
        assert_eq!(array.values(), taken);
        array.set_all(&[3, 0, 0]).unwrap();
    }
}

#[test]
fn each_way_to_get_a_permit() {
    let array = SemArray::with_values([1]);
    let one = [Op::sub(0, 1)];
    let held = array.acquire(Op::sub(0, 1)).unwrap();
    assert_eq!(array.try_acquire(one).map(drop), Err(Error::WouldBlock));
    assert_eq!(array.acquire_for(one, Duration::from_micros(10)).map(drop), Err(Error::TimedOut));
    assert_eq!(array.acquire_until(one, Instant::now()).map(drop), Err(Error::TimedOut));
    assert_eq!(array.acquire([Op::sub(1, 1)]).map(drop), Err(Error::IndexOutOfRange { index: 1, len: 1 }));
    drop(held);
    drop(array.acquire_for(one, Duration::ZERO).unwrap());
    drop(array.acquire_until(one, Instant::now()).unwrap());
    drop(array.try_acquire(one).unwrap());
    assert_eq!(array.value(0), Ok(1));
    assert_eq!(format!("{:?}", array.acquire(Set::new()).unwrap()), "Permit([])");
}

/// To give back never waits: a value stops at zero and at the limit.
#[test]
fn what_is_not_there_any_more_is_not_given_back() {
    let array: SemArray = Builder::with_values([4, 0, 1]).limit(5).build().unwrap();
    let permit = array.acquire(Set::new().sub(0, 4).add(1, 3).sub(2, 1)).unwrap();
    array.apply(&[Op::add(0, 3), Op::sub(1, 2)]).unwrap();
    drop(permit);
    assert_eq!(array.values(), [5, 0, 1]);
    // Net changes meet the bounds, not each operation.
    let permit = array.acquire(Set::new().add(1, 5).sub(1, 3)).unwrap();
    array.apply(&[Op::sub(1, 1)]).unwrap();
    drop(permit);
    assert_eq!(array.values(), [5, 0, 1]);
}

#[test]
fn giving_back_completes_sleepers() {
    with_values([2, 0], |scope, array| {
        let permit = array.acquire(Set::new().sub(0, 2).add(1, 1)).unwrap();
        let one = applying(scope, array, [Op::sub(0, 1)]);
        let zero = applying(scope, array, [Op::wait_zero(1)]);
        let several = applying(scope, array, [Op::wait_zero(1), Op::sub(0, 1), Op::add(1, 1)]);
        drop(permit);
        for sleeper in [one, zero, several] {
            sleeper.returns(Ok(()));
        }
        assert_eq!(array.values(), [0, 1]);
    });
    // When it stops at zero, too.
    with_values([0, 0], |scope, array| {
        let permit = array.acquire(Set::new().add(0, 3).add(1, 1)).unwrap();
        array.apply(&[Op::sub(0, 2)]).unwrap();
        let zero = applying(scope, array, [Op::wait_zero(0), Op::add(1, 5)]);
        drop(permit);
        zero.returns(Ok(()));
        assert_eq!(array.values(), [0, 5]);
    });
    // A permit of one operation.
    with_values([1], |scope, array| {
        let permit = array.acquire(Op::sub(0, 1)).unwrap();
        let next = applying(scope, array, [Op::sub(0, 1)]);
        drop(permit);
        next.returns(Ok(()));
        assert_eq!(array.value(0), Ok(0));
    });
}

/// No set barges into a hand-over: an arriving set cannot have what a waiting one was given.
#[test]
fn what_was_handed_over_is_gone() {
    with_values([1], |scope, array| {
        let permit = array.acquire(Op::sub(0, 1)).unwrap();
        let next = applying(scope, array, [Op::sub(0, 1)]);
        drop(permit);
        assert_eq!(array.try_apply(&[Op::sub(0, 1)]), Err(Error::WouldBlock));
        next.returns(Ok(()));
        assert_eq!(sleeping(array), [(0, 0)]);
    });
}

#[test]
fn a_closed_array_takes_nothing_back() {
    let array = SemArray::with_values([2, 0]);
    let (one, several) =
        (array.acquire(Op::sub(0, 1)).unwrap(), array.acquire(Set::new().sub(0, 1).add(1, 2)).unwrap());
    array.close();
    drop((one, several));
    assert_eq!(array.values(), [0, 2]);
}

#[test]
fn a_panic_gives_back() {
    let array = SemArray::with_values([1]);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _permit = array.acquire(Op::sub(0, 1)).unwrap();
        std::panic::resume_unwind(Box::new(7));
    }));
    assert!(outcome.is_err());
    assert_eq!(array.value(0), Ok(1));
}

/// Futures that are made, polled and dropped at random, by four threads: nothing is lost.
#[test]
fn futures_that_are_dropped_give_everything_back() {
    let array = SemArray::with_values([2, 3, 1]);
    let set = |which| match which {
        1 => Set::new().sub(0, 1),
        2 => Set::new().sub(0, 1).sub(1, 1),
        _ => Set::new().sub(1, 1).sub(2, 1),
    };
    let acquired =
        cancel(|which| array.acquire_async(set(which)), |_, permit| drop(permit.expect("it is open")));
    assert!(acquired > 0, "nothing was ever acquired");
    assert_eq!(array.values(), [2, 3, 1]);
}
