//! Every error, with what it says; and nothing changes.

use crate::steps::{Result, applying, with_values};
use std::time::{Duration, Instant};
use ulocks_semarray::{Builder, Error, Op, SemArray, Set};

/// Beyond 32 bits, where there are more.
const TOO_FAR: usize = (u32::MAX as usize).saturating_add(1);

fn out_of_range(index: usize, limit: u32) -> Result {
    Err(Error::ValueOutOfRange { index, limit })
}

#[test]
fn each_says_what_is_wrong_and_what_is_allowed() {
    let texts = [
        (Error::WouldBlock, "the set cannot proceed without waiting"),
        (Error::TimedOut, "the deadline passed before the set could proceed"),
        (Error::Interrupted, "a signal handler ran while the set waited"),
        (
            Error::ValueOutOfRange { index: 3, limit: 9 },
            "semaphore 3 cannot go beyond 9; a builder makes arrays with another limit",
        ),
        (Error::IndexOutOfRange { index: 7, len: 4 }, "no semaphore 7: the array has 4, from 0 on"),
        (
            Error::SetTooLong { len: 501, most: 500 },
            "501 operations in a set: the array takes at most 500; a builder makes arrays that take more",
        ),
        (Error::WrongNumber { values: 2, len: 3 }, "2 values for 3 semaphores: each needs one"),
        (Error::Closed, "the array was closed"),
    ];
    for (error, text) in texts {
        assert_eq!(error.to_string(), text);
        let error: Box<dyn std::error::Error + Send + Sync> = error.into();
        assert!(error.source().is_none());
    }
}

/// Every way to ask for a set.
fn each_way(array: &SemArray, ops: &[Op]) -> [Result; 9] {
    let moment = Duration::from_micros(1);
    let kept = |permit: Result<ulocks_semarray::Permit<'_, _>>| permit.map(ulocks_semarray::Permit::forget);
    [
        array.apply(ops),
        array.try_apply(ops),
        array.apply_for(ops, moment),
        array.apply_until(ops, Instant::now() + moment),
        array.apply_interruptible(ops, None),
        kept(array.acquire(ops)),
        kept(array.try_acquire(ops)),
        kept(array.acquire_for(ops, moment)),
        kept(array.acquire_until(ops, Instant::now())),
    ]
}

#[test]
fn what_can_never_be_is_refused_in_every_way() {
    with_values([1, 0], |scope, array| {
        // Also beside a sleeper, when everything goes another way.
        for beside_a_sleeper in [false, true] {
            let sleeper = beside_a_sleeper.then(|| applying(scope, array, [Op::sub(0, 1), Op::sub(1, 1)]));
            let index = |index| Err(Error::IndexOutOfRange { index, len: 2 });
            let first = Op::add(0, 1);
            for (ops, error) in [
                (&[Op::add(2, 1)][..], index(2)),
                (&[Op::wait_zero(2)], index(2)),
                (&[first, Op::sub(9, 1)], index(9)),
                (&[Op::sub(1, 1), Op::sub(3, 1)], index(3)),
                (&[first, Op::sub(9, 1), Op::sub(8, 1)], index(9)),
                (&[Op::add(0, 32_767)], out_of_range(0, 32_767)),
                (&[first, Op::add(1, 32_768)], out_of_range(1, 32_767)),
                (&[first, Op::sub(1, 32_768)], out_of_range(1, 32_767)),
                (&[Op::sub(1, 32_768)], out_of_range(1, 32_767)),
                (&[Op::sub(1, u32::MAX).no_wait()], out_of_range(1, 32_767)),
                (&[first, Op::add(1, 1), Op::add(1, 32_767)], out_of_range(1, 32_767)),
                (&vec![first; 501], Err(Error::SetTooLong { len: 501, most: 500 })),
                (&vec![Op::add(9, 1); 501], Err(Error::SetTooLong { len: 501, most: 500 })),
            ] {
                assert_eq!(each_way(array, ops), [error; 9], "{ops:?}");
                assert_eq!(array.values(), [1, 0], "an error changed something: {ops:?}");
            }
            for op in [Op::add(TOO_FAR, 1), Op::sub(TOO_FAR.saturating_add(1), 1), Op::wait_zero(usize::MAX)]
            {
                assert!(matches!(array.apply(&[op]), Err(Error::IndexOutOfRange { len: 2, .. })));
                assert!(matches!(array.apply(&[first, op]), Err(Error::IndexOutOfRange { len: 2, .. })));
            }
            if let Some(sleeper) = sleeper {
                array.set(1, 1).unwrap();
                sleeper.returns(Ok(()));
                array.set(0, 1).unwrap();
            }
        }
    });
}

