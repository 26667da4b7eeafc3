//! Clients of the array: each is the body of one execution of a model. The virtual machine has
//! random sets and scripts beside these.

use core::time::Duration;
use ulocks_core::time::Deadline;
use ulocks_semarray::{Error, Fairness, Op, RawSemArray, Wait, groups};
use ulocks_testkit::model;
use ulocks_testkit::thread::{Arc, JoinHandle, spawn, together, with};

/// Sleepers sleep at once: fewer steps, hence more executions of what is left.
type Array = RawSemArray;

type Shared = Arc<Array>;

/// The greatest value here.
const LIMIT: u32 = 8;

const PATIENTLY: Wait = Wait::Until(None);

fn array(values: &[u32]) -> Shared {
    Arc::new(Array::new(values, LIMIT, 500, Fairness::Barging))
}

/// Performs the set in a thread of its own.
fn start<const N: usize>(array: &Shared, ops: [Op; N], wait: Wait) -> JoinHandle<Result<(), Error>> {
    with(array, move |array| array.apply(&ops, wait))
}

fn at_rest(array: &Array, values: &[u32]) {
    assert_eq!(array.values(), values, "units were lost or made");
    assert!(array.is_at_rest(), "something was left behind");
    assert_eq!(groups::claimed(), 0, "a seat was not given back");
    for (index, &value) in (0..).zip(values) {
        assert_eq!(
            array.apply(&[Op::sub(index, value)], Wait::No),
            Ok(()),
            "units that are there cannot be had"
        );
    }
}

/// Threads that add one unit each, and threads that take one unit each.
pub fn posts_and_waits(posters: usize, waiters: usize) {
    let array = array(&[0]);
    let waiting: Vec<_> = (0..waiters).map(|_| start(&array, [Op::sub(0, 1)], PATIENTLY)).collect();
    let shared = Arc::clone(&array);
    let each = (waiters / posters) as u32;
    together(posters, move |_| assert_eq!(shared.apply(&[Op::add(0, each)], Wait::No), Ok(())));
    waiting.into_iter().for_each(|waiter| assert_eq!(waiter.join().unwrap(), Ok(())));
    at_rest(&array, &[0]);
}

/// Threads that add one unit each.
pub fn additions_add_up(threads: usize) {
    let array = array(&[0]);
    let shared = Arc::clone(&array);
    together(threads, move |_| assert_eq!(shared.apply(&[Op::add(0, 1)], Wait::No), Ok(())));
    at_rest(&array, &[threads as u32]);
}

/// Sets in an order in which they cannot be performed in one pass, against single operations on the
/// same semaphores.
pub fn sets_and_singles_add_up(threads: usize) {
    let array = array(&[0, 0]);
    let shared = Arc::clone(&array);
    together(threads, move |me| {
        if me % 2 == 0 {
            assert_eq!(shared.apply(&[Op::add(1, 1), Op::add(0, 1)], Wait::No), Ok(()));
        } else {
            assert_eq!(shared.apply(&[Op::add(0, 1)], Wait::No), Ok(()));
            assert_eq!(shared.apply(&[Op::add(1, 1)], Wait::No), Ok(()));
        }
    });
    at_rest(&array, &[threads as u32; 2]);
}

/// A set that takes a unit and puts it back: no thread sees the unit missing.
pub fn no_thread_sees_inside_a_set() {
    let array = array(&[1]);
    let there_and_back = start(&array, [Op::sub(0, 1), Op::add(0, 1)], Wait::No);
    assert_eq!(array.value(0), Ok(1), "a value is seen that was not published");
    assert_eq!(array.apply(&[Op::sub(0, 1)], Wait::No), Ok(()), "a set failed for want of what is there");
    assert_eq!(array.apply(&[Op::add(0, 1)], Wait::No), Ok(()));
    // The set may have come between the two operations.
    let tried = there_and_back.join().unwrap();
    assert!([Ok(()), Err(Error::WouldBlock)].contains(&tried), "{tried:?}");
    at_rest(&array, &[1]);
}

