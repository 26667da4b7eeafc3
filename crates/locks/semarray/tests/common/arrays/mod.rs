//! Clients of the array: each is the body of one execution of a model.
//!
//! Where the order of arrival matters, a client waits by [`asleep`] until a set waits, before it
//! goes on. Where it does not, all threads race.

mod aged;
mod sets;

pub use aged::*;
pub use sets::*;

use core::time::Duration;
use ulocks_core::sync::{UnsafeCell, spin_until};
use ulocks_core::time::Deadline;
use ulocks_semarray::{Error, Fairness, Op, RawSemArray, Wait, groups};
use ulocks_testkit::model;
use ulocks_testkit::thread::{Arc, JoinHandle, spawn, together};

/// Sleepers sleep at once: fewer steps, hence more executions of what is left.
pub type Array = RawSemArray;

type Shared = Arc<Array>;

/// The greatest value here.
const LIMIT: u32 = 8;

const PATIENTLY: Wait = Wait::Until(None);

fn array(values: &[u32]) -> Shared {
    Arc::new(Array::new(values, LIMIT, 500, Fairness::Barging))
}

/// The longest wait of an attempt with a deadline.
fn soon() -> Wait {
    Wait::Until(Some(Deadline::after(Duration::from_millis(1))))
}

/// Performs the set in a thread of its own.
fn start<const N: usize>(array: &Shared, ops: [Op; N], wait: Wait) -> JoinHandle<Result<(), Error>> {
    let array = Arc::clone(array);
    spawn(move || array.apply(&ops, wait))
}

/// Waits until `increase` sets wait at semaphore `index` for it to grow, and `zero` sets for it to
/// be zero.
fn asleep(array: &Array, index: usize, increase: usize, zero: usize) {
    spin_until(|| {
        let waiters = array.waiters(index).unwrap();
        (waiters.increase, waiters.zero) == (increase, zero)
    });
}

/// How many sets sleep at each semaphore for it to grow.
fn counts(array: &Array) -> Vec<usize> {
    (0..array.len()).map(|index| array.waiters(index).unwrap().increase).collect()
}