#[test]
fn what_cannot_be_now_changes_nothing() {
    let array = SemArray::with_values([1, 0]);
    for ops in [
        &[Op::sub(1, 1)][..],
        &[Op::wait_zero(0)],
        &[Op::sub(0, 1), Op::sub(1, 1)],
        &[Op::add(1, 3), Op::sub(0, 1), Op::wait_zero(1)],
    ] {
        assert_eq!(array.try_apply(ops), Err(Error::WouldBlock), "{ops:?}");
        assert_eq!(array.try_acquire(ops).map(drop), Err(Error::WouldBlock), "{ops:?}");
        assert_eq!(array.apply_for(ops, Duration::from_micros(50)), Err(Error::TimedOut), "{ops:?}");
        assert_eq!(array.apply_until(ops, Instant::now()), Err(Error::TimedOut), "{ops:?}");
        assert_eq!(array.acquire_for(ops, Duration::ZERO).map(drop), Err(Error::TimedOut), "{ops:?}");
        let no_wait: Vec<_> = ops.iter().map(|op| op.no_wait()).collect();
        assert_eq!(array.apply(&no_wait), Err(Error::WouldBlock), "{ops:?}");
        assert_eq!(array.apply_for(&no_wait, Duration::from_secs(100)), Err(Error::WouldBlock), "{ops:?}");
        assert_eq!(array.values(), [1, 0], "{ops:?}");
    }
    // With its deadline in the past a set is tried all the same.
    array.apply_until(&[Op::sub(0, 1)], Instant::now() - Duration::from_secs(1)).unwrap();
    array.apply_for(&[Op::add(0, 1), Op::wait_zero(1)], Duration::ZERO).unwrap();
    assert_eq!(array.values(), [1, 0]);
}

#[test]
fn a_set_of_nothing_is_done() {
    let array = SemArray::with_values([1, 0]);
    assert_eq!(each_way(&array, &[]), [Ok(()); 9]);
    drop(array.acquire(Set::new()).unwrap());
    assert_eq!(array.values(), [1, 0]);
    array.close();
    assert_eq!(each_way(&array, &[]), [Err(Error::Closed); 9]);
}

#[test]
fn an_array_of_nothing_has_no_semaphores() {
    let array = SemArray::new(0);
    assert!(array.is_empty() && array.values().is_empty());
    array.apply(&[]).unwrap();
    array.set_all(&[]).unwrap();
    let none = Error::IndexOutOfRange { index: 0, len: 0 };
    assert_eq!(array.apply(&[Op::wait_zero(0)]), Err(none));
    assert_eq!(
        (array.value(0), array.waiters(0).map(|_| ()), array.set(0, 0)),
        (Err(none), Err(none), Err(none))
    );
    array.close();
    assert!(array.is_closed());
    assert_eq!(array.set_all(&[]), Err(Error::Closed));
}

#[test]
fn what_is_read_and_set_is_of_the_array() {
    let array = SemArray::with_values([1, 2]);
    assert_eq!((array.len(), array.is_empty(), array.is_closed()), (2, false, false));
    let index = Error::IndexOutOfRange { index: 2, len: 2 };
    assert_eq!((array.value(1), array.value(2)), (Ok(2), Err(index)));
    assert_eq!((array.waiters(2).map(|_| ()), array.set(2, 0)), (Err(index), Err(index)));
    assert_eq!(array.value(usize::MAX), Err(Error::IndexOutOfRange { index: usize::MAX, len: 2 }));
    assert_eq!(array.set(1, 32_768), out_of_range(1, 32_767));
    assert_eq!(array.set_all(&[5, 32_768]), out_of_range(1, 32_767));
    for wrong in [&[][..], &[0], &[0, 0, 0]] {
        assert_eq!(array.set_all(wrong), Err(Error::WrongNumber { values: wrong.len(), len: 2 }));
    }
    assert_eq!(array.values(), [1, 2]);
    array.set(1, 32_767).unwrap();
    array.set_all(&[0, 32_767]).unwrap();
    assert_eq!(array.values(), [0, 32_767]);
    assert_eq!(array.apply(&[Op::add(1, 1)]), out_of_range(1, 32_767));
    assert_eq!(format!("{array:?}"), "SemArray { len: 2, .. }");
}

