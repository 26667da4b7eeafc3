//! The array without permits: what only it has.

use crate::steps::{applying, sleeping, with_values};
use std::time::Duration;
use ulocks_core::Private;
use ulocks_core::meter::Counted;
use ulocks_core::spin::{NoSpin, Patience};
use ulocks_core::time::Deadline;
use ulocks_semarray::{Builder, Error, Fairness, Op, RawSemArray, SemArray, SemArrayWith, Wait};

#[test]
fn it_says_what_it_was_made_with() {
    let fairness = Fairness::Strict { after: Duration::from_millis(7) };
    let array: SemArray =
        Builder::with_values([1, 2]).limit(9).max_ops(3).fairness(fairness).build().unwrap();
    let raw = array.raw();
    assert_eq!((raw.len(), raw.is_empty(), raw.is_closed()), (2, false, false));
    assert_eq!((raw.limit(), raw.max_ops(), raw.fairness()), (9, 3, fairness));
    assert_eq!(SemArray::new(1).raw().fairness(), Fairness::Barging);
    // The outcome of a waiting set has room for the position of so many operations.
    let most = RawSemArray::<Private>::new(&[1], 9, usize::MAX, Fairness::Barging);
    assert_eq!(most.max_ops(), 1 << 29);
    // An operation alone is performed without a look at how many there are.
    let least = RawSemArray::<Private>::new(&[1], 9, 0, Fairness::Barging);
    let take = || least.apply(&[Op::sub(0, 1)], Wait::No);
    assert_eq!((least.max_ops(), take(), take()), (1, Ok(()), Err(Error::WouldBlock)));
}

/// In a release build, too: such values would be cut off without a word.
#[test]
fn it_is_not_made_with_what_does_not_fit() {
    let made = |value, limit| {
        let new = || <RawSemArray>::new(&[0, value], limit, 500, Fairness::Barging).value(1);
        std::panic::catch_unwind(new).ok()
    };
    let greatest = Builder::GREATEST_LIMIT;
    assert_eq!(made(greatest, greatest), Some(Ok(greatest)));
    for (value, limit) in [(1 << 27, u32::MAX), (0, greatest + 1), (10, 9)] {
        assert_eq!(made(value, limit), None, "{value} with the limit {limit}");
    }
}

/// Half a terabyte would be needed before the first of them is used.
#[test]
#[cfg(target_pointer_width = "64")]
fn it_is_not_made_with_more_semaphores_than_indices() {
    const MANY: usize = u32::MAX as usize;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping, of any address.
    let place = unsafe { libc::mmap(std::ptr::null_mut(), 4 * MANY, libc::PROT_READ, flags, -1, 0) };
    if place == libc::MAP_FAILED {
        return println!("not tested: this machine lends no addresses");
    }
    // SAFETY: the mapping has so many zeros, and stays.
    let values: &'static [u32] = unsafe { std::slice::from_raw_parts(place.cast(), MANY) };
    let new = || <RawSemArray>::new(values, 9, 500, Fairness::Barging).len();
    let refused = std::panic::catch_unwind(new).expect_err("it was made");
    assert!(refused.downcast_ref::<&str>().is_some_and(|why| why.contains("indices")));
}

#[test]
fn it_waits_as_its_argument_says() {
    let raw: RawSemArray = RawSemArray::new(&[1, 0], 9, 500, Fairness::Barging);
    let soon = || Some(Deadline::after(Duration::from_micros(100)));
    for (wait, error) in [
        (Wait::No, Error::WouldBlock),
        (Wait::Until(soon()), Error::TimedOut),
        (Wait::Interruptible(soon()), Error::TimedOut),
    ] {
        for ops in [&[Op::sub(1, 1)][..], &[Op::wait_zero(0)], &[Op::sub(0, 1), Op::sub(1, 1)]] {
            assert_eq!(raw.apply(ops, wait), Err(error));
        }
        raw.apply(&[Op::sub(0, 1), Op::wait_zero(1), Op::add(0, 1)], wait).unwrap();
    }
    assert_eq!(raw.values(), [1, 0]);
}

