//! Which set is served first.

use crate::steps::{applying, asleep, interruptible, sleeping, with_values};
use ulocks_semarray::Op;

#[test]
fn the_oldest_that_can_proceed_does() {
    // 14: the older one needs too much.
    with_values([0], |scope, array| {
        let three = applying(scope, array, [Op::sub(0, 3)]);
        let one = applying(scope, array, [Op::sub(0, 1)]);
        let two = applying(scope, array, [Op::sub(0, 2)]);
        array.apply(&[Op::add(0, 1)]).unwrap();
        one.returns(Ok(()));
        assert_eq!(sleeping(array), [(2, 0)]);
        array.apply(&[Op::add(0, 3)]).unwrap();
        three.returns(Ok(()));
        assert_eq!((sleeping(array), array.value(0)), (vec![(1, 0)], Ok(0)));
        // Five at once are enough for this one, and three are left.
        array.apply(&[Op::add(0, 5)]).unwrap();
        two.returns(Ok(()));
        assert_eq!(array.value(0), Ok(3));
    });
}

#[test]
fn sets_that_need_the_same_go_in_their_order() {
    with_values([0, 0], |scope, array| {
        let crowd: Vec<_> = (0..10)
            .map(|nth| match nth % 3 {
                0 => asleep(scope, array, |array| array.apply(&[Op::sub(0, 1)])),
                1 => asleep(scope, array, |array| array.apply(&[Op::sub(0, 1), Op::add(1, 1)])),
                _ => asleep(scope, array, |array| array.apply(&[Op::add(1, 1), Op::sub(0, 1)])),
            })
            .collect();
        for (nth, sleeper) in crowd.into_iter().enumerate() {
            array.apply(&[Op::add(0, 1)]).unwrap();
            sleeper.returns(Ok(()));
            assert_eq!(sleeping(array)[0], (9 - nth, 0));
        }
    });
}

#[test]
fn an_arriving_set_is_tried_first() {
    with_values([1, 0], |scope, array| {
        let two = applying(scope, array, [Op::sub(0, 2)]);
        let both = applying(scope, array, [Op::sub(0, 1), Op::sub(1, 1)]);
        array.apply(&[Op::sub(0, 1)]).unwrap();
        assert_eq!(array.values(), [0, 0]);
        // A set may take again what it brings, although that would be enough for waiting sets.
        array.apply(&[Op::add(0, 2), Op::sub(0, 2)]).unwrap();
        assert_eq!(sleeping(array), [(2, 0), (0, 0)]);
        array.apply(&[Op::add(0, 3), Op::add(1, 1)]).unwrap();
        two.returns(Ok(()));
        both.returns(Ok(()));
        assert_eq!(array.values(), [0, 0]);
    });
}

#[test]
fn sets_that_change_nothing_go_first() {
    with_values([1, 1], |scope, array| {
        // Older, and it would put an end to the zero.
        let changes = applying(scope, array, [Op::wait_zero(0), Op::add(0, 1)]);
        let looks = applying(scope, array, [Op::wait_zero(0)]);
        let looks_twice = applying(scope, array, [Op::wait_zero(0), Op::wait_zero(0), Op::add(1, 0)]);
        array.apply(&[Op::sub(0, 1)]).unwrap();
        for sleeper in [changes, looks, looks_twice] {
            sleeper.returns(Ok(()));
        }
        assert_eq!(array.values(), [1, 1]);
    });
    with_values([1], |scope, array| {
        let first = applying(scope, array, [Op::wait_zero(0), Op::add(0, 1)]);
        let second = applying(scope, array, [Op::wait_zero(0), Op::add(0, 1)]);
        array.apply(&[Op::sub(0, 1)]).unwrap();
        first.returns(Ok(()));
        assert_eq!((sleeping(array), array.value(0)), (vec![(0, 1)], Ok(1)));
        array.set(0, 0).unwrap();
        second.returns(Ok(()));
    });
}

