//! Clients of the array: each is the body of one execution of a model.
//!
//! A client says who sleeps where before it goes on, by [`asleep`], where the order of arrival
//! matters; where it does not, everything races.

use core::time::Duration;
use ulocks_core::sync::{UnsafeCell, spin_until};
use ulocks_core::time::Deadline;
use ulocks_semarray::{Error, Fairness, Op, RawSemArray, Wait, groups};
use ulocks_testkit::model;
use ulocks_testkit::thread::{Arc, JoinHandle, spawn, together};

/// Sleepers sleep at once: fewer steps, hence more executions of what is left.
pub type Array = RawSemArray;

type Shared = Arc<Array>;

/// What values grow to at the most, here.
const LIMIT: u32 = 8;

const PATIENTLY: Wait = Wait::Until(None);

fn array(values: &[u32]) -> Shared {
    Arc::new(Array::new(values, LIMIT, 500, Fairness::Barging))
}

/// What an attempt with a deadline waits at the most.
fn soon() -> Wait {
    Wait::Until(Some(Deadline::after(Duration::from_millis(1))))
}

/// Performs the set in a thread of its own.
fn start<const N: usize>(array: &Shared, ops: [Op; N], wait: Wait) -> JoinHandle<Result<(), Error>> {
    let array = Arc::clone(array);
    spawn(move || array.apply(&ops, wait))
}

/// Waits until so many sets sleep at semaphore `index` for it to grow, and so many for it to be
/// zero.
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
        assert_eq!((waiters.increase, waiters.zero), (0, 0), "somebody is counted although all have left");
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

/// Threads that add one each, and threads that take one each.
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

/// Threads that add one each.
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

/// A set that takes a unit and puts it back: nobody sees it missing.
pub fn no_thread_sees_inside_a_set() {
    let array = array(&[1]);
    let there_and_back = start(&array, [Op::sub(0, 1), Op::add(0, 1)], Wait::No);
    assert_eq!(array.value(0), Ok(1), "a value is seen that nobody has published");
    assert_eq!(array.apply(&[Op::sub(0, 1)], Wait::No), Ok(()), "a set failed for want of what is there");
    assert_eq!(array.apply(&[Op::add(0, 1)], Wait::No), Ok(()));
    // It may have come between the two.
    let tried = there_and_back.join().unwrap();
    assert!([Ok(()), Err(Error::WouldBlock)].contains(&tried), "{tried:?}");
    at_rest(&array, &[1]);
}

/// One that wants two is there first, and one that wants one: with one unit the second proceeds.
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

