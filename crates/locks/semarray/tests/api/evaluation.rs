//! What a set does: its operations in their order, each on what the earlier ones have made. The
//! numbers are those of the scripts that were run against the kernel.

use crate::steps::{applying, sleeping, with_values};
use ulocks_semarray::{Error, Op, SemArray};

fn out_of_range(index: usize) -> Result<(), Error> {
    Err(Error::ValueOutOfRange { index, limit: 32_767 })
}

/// The result of a set on these values, and the values after it.
fn tried<const N: usize>(values: [u32; N], ops: &[Op]) -> (Result<(), Error>, Vec<u32>) {
    let array = SemArray::with_values(values);
    (array.try_apply(ops), array.values())
}

#[test]
fn the_first_that_cannot_proceed_decides() {
    // 05, 11
    let (add, sub) = (Op::add(0, 1), Op::sub(1, 1).no_wait());
    assert_eq!(tried([32_767, 0], &[add, sub]), (out_of_range(0), vec![32_767, 0]));
    assert_eq!(tried([32_767, 0], &[sub, add]), (Err(Error::WouldBlock), vec![32_767, 0]));
    assert_eq!(tried([32_767], &[Op::add(0, 1), Op::sub(0, 1)]).0, out_of_range(0));
    assert_eq!(tried([32_767], &[Op::sub(0, 1), Op::add(0, 1)]), (Ok(()), vec![32_767]));
}

#[test]
fn a_set_sees_what_it_has_done() {
    // 08, 09, 10
    let lock = [Op::wait_zero(0), Op::add(0, 1)];
    assert_eq!(tried([0], &lock), (Ok(()), vec![1]));
    assert_eq!(tried([1], &lock), (Err(Error::WouldBlock), vec![1]));
    assert_eq!(tried([10], &[Op::sub(0, 10), Op::wait_zero(0)]), (Ok(()), vec![0]));
    assert_eq!(tried([1], &[Op::sub(0, 2), Op::add(0, 5)]), (Err(Error::WouldBlock), vec![1]));
    assert_eq!(tried([1], &[Op::add(0, 5), Op::sub(0, 2)]), (Ok(()), vec![4]));
    let back_and_forth =
        [Op::sub(1, 1), Op::add(0, 2), Op::sub(0, 1), Op::add(1, 3), Op::wait_zero(2), Op::sub(1, 2)];
    assert_eq!(tried([0, 1, 0], &back_and_forth), (Ok(()), vec![1, 1, 0]));
    assert_eq!(tried([0, 0, 0], &back_and_forth), (Err(Error::WouldBlock), vec![0, 0, 0]));
    assert_eq!(tried([0, 1, 1], &back_and_forth), (Err(Error::WouldBlock), vec![0, 1, 1]));
}

#[test]
fn nothing_is_always_possible() {
    for op in [Op::add(0, 0), Op::sub(0, 0)] {
        assert_eq!(tried([0], &[op]), (Ok(()), vec![0]));
        assert_eq!(tried([32_767], &[op, op]), (Ok(()), vec![32_767]));
    }
}

/// 06: an operation that does not wait ends a set that sleeps, once that is where it stops.
#[test]
fn no_wait_ends_a_sleeper() {
    with_values([0, 0, 7], |scope, array| {
        let sleeper = applying(scope, array, [Op::sub(0, 1), Op::sub(1, 1).no_wait(), Op::add(2, 1)]);
        assert_eq!(sleeping(array), [(1, 0), (0, 0), (0, 0)]);
        array.apply(&[Op::add(0, 1)]).unwrap();
        sleeper.returns(Err(Error::WouldBlock));
        assert_eq!(array.values(), [1, 0, 7]);
        // A set of one such operation never sleeps.
        assert_eq!(array.apply(&[Op::sub(1, 1).no_wait()]), Err(Error::WouldBlock));
        assert_eq!(array.apply(&[Op::wait_zero(0).no_wait()]), Err(Error::WouldBlock));
    });
}

/// 07: a sleeper may go too far.
#[test]
fn the_limit_ends_a_sleeper() {
    with_values([0, 32_767], |scope, array| {
        let sleeper = applying(scope, array, [Op::sub(0, 1), Op::add(1, 1)]);
        array.apply(&[Op::add(0, 1)]).unwrap();
        sleeper.returns(out_of_range(1));
        assert_eq!(array.values(), [1, 32_767]);
    });
}