/// 18: a set that moves to another semaphore keeps its age.
#[test]
fn a_sleeper_keeps_its_age_when_it_moves() {
    with_values([0, 0], |scope, array| {
        let older = applying(scope, array, [Op::sub(0, 1), Op::sub(1, 1)]);
        let younger = applying(scope, array, [Op::sub(1, 1)]);
        assert_eq!(sleeping(array), [(1, 0), (1, 0)]);
        array.apply(&[Op::add(0, 1)]).unwrap();
        assert_eq!(sleeping(array), [(0, 0), (2, 0)]);
        array.apply(&[Op::add(1, 1)]).unwrap();
        older.returns(Ok(()));
        assert_eq!((sleeping(array), array.values()), (vec![(0, 0), (1, 0)], vec![0, 0]));
        array.apply(&[Op::add(1, 1)]).unwrap();
        younger.returns(Ok(()));
    });
    // Between two others, and back again.
    with_values([0, 0], |scope, array| {
        let first = applying(scope, array, [Op::sub(1, 1)]);
        let moves = applying(scope, array, [Op::sub(0, 1), Op::sub(1, 1)]);
        let last = applying(scope, array, [Op::sub(1, 1)]);
        for _ in 0..3 {
            array.apply(&[Op::add(0, 1)]).unwrap();
            assert_eq!(sleeping(array), [(0, 0), (3, 0)]);
            array.apply(&[Op::sub(0, 1)]).unwrap();
            assert_eq!(sleeping(array), [(1, 0), (2, 0)]);
        }
        array.apply(&[Op::add(0, 1)]).unwrap();
        for (sleeper, left) in [(first, 2), (moves, 1), (last, 0)] {
            array.apply(&[Op::add(1, 1)]).unwrap();
            sleeper.returns(Ok(()));
            assert_eq!(sleeping(array), [(0, 0), (left, 0)]);
        }
    });
}

/// A set that has proceeded may help one that is older than the next ones.
#[test]
fn after_each_that_proceeds_it_begins_with_the_oldest() {
    with_values([0, 0, 0], |scope, array| {
        let oldest = applying(scope, array, [Op::sub(1, 1), Op::sub(0, 1)]);
        let helper = applying(scope, array, [Op::sub(0, 1), Op::add(1, 1)]);
        let youngest = applying(scope, array, [Op::sub(0, 1), Op::add(2, 1)]);
        array.apply(&[Op::add(0, 2)]).unwrap();
        helper.returns(Ok(()));
        oldest.returns(Ok(()));
        assert_eq!((sleeping(array), array.values()), (vec![(1, 0), (0, 0), (0, 0)], vec![0, 0, 0]));
        array.apply(&[Op::add(0, 1)]).unwrap();
        youngest.returns(Ok(()));
    });
}

/// A set that times out lets no other set proceed, and leaves the others in their order.
#[test]
fn a_sleeper_that_times_out_leaves_the_others_in_their_order() {
    with_values([0, 0], |scope, array| {
        let first = applying(scope, array, [Op::sub(0, 1), Op::sub(1, 1)]);
        let gone = interruptible(scope, array, [Op::sub(0, 1), Op::sub(1, 1)]);
        let gone_alone = interruptible(scope, array, [Op::sub(0, 1)]);
        let last = applying(scope, array, [Op::sub(0, 1), Op::sub(1, 1)]);
        gone.ends_interrupted();
        gone_alone.ends_interrupted();
        assert_eq!(sleeping(array), [(2, 0), (0, 0)]);
        for (sleeper, left) in [(first, 1), (last, 0)] {
            array.apply(&[Op::add(0, 1), Op::add(1, 1)]).unwrap();
            sleeper.returns(Ok(()));
            assert_eq!((sleeping(array), array.values()), (vec![(left, 0), (0, 0)], vec![0, 0]));
        }
    });
}