/// What the sender did before its set the receiver sees after its own, by whichever way it comes to
/// it.
pub fn a_set_publishes(parcel: &Parcel) {
    struct Box(Array, UnsafeCell<u32>);
    // SAFETY: the cell is written before the one set and read after the other; that the array
    // orders the two is what the client tests.
    unsafe impl Sync for Box {}

    let shared = Arc::new(Box(Array::new(&parcel.values, LIMIT, 500, Fairness::Barging), UnsafeCell::new(0)));
    let (sender, send) = (Arc::clone(&shared), parcel.send.clone());
    let sender = spawn(move || {
        // SAFETY: nobody reads before the set.
        sender.1.with_mut(|value| unsafe { *value = 7 });
        assert_eq!(sender.0.apply(&send, Wait::No), Ok(()));
    });
    assert_eq!(shared.0.apply(&parcel.receive, PATIENTLY), Ok(()));
    // SAFETY: the only writer is done.
    assert_eq!(shared.1.with(|value| unsafe { *value }), 7);
    sender.join().unwrap();
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
        // SAFETY: nobody reads before the change.
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

/// One that gives up against one that adds what it wants: the unit is had, or is there.
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

/// The same for one that wants one of each of two.
pub fn a_pairs_timeout_against_posts() {
    let array = array(&[0, 0]);
    let timed = start(&array, [Op::sub(0, 1), Op::sub(1, 1)], soon());
    for index in [0, 1] {
        assert_eq!(array.apply(&[Op::add(index, 1)], Wait::No), Ok(()));
    }
    let rest = match timed.join().unwrap() {
        Ok(()) => 0,
        Err(error) => {
            assert_eq!(error, Error::TimedOut);
            1
        }
    };
    at_rest(&array, &[rest, rest]);
}

/// One that wants one of each of two, which come from two threads; beside it one that wants one of
/// the second only.
pub fn a_pair_from_two_posters(beside: bool) {
    let array = array(&[0, u32::from(beside)]);
    let pair = start(&array, [Op::sub(0, 1), Op::sub(1, 1)], PATIENTLY);
    let single = beside.then(|| start(&array, [Op::sub(1, 1)], PATIENTLY));
    let posts = Arc::clone(&array);
    together(2, move |index| assert_eq!(posts.apply(&[Op::add(index, 1)], Wait::No), Ok(())));
    assert_eq!(pair.join().unwrap(), Ok(()));
    if let Some(single) = single {
        assert_eq!(single.join().unwrap(), Ok(()));
    }
    at_rest(&array, &[0, 0]);
}

/// A pair that sleeps for its first semaphore, and moves to its second when that one has come,
/// keeps its age: it is served before one that came after it and sleeps there already.
pub fn a_set_that_moves_keeps_its_age() {
    let array = array(&[0, 0]);
    let old = start(&array, [Op::sub(0, 1), Op::sub(1, 1)], PATIENTLY);
    asleep(&array, 0, 1, 0);
    let young = start(&array, [Op::sub(1, 1)], PATIENTLY);
    asleep(&array, 1, 1, 0);
    assert_eq!(array.apply(&[Op::add(0, 1)], Wait::No), Ok(()));
    assert_eq!(counts(&array), [0, 2], "the pair does not sleep where it stops");
    assert_eq!(array.apply(&[Op::add(1, 1)], Wait::No), Ok(()));
    assert_eq!(array.values(), [0, 0], "the younger one was served first");
    assert_eq!(old.join().unwrap(), Ok(()));
    assert_eq!(array.apply(&[Op::add(1, 1)], Wait::No), Ok(()));
    assert_eq!(young.join().unwrap(), Ok(()));
    at_rest(&array, &[0, 0]);
}

/// Two that sleep at different semaphores, which one set posts, the younger one's first, want what
/// there is once: the older one gets it.
#[allow(dead_code, reason = "it takes loom more than a minute")]
pub fn the_older_of_two_candidates_proceeds() {
    let array = array(&[0, 0, 1]);
    let older = start(&array, [Op::sub(0, 1), Op::sub(2, 1)], PATIENTLY);
    asleep(&array, 0, 1, 0);
    let younger = start(&array, [Op::sub(1, 1), Op::sub(2, 1)], PATIENTLY);
    asleep(&array, 1, 1, 0);
    assert_eq!(array.apply(&[Op::add(1, 1), Op::add(0, 1)], Wait::No), Ok(()));
    assert_eq!(array.values(), [0, 1, 0], "the younger one was served first");
    assert_eq!(older.join().unwrap(), Ok(()));
    assert_eq!(array.apply(&[Op::add(2, 1)], Wait::No), Ok(()));
    assert_eq!(younger.join().unwrap(), Ok(()));
    at_rest(&array, &[0, 0, 0]);
}

/// A pair sleeps for its second semaphore while its first has enough; somebody takes that away. It
/// sleeps for the first one then, or, if it is not to wait for that, it ends.
pub fn what_was_enough_is_taken_away(no_wait: bool) {
    let array = array(&[1, 0]);
    let first = Op::sub(0, 1);
    let pair = start(&array, [if no_wait { first.no_wait() } else { first }, Op::sub(1, 1)], PATIENTLY);
    asleep(&array, 1, 1, 0);
    assert_eq!(array.apply(&[Op::sub(0, 1)], Wait::No), Ok(()));
    if no_wait {
        assert_eq!(pair.join().unwrap(), Err(Error::WouldBlock));
    } else {
        assert_eq!(counts(&array), [1, 0], "the pair does not sleep where it stops");
        assert_eq!(array.apply(&[Op::add(1, 1)], Wait::No), Ok(()));
        assert_eq!(array.apply(&[Op::add(0, 1)], Wait::No), Ok(()));
        assert_eq!(pair.join().unwrap(), Ok(()));
    }
    at_rest(&array, &[0, 0]);
}

/// A pair that adds to its first semaphore sleeps for its second, while somebody fills the first to
/// the brim.
pub fn a_sleeper_overflows() {
    let array = array(&[LIMIT - 1, 0]);
    let pair = start(&array, [Op::add(0, 1), Op::sub(1, 1)], PATIENTLY);
    asleep(&array, 1, 1, 0);
    assert_eq!(array.apply(&[Op::add(0, 1)], Wait::No), Ok(()));
    assert_eq!(pair.join().unwrap(), Err(Error::ValueOutOfRange { index: 0, limit: LIMIT }));
    at_rest(&array, &[LIMIT, 0]);
}

/// Two that want the same pair, each in another order, and a third thread that provides for both,
/// with one set or with single operations.
pub fn crossed_pairs(one_by_one: bool) {
    let array = array(&[0, 0]);
    let pairs = [
        start(&array, [Op::sub(0, 1), Op::sub(1, 1)], PATIENTLY),
        start(&array, [Op::sub(1, 1), Op::sub(0, 1)], PATIENTLY),
    ];
    if one_by_one {
        for index in [0, 1, 1, 0] {
            assert_eq!(array.apply(&[Op::add(index, 1)], Wait::No), Ok(()));
        }
    } else {
        assert_eq!(array.apply(&[Op::add(1, 2), Op::add(0, 2)], Wait::No), Ok(()));
    }
    pairs.into_iter().for_each(|pair| assert_eq!(pair.join().unwrap(), Ok(())));
    at_rest(&array, &[0, 0]);
}

/// Sets that name a semaphore twice, so that they take their cells one by one and keep them, in one
/// order and in the other.
pub fn crossed_posters(posters: usize) {
    let array = array(&[0, 0]);
    let posts = Arc::clone(&array);
    together(posters, move |me| {
        let (a, b) = (me % 2, 1 - me % 2);
        assert_eq!(
            posts.apply(&[Op::add(a, 1), Op::add(b, 1), Op::sub(a, 1), Op::add(a, 1)], Wait::No),
            Ok(())
        );
    });
    at_rest(&array, &[posters as u32; 2]);
}

/// A pair of semaphores is a mutex that is taken in one order by some threads and in the other by
/// others.
pub fn a_pair_excludes(threads: usize) {
    struct Inside(Array, UnsafeCell<usize>);
    // SAFETY: the cell is accessed by who has both semaphores; that only one has is what the client
    // tests.
    unsafe impl Sync for Inside {}

    let inside = Arc::new(Inside(Array::new(&[1, 1], LIMIT, 500, Fairness::Barging), UnsafeCell::new(0)));
    let shared = Arc::clone(&inside);
    together(threads, move |me| {
        let (a, b) = (me % 2, 1 - me % 2);
        assert_eq!(shared.0.apply(&[Op::sub(a, 1), Op::sub(b, 1)], PATIENTLY), Ok(()));
        // SAFETY: this thread has both.
        shared.1.with_mut(|count| unsafe { *count += 1 });
        assert_eq!(shared.0.apply(&[Op::add(b, 1), Op::add(a, 1)], Wait::No), Ok(()));
    });
    // SAFETY: the others are gone.
    assert_eq!(inside.1.with(|count| unsafe { *count }), threads);
    at_rest(&inside.0, &[1, 1]);
}

/// Who waits for zero is served by the operation that makes it zero, though the next one makes it
/// one again. What is zero within a set only is nothing to it.
pub fn zero_between_two_sets() {
    let array = array(&[1]);
    let waiter = start(&array, [Op::wait_zero(0)], PATIENTLY);
    asleep(&array, 0, 0, 1);
    assert_eq!(array.apply(&[Op::sub(0, 1), Op::add(0, 1)], Wait::No), Ok(()));
    assert_eq!(array.waiters(0).unwrap().zero, 1, "it was served by a zero that nobody could see");
    assert_eq!(array.apply(&[Op::sub(0, 1)], Wait::No), Ok(()));
    assert_eq!(array.apply(&[Op::add(0, 1)], Wait::No), Ok(()));
    assert_eq!(waiter.join().unwrap(), Ok(()));
    at_rest(&array, &[1]);
}

/// Two who wait for zero, or for zero and for a unit, against one that takes the last and one that
/// adds.
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

/// One that sleeps, or is about to, against the end of the array: it is served, or told of the end.
/// `pair` sleeps for two.
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
    assert!(posted.is_ok() || served.is_err(), "it was served what nobody had posted");
    assert!(array.is_closed());
    assert_eq!(array.apply(&[Op::add(0, 1)], PATIENTLY), Err(Error::Closed));
    assert_eq!(groups::claimed(), 0, "a seat was not given back");
}