/// A set that times out, and posts of what it wants, beside `patient` sets that want the same: the
/// set has the units, or they are there. A `pair` wants two units.
pub fn a_timeout_against_posts(pair: bool, patient: usize) {
    let array = array(&[0, 0]);
    let wants = 1 + usize::from(pair);
    let start = |wait| with(&array, move |array| array.apply(&[Op::sub(0, 1), Op::sub(1, 1)][..wants], wait));
    let timed = start(Wait::Until(Some(Deadline::after(Duration::from_millis(1)))));
    let others: Vec<_> = (0..patient).map(|_| start(PATIENTLY)).collect();
    for index in (0..=patient).flat_map(|_| 0..wants) {
        assert_eq!(array.apply(&[Op::add(index, 1)], Wait::No), Ok(()));
    }
    others.into_iter().for_each(|other| assert_eq!(other.join().unwrap(), Ok(())));
    let rest = match timed.join().unwrap() {
        Ok(()) => 0,
        Err(error) => {
            assert_eq!(error, Error::TimedOut);
            1
        }
    };
    at_rest(&array, &[rest, if pair { rest } else { 0 }]);
}

/// Sets of both semaphores that come to nothing. With the second such set semaphore 1 becomes a
/// follower of semaphore 0.
fn wear_in(array: &Array, sets: usize) {
    for op in [Op::add, Op::sub].into_iter().cycle().take(sets) {
        assert_eq!(array.apply(&[op(0, 1), op(1, 1)], Wait::No), Ok(()));
    }
}

/// One thread uses two semaphores by sets of both, so that the second becomes a follower, or is one
/// after enough `sets`. Others use it by itself meanwhile.
pub fn a_follower_is_parted(sets: usize, threads: usize) {
    let array = array(&[2, 2]);
    wear_in(&array, sets);
    let shared = Arc::clone(&array);
    together(threads, move |me| {
        if me == 0 {
            wear_in(&shared, 2);
        } else {
            assert_eq!(shared.apply(&[Op::add(1, 1)], PATIENTLY), Ok(()));
        }
    });
    let odd = (sets % 2) as u32;
    at_rest(&array, &[2 + odd, 1 + odd + threads as u32]);
}

/// A set lets a follower fall and rise again. A thread that looks at it sees it rise only.
pub fn a_look_at_a_follower() {
    let array = array(&[1, 1]);
    wear_in(&array, 2);
    let set = start(&array, [Op::sub(0, 1), Op::sub(1, 1), Op::add(1, 2)], Wait::No);
    let seen = [0, 1].map(|_| array.value(1).unwrap());
    assert_eq!(set.join().unwrap(), Ok(()));
    assert!([[1, 1], [1, 2], [2, 2]].contains(&seen), "a value is seen that was not published: {seen:?}");
    at_rest(&array, &[0, 2]);
}

/// Pairs that share semaphores: one would follow in one pair, and lead in the other; another has a
/// leader, and is named after a second.
pub fn a_leader_does_not_follow(threads: usize) {
    const PAIRS: [(usize, usize); 3] = [(0, 1), (2, 0), (2, 1)];
    let array = array(&[0, 0, 0]);
    let add = |array: &Array| {
        for (a, b) in PAIRS {
            assert_eq!(array.apply(&[Op::add(a, 1), Op::add(b, 1)], Wait::No), Ok(()));
        }
    };
    add(&array);
    let shared = Arc::clone(&array);
    together(threads, move |me| {
        add(&shared);
        assert_eq!(shared.apply(&[Op::sub(me % 3, 1)], Wait::No), Ok(()));
    });
    let left = |index| 2 * (1 + threads as u32) - (threads as u32 + 2 - index) / 3;
    at_rest(&array, &[0, 1, 2].map(left));
}

/// A served thread frees the array at once, while the thread that served it may still be on its way
/// back. A `pair` wants two units, which the poster gives.
pub fn the_served_frees(pair: bool) {
    struct Handle(*const Array);
    // SAFETY: the array can be sent and shared; it is freed after the last use, which is what the
    // client tests.
    unsafe impl Send for Handle {}

    let first = usize::from(!pair);
    let doomed = Box::into_raw(Box::new(Array::new(&[0, 0], LIMIT, 500, Fairness::Barging)));
    let handle = Handle(doomed.cast_const());
    let poster = spawn(move || {
        let handle = handle;
        let ops = [Op::add(1, 1), Op::add(0, 1)];
        // SAFETY: the array is not freed before all of this has been posted.
        assert_eq!(unsafe { &*handle.0 }.apply(&ops[..2 - first], Wait::No), Ok(()));
    });
    let ops = [Op::sub(0, 1), Op::sub(1, 1)];
    // SAFETY: alive until freed below.
    assert_eq!(unsafe { &*doomed }.apply(&ops[first..], PATIENTLY), Ok(()));
    // SAFETY: it came from a box, and the only other user is on its way out.
    unsafe { model::free(doomed) };
    poster.join().unwrap();
}