#[test]
fn a_builder_sets_the_limit() {
    let array: SemArray = Builder::with_values([0, 9]).limit(9).build().unwrap();
    assert_eq!((array.raw().limit(), array.raw().max_ops()), (9, 500));
    assert_eq!(array.apply(&[Op::add(1, 1)]), out_of_range(1, 9));
    assert_eq!(array.apply(&[Op::add(0, 9), Op::add(1, 1)]), out_of_range(1, 9));
    assert_eq!(array.apply(&[Op::sub(1, 10)]), out_of_range(1, 9));
    array.apply(&[Op::add(0, 9), Op::sub(1, 9)]).unwrap();
    assert_eq!(array.values(), [9, 0]);

    let greatest = Builder::GREATEST_LIMIT;
    let array: SemArray = SemArray::builder(1).limit(greatest).build().unwrap();
    array.apply(&[Op::add(0, greatest)]).unwrap();
    assert_eq!(array.value(0), Ok(greatest));
    assert_eq!(array.apply(&[Op::add(0, 1)]), out_of_range(0, greatest));
    array.apply(&[Op::sub(0, greatest), Op::wait_zero(0)]).unwrap();

    let nothing: SemArray = SemArray::builder(1).limit(0).build().unwrap();
    nothing.apply(&[Op::wait_zero(0), Op::add(0, 0)]).unwrap();
    assert_eq!(nothing.apply(&[Op::add(0, 1)]), out_of_range(0, 0));

    for (builder, error) in [
        (Builder::with_values([0, 10]).limit(9), out_of_range(1, 9)),
        (Builder::with_values([32_768]), out_of_range(0, 32_767)),
        (Builder::new(1).limit(greatest + 1), Err(Error::LimitOutOfRange { limit: greatest + 1, greatest })),
        (Builder::with_values([0, greatest + 1]).limit(greatest), out_of_range(1, greatest)),
    ] {
        assert_eq!(builder.clone().build::<ulocks_core::Private>().map(drop), error, "{builder:?}");
    }
}

#[test]
#[should_panic(expected = "semaphore 1 cannot go beyond 32767")]
fn values_beyond_the_limit_need_a_builder() {
    _ = SemArray::with_values([0, 32_768]);
}

#[test]
fn a_builder_sets_the_length_of_sets() {
    let array: SemArray = Builder::with_values([5]).max_ops(2).build().unwrap();
    let one = Op::sub(0, 1);
    array.apply(&[one; 2]).unwrap();
    assert_eq!(array.apply(&[one; 3]), Err(Error::SetTooLong { len: 3, most: 2 }));
    assert_eq!(array.value(0), Ok(3));
    // A permit gives back with one operation a semaphore, whatever the set was.
    drop(array.acquire([one; 2]).unwrap());
    assert_eq!(array.value(0), Ok(3));

    let array: SemArray = SemArray::builder(600).max_ops(1_200).build().unwrap();
    let all: Vec<_> = (0..600).flat_map(|index| [Op::add(599 - index, 2), Op::sub(599 - index, 1)]).collect();
    drop(array.acquire(&all[..]).unwrap());
    assert_eq!(array.values(), [0; 600]);
    array.apply(&all).unwrap();
    assert_eq!(array.values(), [1; 600]);

    // One at least.
    let single: SemArray = SemArray::builder(1).max_ops(0).build().unwrap();
    single.apply(&[Op::add(0, 1)]).unwrap();
    assert_eq!(single.apply(&[one; 2]), Err(Error::SetTooLong { len: 2, most: 1 }));
    assert_eq!(single.raw().max_ops(), 1);
}

#[test]
fn an_operation_says_what_it_is() {
    let all = [Op::add(3, 2), Op::sub(3, 2).no_wait(), Op::wait_zero(1)];
    assert_eq!(all.map(|op| (op.index(), op.change())), [(3, 2), (3, -2), (1, 0)]);
    assert_eq!(
        all.map(|op| (op.is_wait_zero(), op.is_no_wait())),
        [(false, false), (false, true), (true, false)]
    );
    assert_eq!(Op::sub(0, u32::MAX).change(), -i64::from(u32::MAX));
    let set = Set::new().add(3, 2).sub(3, 2).no_wait().wait_zero(1);
    assert_eq!(&set[..], all);
    assert_eq!(set, Set::from(all));
    assert_eq!(set, all.into_iter().collect());
    let mut extended = Set::from(all[0]);
    extended.extend(all[1..].iter().copied());
    assert_eq!(extended, Set::from(&all));
    assert_eq!(Set::new().no_wait(), Set::default());
}