/// 35 to 37: what comes before the operation at which a set sleeps decides about it still.
#[test]
fn a_sleeper_is_tried_again_when_its_beginning_changes() {
    with_values([1, 0], |scope, array| {
        let sleeper = applying(scope, array, [Op::sub(0, 1).no_wait(), Op::sub(1, 1)]);
        assert_eq!(sleeping(array), [(0, 0), (1, 0)]);
        array.apply(&[Op::sub(0, 1)]).unwrap();
        sleeper.returns(Err(Error::WouldBlock));
        assert_eq!(array.values(), [0, 0]);
    });
    with_values([32_766, 0], |scope, array| {
        let sleeper = applying(scope, array, [Op::add(0, 1), Op::sub(1, 1)]);
        array.apply(&[Op::add(0, 1)]).unwrap();
        sleeper.returns(out_of_range(0));
        assert_eq!(array.values(), [32_767, 0]);
    });
    with_values([1, 0], |scope, array| {
        let sleeper = applying(scope, array, [Op::sub(0, 1), Op::sub(1, 1)]);
        array.apply(&[Op::sub(0, 1)]).unwrap();
        assert_eq!(sleeping(array), [(1, 0), (0, 0)]);
        array.apply(&[Op::add(1, 1)]).unwrap();
        assert_eq!(sleeping(array), [(1, 0), (0, 0)], "what comes after does not matter");
        array.apply(&[Op::add(0, 1)]).unwrap();
        sleeper.returns(Ok(()));
        assert_eq!(array.values(), [0, 0]);
    });
}

/// 12: no set sees a zero within another set. A zero between two calls completes the sets that wait
/// for it.
#[test]
fn a_zero_counts_if_it_is_there_between_two_calls() {
    with_values([1, 0], |scope, array| {
        let alone = applying(scope, array, [Op::wait_zero(0)]);
        let of_a_set = applying(scope, array, [Op::wait_zero(0), Op::add(1, 1)]);
        for ops in [
            &[Op::sub(0, 1), Op::add(0, 1)][..],
            &[Op::sub(0, 1), Op::add(1, 1), Op::sub(1, 1), Op::add(0, 1)],
        ] {
            array.apply(ops).unwrap();
            assert_eq!(sleeping(array), [(0, 2), (0, 0)]);
        }
        array.apply(&[Op::sub(0, 1)]).unwrap();
        array.apply(&[Op::add(0, 1)]).unwrap();
        assert_eq!(sleeping(array), [(0, 0), (0, 0)]);
        alone.returns(Ok(()));
        of_a_set.returns(Ok(()));
        assert_eq!(array.values(), [1, 1]);
    });
    // Without a waiting set of several operations.
    with_values([2], |scope, array| {
        let waits = [1, 2].map(|_| applying(scope, array, [Op::wait_zero(0)]));
        array.apply(&[Op::sub(0, 2), Op::add(0, 1)]).unwrap();
        assert_eq!(sleeping(array), [(0, 2)]);
        array.apply(&[Op::sub(0, 1)]).unwrap();
        array.apply(&[Op::add(0, 1)]).unwrap();
        waits.into_iter().for_each(|waiter| waiter.returns(Ok(())));
    });
}

/// One set that proceeds lets the next proceed, and that another: all in one call.
#[test]
fn one_thing_leads_to_another() {
    with_values([0; 6], |scope, array| {
        let chain = [4, 3, 2, 1, 0].map(|at| applying(scope, array, [Op::sub(at, 1), Op::add(at + 1, 1)]));
        let last = applying(scope, array, [Op::sub(5, 1)]);
        array.apply(&[Op::add(0, 1)]).unwrap();
        assert_eq!(sleeping(array), [(0, 0); 6]);
        assert_eq!(array.values(), [0; 6]);
        chain.into_iter().chain([last]).for_each(|sleeper| sleeper.returns(Ok(())));
    });
}

/// The session takes the operations back in the opposite order, so the value in between is in
/// range.
#[test]
fn what_follows_on_one_semaphore_is_taken_back_together() {
    let array = SemArray::with_values([1, 0]);
    let there_and_back = [Op::add(1, 2), Op::sub(1, 1), Op::sub(1, 1)];
    for last in [Op::sub(0, 2), Op::sub(1, 1), Op::add(0, 40_000), Op::add(9, 1)] {
        let ops: Vec<_> = there_and_back.into_iter().chain([last]).collect();
        array.try_apply(&ops).unwrap_err();
        assert_eq!(array.values(), [1, 0], "{last:?}");
    }
    array.try_apply(&there_and_back).unwrap();
    assert_eq!(array.values(), [1, 0]);
}