/// A set sleeps for its first semaphore, and is not to wait for its second: when the first comes,
/// it ends, and takes nothing.
pub fn a_sleeper_that_is_not_to_wait() {
    let array = array(&[0, 0]);
    let set = start(&array, [Op::sub(0, 1), Op::sub(1, 1).no_wait()], PATIENTLY);
    assert_eq!(array.apply(&[Op::add(0, 1)], Wait::No), Ok(()));
    assert_eq!(set.join().unwrap(), Err(Error::WouldBlock));
    at_rest(&array, &[1, 0]);
}

/// Sets that post to both, in one order and in the other, while a pair sleeps or is about to, and a
/// single one beside it.
pub fn posters_against_the_cascade(posters: usize) {
    let array = array(&[0, 0]);
    let pair = start(&array, [Op::sub(1, 1), Op::sub(0, 1)], PATIENTLY);
    let posts = Arc::clone(&array);
    together(posters, move |me| {
        let (a, b) = (me % 2, 1 - me % 2);
        assert_eq!(posts.apply(&[Op::add(a, 1), Op::add(b, 1)], Wait::No), Ok(()));
    });
    assert_eq!(pair.join().unwrap(), Ok(()));
    let rest = posters as u32 - 1;
    at_rest(&array, &[rest, rest]);
}