fn at_rest(array: &Array, values: &[u32]) {
    assert_eq!(array.values(), values, "units were lost or made");
    for index in 0..array.len() {
        let waiters = array.waiters(index).unwrap();
        assert_eq!((waiters.increase, waiters.zero), (0, 0), "a set is counted although all have left");
    }
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

/// The set of the only receiver and that of the only sender, and what the semaphores are at first.
#[derive(Clone)]
pub struct Parcel {
    values: [u32; 2],
    send: Vec<Op>,
    receive: Vec<Op>,
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

/// A set that wants two units waits first, then one that wants one. With one unit the second
/// proceeds.
pub fn a_set_that_can_proceed_passes_one_that_cannot() {
    let array = array(&[0]);
    let large = start(&array, [Op::sub(0, 2)], PATIENTLY);
    asleep(&array, 0, 1, 0);
    let small = start(&array, [Op::sub(0, 1)], PATIENTLY);
    asleep(&array, 0, 2, 0);
    assert_eq!(array.apply(&[Op::add(0, 1)], Wait::No), Ok(()));
    assert_eq!(small.join().unwrap(), Ok(()));
    assert_eq!(array.apply(&[Op::add(0, 2)], Wait::No), Ok(()));
    assert_eq!(large.join().unwrap(), Ok(()));
    at_rest(&array, &[0]);
}

/// Ways for something to come from a sender to a receiver.
pub fn parcels() -> [Parcel; 5] {
    [
        Parcel { values: [0, 0], send: vec![Op::add(0, 1), Op::add(0, 1)], receive: vec![Op::sub(0, 1)] },
        Parcel { values: [0, 0], send: vec![Op::add(0, 1)], receive: vec![Op::sub(0, 1)] },
        Parcel { values: [0, 0], send: vec![Op::add(0, 1), Op::add(1, 1)], receive: vec![Op::sub(1, 1)] },
        Parcel {
            values: [0, 0],
            send: vec![Op::add(1, 1), Op::add(0, 1)],
            receive: vec![Op::sub(0, 1), Op::sub(1, 1)],
        },
        Parcel { values: [1, 0], send: vec![Op::sub(0, 1)], receive: vec![Op::wait_zero(0)] },
    ]
}

/// After its set the receiver sees what the sender did before its own, by whichever way the units
/// come.
pub fn a_set_publishes(parcel: &Parcel) {
    struct Box(Array, UnsafeCell<u32>);
    // SAFETY: the cell is written before the one set and read after the other; that the array
    // orders the two is what the client tests.
    unsafe impl Sync for Box {}

    let shared = Arc::new(Box(Array::new(&parcel.values, LIMIT, 500, Fairness::Barging), UnsafeCell::new(0)));
    let (sender, send) = (Arc::clone(&shared), parcel.send.clone());
    let sender = spawn(move || {
        // SAFETY: no thread reads before the set.
        sender.1.with_mut(|value| unsafe { *value = 7 });
        assert_eq!(sender.0.apply(&send, Wait::No), Ok(()));
    });
    assert_eq!(shared.0.apply(&parcel.receive, PATIENTLY), Ok(()));
    // SAFETY: the only writer is done.
    assert_eq!(shared.1.with(|value| unsafe { *value }), 7);
    sender.join().unwrap();
}

/// A thread that learns from a set that the array was closed finds all of it closed.
pub fn an_end_is_an_end() {
    let array = array(&[1, 0]);
    let other = Arc::clone(&array);
    let closer = spawn(move || other.close());
    if array.apply(&[Op::sub(0, 1), Op::add(0, 1)], Wait::No) == Err(Error::Closed) {
        assert_eq!(array.apply(&[Op::sub(1, 1)], Wait::No), Err(Error::Closed), "after the end");
    }
    closer.join().unwrap();
}

/// A thread that sees a value, or the end of the array, without an operation of its own sees what
/// came before it.
pub fn a_look_shows_what_came_before(closes: bool) {
    struct Box(Array, UnsafeCell<u32>);
    // SAFETY: the cell is written before the change and read by a thread that has seen it; that the
    // array orders the two is what the client tests.
    unsafe impl Sync for Box {}

    let shared = Arc::new(Box(Array::new(&[0], LIMIT, 500, Fairness::Barging), UnsafeCell::new(0)));
    let sender = Arc::clone(&shared);
    let sender = spawn(move || {
        // SAFETY: no thread reads before the change.
        sender.1.with_mut(|value| unsafe { *value = 7 });
        if closes {
            sender.0.close();
        } else {
            assert_eq!(sender.0.apply(&[Op::add(0, 1)], Wait::No), Ok(()));
        }
    });
    let is_changed = if closes { shared.0.is_closed() } else { shared.0.value(0) == Ok(1) };
    if is_changed {
        // SAFETY: the only writer is done.
        assert_eq!(shared.1.with(|value| unsafe { *value }), 7);
    }
    sender.join().unwrap();
}

/// A set that times out, and a post of what it wants: the set has the unit, or the unit is there.
pub fn a_timeout_against_a_post(patient: usize) {
    let array = array(&[0]);
    let timed = start(&array, [Op::sub(0, 1)], soon());
    let others: Vec<_> = (0..patient).map(|_| start(&array, [Op::sub(0, 1)], PATIENTLY)).collect();
    for _ in 0..=patient {
        assert_eq!(array.apply(&[Op::add(0, 1)], Wait::No), Ok(()));
    }
    others.into_iter().for_each(|other| assert_eq!(other.join().unwrap(), Ok(())));
    let rest = match timed.join().unwrap() {
        Ok(()) => 0,
        Err(error) => {
            assert_eq!(error, Error::TimedOut);
            1
        }
    };
    at_rest(&array, &[rest]);
}

/// A set that waits for zero is served by the operation that makes the zero, though the next
/// operation makes it one again. A zero within a set does not serve it.
pub fn zero_between_two_sets() {
    let array = array(&[1]);
    let waiter = start(&array, [Op::wait_zero(0)], PATIENTLY);
    asleep(&array, 0, 0, 1);
    assert_eq!(array.apply(&[Op::sub(0, 1), Op::add(0, 1)], Wait::No), Ok(()));
    assert_eq!(array.waiters(0).unwrap().zero, 1, "it was served by a zero that no thread could see");
    assert_eq!(array.apply(&[Op::sub(0, 1)], Wait::No), Ok(()));
    assert_eq!(array.apply(&[Op::add(0, 1)], Wait::No), Ok(()));
    assert_eq!(waiter.join().unwrap(), Ok(()));
    at_rest(&array, &[1]);
}

/// Two sets that wait for zero, one of which then adds, against subtractions that make zero.
pub fn zero_and_growth() {
    let array = array(&[1]);
    let waiter = start(&array, [Op::wait_zero(0)], PATIENTLY);
    let lock = start(&array, [Op::wait_zero(0), Op::add(0, 1)], PATIENTLY);
    assert_eq!(array.apply(&[Op::sub(0, 1)], Wait::No), Ok(()));
    assert_eq!(lock.join().unwrap(), Ok(()));
    assert_eq!(array.apply(&[Op::sub(0, 1)], Wait::No), Ok(()));
    assert_eq!(waiter.join().unwrap(), Ok(()));
    at_rest(&array, &[0]);
}

/// A set that waits, or is about to, while the array is closed: it is served, or gets the error. A
/// `pair` wants two units.
pub fn the_end(pair: bool, post: bool) {
    let array = array(&[u32::from(pair), 0]);
    let ops = [Op::sub(0, u32::from(pair)), Op::sub(1, 1)];
    let sleeper = {
        let array = Arc::clone(&array);
        spawn(move || array.apply(if pair { &ops } else { &ops[1..] }, PATIENTLY))
    };
    let poster = post.then(|| start(&array, [Op::add(1, 1)], Wait::No));
    array.close();
    let served = sleeper.join().unwrap();
    let posted = poster.map_or(Err(Error::Closed), |poster| poster.join().unwrap());
    assert!([Ok(()), Err(Error::Closed)].contains(&served), "{served:?}");
    assert!(posted.is_ok() || served.is_err(), "it was served what was not posted");
    assert!(array.is_closed());
    assert_eq!(array.apply(&[Op::add(0, 1)], PATIENTLY), Err(Error::Closed));
    assert_eq!(groups::claimed(), 0, "a seat was not given back");
}

/// The value is set, or all values, while one set waits and another arrives.
pub fn a_value_is_set(all: bool) {
    let array = array(&[0, 0]);
    let pair = start(&array, [Op::sub(0, 1), Op::sub(1, 1)], PATIENTLY);
    let single = start(&array, [Op::sub(1, 1)], PATIENTLY);
    if all {
        assert_eq!(array.set_all(&[1, 2]), Ok(()));
    } else {
        assert_eq!(array.apply(&[Op::add(0, 1)], Wait::No), Ok(()));
        assert_eq!(array.set(1, 2), Ok(()));
    }
    for sleeper in [pair, single] {
        assert_eq!(sleeper.join().unwrap(), Ok(()));
    }
    at_rest(&array, &[0, 0]);
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