#[test]
fn anything_may_be_given_back() {
    with_values([1, 0], |scope, array| {
        let raw = array.raw();
        raw.give_back(&[]).unwrap();
        raw.give_back(&[Op::wait_zero(0), Op::add(0, 0)]).unwrap();
        assert_eq!(array.values(), [1, 0]);
        let sleeper = applying(scope, array, [Op::sub(0, 2), Op::sub(1, 1)]);
        raw.give_back(&[Op::sub(0, 4), Op::add(0, 3), Op::sub(1, 1)]).unwrap();
        sleeper.returns(Ok(()));
        assert_eq!((array.values(), sleeping(array)), (vec![0, 0], vec![(0, 0); 2]));
        // Beyond both ends.
        raw.give_back(&[Op::sub(0, 40_000), Op::add(1, 9)]).unwrap();
        assert_eq!(array.values(), [32_767, 0]);
        raw.give_back(&[Op::add(0, u32::MAX)]).unwrap();
        assert_eq!(array.values(), [0, 0]);
        assert_eq!(raw.give_back(&[Op::sub(2, 1)]), Err(Error::IndexOutOfRange { index: 2, len: 2 }));
        assert_eq!(
            raw.give_back(&[Op::sub(0, 1), Op::sub(7, 1)]),
            Err(Error::IndexOutOfRange { index: 7, len: 2 })
        );
        assert_eq!(array.values(), [0, 0]);
        array.close();
        assert_eq!(raw.give_back(&[Op::sub(0, 1)]), Err(Error::Closed));
        raw.give_back(&[]).unwrap();
        raw.give_back(&[Op::wait_zero(7), Op::add(0, 0)]).unwrap();
        assert_eq!(array.values(), [0, 0]);
    });
}

#[test]
fn what_is_given_back_may_be_longer_than_a_set() {
    let raw: RawSemArray = RawSemArray::new(&[0; 3], 9, 2, Fairness::Barging);
    let ops = [Op::sub(0, 1), Op::sub(1, 1), Op::sub(0, 1), Op::sub(2, 1)];
    raw.give_back(&ops[..3]).unwrap();
    assert_eq!(raw.values(), [2, 1, 0]);
    assert_eq!(raw.give_back(&ops), Err(Error::SetTooLong { len: 3, most: 2 }));
    assert_eq!(raw.values(), [2, 1, 0]);
}

#[test]
fn it_counts_what_happened() {
    let counts = |array: &SemArrayWith<Private<NoSpin, Counted>>| {
        let counts = array.raw().meter().snapshot();
        (counts.acquired, counts.contended, counts.spun, counts.slept, counts.woke)
    };
    let array: SemArrayWith<Private<NoSpin, Counted>> = SemArrayWith::with_values([1, 0]);
    array.apply(&[Op::sub(0, 1)]).unwrap();
    array.apply(&[Op::add(0, 1), Op::wait_zero(1)]).unwrap();
    array.apply(&[Op::add(0, 1), Op::sub(0, 1)]).unwrap();
    assert_eq!(array.try_apply(&[Op::sub(0, 2)]), Err(Error::WouldBlock));
    assert_eq!(array.apply(&[Op::sub(0, 1), Op::sub(1, 1).no_wait()]), Err(Error::WouldBlock));
    assert_eq!(counts(&array), (3, 0, 0, 0, 0));
    let soon = Duration::from_micros(50);
    assert_eq!(array.apply_for(&[Op::sub(0, 2)], soon), Err(Error::TimedOut));
    assert_eq!(array.apply_for(&[Op::sub(0, 1), Op::sub(1, 1)], soon), Err(Error::TimedOut));
    assert_eq!(counts(&array), (3, 2, 0, 2, 0));
    // A waiter that spins for long enough need not sleep.
    let patient: SemArrayWith<Private<Patience<{ u32::MAX }>, Counted>> = SemArrayWith::new(1);
    std::thread::scope(|scope| {
        scope.spawn(|| patient.apply(&[Op::sub(0, 1)]).unwrap());
        crate::steps::until(|| patient.waiters(0).unwrap().increase == 1);
        patient.apply(&[Op::add(0, 1)]).unwrap();
    });
    let counts = patient.raw().meter().snapshot();
    assert_eq!((counts.acquired, counts.contended, counts.spun + counts.slept), (2, 1, 1));
    assert_eq!(counts.woke, 1, "owed, whether it spins or sleeps");
}