/// Somebody sets the value, or all of them, while one sleeps and another comes.
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

/// An array in which whoever sleeps is an elder.
fn strict_array(values: &[u32]) -> Shared {
    Arc::new(Array::new(values, LIMIT, 500, Fairness::Strict { after: Duration::ZERO }))
}

/// The eldest wants two units of which one is there: who comes later does not get that one.
pub fn no_set_takes_from_the_oldest_aged_set() {
    let array = strict_array(&[1, 0]);
    let eldest = start(&array, [Op::sub(0, 1), Op::sub(1, 1)], PATIENTLY);
    asleep(&array, 1, 1, 0);
    assert_eq!(array.apply(&[Op::sub(0, 1)], Wait::No), Err(Error::WouldBlock), "the eldest was robbed");
    assert_eq!(array.apply(&[Op::add(1, 1)], Wait::No), Ok(()));
    assert_eq!(eldest.join().unwrap(), Ok(()));
    at_rest(&array, &[0, 0]);
}

/// One sleeps because it would take from the eldest. When the eldest gives up, it is served, by the
/// eldest.
#[allow(dead_code, reason = "it takes a clock, which loom has not")]
pub fn the_oldest_aged_set_leaves() {
    let array = strict_array(&[1, 0]);
    let eldest = start(&array, [Op::sub(0, 1), Op::sub(1, 1)], soon());
    let stopped = start(&array, [Op::sub(0, 1)], PATIENTLY);
    assert_eq!(eldest.join().unwrap(), Err(Error::TimedOut));
    // It was served, or has not come yet.
    assert_eq!(array.waiters(0).unwrap().increase, 0, "somebody stops for an eldest that has left");
    assert_eq!(stopped.join().unwrap(), Ok(()));
    at_rest(&array, &[0, 0]);
}

/// Who has what the eldest waits for wants what is kept for the eldest before it gives anything
/// back: it may pass, in time.
#[allow(dead_code, reason = "it takes a clock, which loom has not")]
pub fn a_holder_that_wants_more_passes() {
    let array = strict_array(&[1, 0]);
    let eldest = start(&array, [Op::sub(0, 1), Op::sub(1, 1)], PATIENTLY);
    asleep(&array, 1, 1, 0);
    assert_eq!(array.apply(&[Op::sub(0, 1)], PATIENTLY), Ok(()));
    assert_eq!(array.apply(&[Op::add(0, 1)], Wait::No), Ok(()));
    assert_eq!(array.apply(&[Op::add(1, 1)], Wait::No), Ok(()));
    assert_eq!(eldest.join().unwrap(), Ok(()));
    at_rest(&array, &[0, 0]);
}

/// Who is served frees the array at once, while the one that served it may still be on its way
/// back. `pair` wants two, and the poster gives just that.
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
        // SAFETY: nobody frees it before all of it has been posted.
        assert_eq!(unsafe { &*handle.0 }.apply(&ops[..2 - first], Wait::No), Ok(()));
    });
    let ops = [Op::sub(0, 1), Op::sub(1, 1)];
    // SAFETY: alive until freed below.
    assert_eq!(unsafe { &*doomed }.apply(&ops[first..], PATIENTLY), Ok(()));
    // SAFETY: it came from a box, and the only other user is on its way out.
    unsafe { model::free(doomed) };
    poster.join().unwrap();
}
