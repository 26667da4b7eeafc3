//! `set` and `set_all` complete the sets that can proceed then. All values are read at one moment.

use crate::steps::{applying, sleeping, with_values};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use ulocks_semarray::{Error, Op, SemArray};

#[test]
fn a_value_that_is_set_completes_sleepers() {
    with_values([0, 7], |scope, array| {
        let three = applying(scope, array, [Op::sub(0, 3)]);
        let two = applying(scope, array, [Op::sub(0, 2)]);
        let zero = applying(scope, array, [Op::wait_zero(1)]);
        array.set(0, 2).unwrap();
        two.returns(Ok(()));
        assert_eq!(array.values(), [0, 7]);
        array.set(1, 0).unwrap();
        zero.returns(Ok(()));
        array.set(0, 4).unwrap();
        three.returns(Ok(()));
        assert_eq!(array.values(), [1, 0]);
    });
}

#[test]
fn a_value_that_is_set_completes_sets() {
    with_values([0, 0, 1], |scope, array| {
        let both = applying(scope, array, [Op::sub(0, 1), Op::sub(1, 1)]);
        let after = applying(scope, array, [Op::wait_zero(2), Op::sub(0, 1), Op::add(1, 1)]);
        array.set(0, 2).unwrap();
        assert_eq!(sleeping(array), [(0, 0), (1, 0), (0, 1)]);
        array.set(2, 0).unwrap();
        after.returns(Ok(()));
        both.returns(Ok(()));
        assert_eq!(array.values(), [0, 0, 0]);
    });
}

#[test]
fn values_that_are_set_are_set_at_once() {
    with_values([0, 0, 1], |scope, array| {
        let both = applying(scope, array, [Op::sub(0, 1), Op::sub(1, 1), Op::wait_zero(2)]);
        let never = applying(scope, array, [Op::sub(0, 5), Op::sub(1, 5).no_wait()]);
        let one = applying(scope, array, [Op::sub(0, 1)]);
        // A smaller value does not help a set that waits for a greater one.
        array.set_all(&[0, 4, 0]).unwrap();
        assert_eq!(sleeping(array), [(3, 0), (0, 0), (0, 0)]);
        array.set_all(&[1, 1, 0]).unwrap();
        both.returns(Ok(()));
        assert_eq!((sleeping(array)[0], array.values()), ((2, 0), vec![0, 0, 0]));
        array.set_all(&[6, 0, 9]).unwrap();
        never.returns(Err(Error::WouldBlock));
        one.returns(Ok(()));
        assert_eq!(array.values(), [5, 0, 9]);
    });
}

#[test]
fn a_sleeper_counts_where_it_stops_now() {
    with_values([1, 1, 0], |scope, array| {
        let sleeper = applying(scope, array, [Op::sub(0, 1), Op::wait_zero(2), Op::sub(1, 2)]);
        assert_eq!(sleeping(array), [(0, 0), (1, 0), (0, 0)]);
        array.set(2, 5).unwrap();
        assert_eq!(sleeping(array), [(0, 0), (0, 0), (0, 1)]);
        array.set(0, 0).unwrap();
        assert_eq!(sleeping(array), [(1, 0), (0, 0), (0, 0)]);
        array.set_all(&[1, 0, 0]).unwrap();
        assert_eq!(sleeping(array), [(0, 0), (1, 0), (0, 0)]);
        array.set(1, 2).unwrap();
        sleeper.returns(Ok(()));
        assert_eq!(array.values(), [0, 0, 0]);
    });
}

#[test]
fn values_are_of_one_moment() {
    const TOTAL: u32 = 12;
    let array = SemArray::with_values([TOTAL, 0, 0, 0]);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for from in 0..3 {
            let (array, over) = (&array, &over);
            scope.spawn(move || {
                while !over.load(Relaxed) {
                    for step in 1..4 {
                        let to = (from + step) % 4;
                        _ = array.try_apply(&[Op::sub(from, 1), Op::add(to, 1)]);
                        _ = array.try_apply(&[Op::add(from, 1), Op::sub(to, 1)]);
                        _ = array.try_apply(&[Op::sub(to, 2), Op::add(from, 1), Op::add(3, 1)]);
                    }
                }
            });
        }
        for _ in 0..20_000 {
            let values = array.values();
            assert_eq!(values.iter().sum::<u32>(), TOTAL, "{values:?}");
        }
        over.store(true, Relaxed);
    });
}

/// No read shows what a set makes of a value before the set stops, or before it takes that back
/// itself.
#[test]
fn a_value_is_never_that_of_half_a_set() {
    let array = SemArray::with_values([1, 0]);
    let (over, tried) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Relaxed) {
                _ = array.try_apply(&[Op::sub(0, 1), Op::sub(1, 1)]).unwrap_err();
                array.apply(&[Op::sub(0, 1), Op::add(1, 1), Op::sub(1, 1), Op::add(0, 1)]).unwrap();
                tried.fetch_add(1, Relaxed);
            }
        });
        while tried.load(Relaxed) < 100_000 {
            let seen = (array.value(0), array.value(1), array.try_apply(&[Op::wait_zero(0)]));
            if seen != (Ok(1), Ok(0), Err(Error::WouldBlock)) {
                over.store(true, Relaxed);
                panic!("{seen:?}");
            }
        }
        over.store(true, Relaxed);
    });
}
