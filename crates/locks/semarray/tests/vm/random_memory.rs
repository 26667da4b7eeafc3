//! What semaphores protect: plain data in a cell whose accesses the machine checks. Each ordering
//! of the protocol is there for one of these models, which fails without it.

use crate::random_recorded::{Array, soon};
use ulocks_core::model::{Config, explore};
use ulocks_core::sync::UnsafeCell;
use ulocks_semarray::{Error, Fairness, Op, Wait, groups};
use ulocks_testkit::thread::{Arc, together, with};

const FOR_EVER: Wait = Wait::Until(None);

/// An array, and what it protects.
struct Protected {
    array: Array,
    count: UnsafeCell<usize>,
}

// SAFETY: a thread accesses the count after it has acquired it by a set, or when it is the last
// thread. That this is one thread at a time is what the models test.
unsafe impl Sync for Protected {}
// SAFETY: as above.
unsafe impl Send for Protected {}

impl Protected {
    fn new(values: &[u32]) -> Arc<Self> {
        assert_eq!(groups::claimed(), 0, "a seat was left behind");
        Arc::new(Self { array: Array::new(values, 9, 9, Fairness::Barging), count: UnsafeCell::new(0) })
    }

    fn apply(&self, ops: &[Op]) {
        self.array.apply(ops, FOR_EVER).expect("an open array");
    }

    fn add(&self) {
        // SAFETY: says the caller's set.
        self.count.with_mut(|count| unsafe { *count += 1 });
    }

    fn count(&self) -> usize {
        // SAFETY: says the caller's set.
        self.count.with(|count| unsafe { *count })
    }
}

/// One thread at a time has what `take` takes, in its own way, and sees what the earlier ones did.
fn exclusion(values: &'static [u32], ways: &'static [(&'static [Op], &'static [Op])]) {
    let protected = Protected::new(values);
    let shared = Arc::clone(&protected);
    together(ways.len(), move |me| {
        let (take, give) = ways[me];
        shared.apply(take);
        shared.add();
        shared.apply(give);
    });
    assert_eq!(protected.count(), ways.len(), "updates were lost");
    assert_eq!(protected.array.values(), values);
    assert!(protected.array.is_at_rest(), "something was left behind");
    assert_eq!(groups::claimed(), 0, "a seat was left behind");
}

/// A set that was handed what it waited for sees what was done before. A set that timed out takes
/// nothing.
fn hand_over(values: &[u32], take: &'static [Op], give: &'static [Op]) {
    let protected = Protected::new(values);
    let taker = with(&protected, move |protected| {
        if protected.array.apply(take, soon()).is_ok() {
            assert_eq!(protected.count(), 1, "handed over too early");
            protected.add();
        }
    });
    protected.add();
    protected.apply(give);
    taker.join().expect("the taker panicked");
    assert!(protected.array.is_at_rest(), "something was left behind");
    assert_eq!(groups::claimed(), 0, "a seat was left behind");
}

/// A thread that finds a value sees what was done before it was there.
fn publication(start: u32, publish: fn(&Array), seen: fn(&Array) -> bool) {
    let protected = Protected::new(&[start]);
    let publisher = with(&protected, move |protected| {
        protected.add();
        publish(&protected.array);
    });
    if seen(&protected.array) {
        assert_eq!(protected.count(), 1, "published too early");
    }
    publisher.join().expect("the publisher panicked");
}

const ONE: (&[Op], &[Op]) = (&[Op::sub(0, 1)], &[Op::add(0, 1)]);
const BOTH: (&[Op], &[Op]) = (&[Op::sub(0, 1), Op::sub(1, 1)], &[Op::add(0, 1), Op::add(1, 1)]);
const LIKEWISE: (&[Op], &[Op]) = (&[Op::sub(1, 1), Op::sub(0, 1)], &[Op::add(1, 1), Op::add(0, 1)]);
/// `[wait_zero, add]`, the lock of old.
const ZERO: (&[Op], &[Op]) = (&[Op::wait_zero(0), Op::add(0, 1)], &[Op::sub(0, 1)]);
/// Twice the same semaphore: a session.
const TWICE: (&[Op], &[Op]) = (&[Op::sub(0, 1), Op::sub(0, 1)], &[Op::add(0, 1), Op::add(0, 1)]);

type Ways = &'static [(&'static [Op], &'static [Op])];
const SINGLE: Ways = &[ONE, ONE, ONE];
const SETS: Ways = &[BOTH, LIKEWISE, BOTH];
const MIXED: Ways = &[ONE, BOTH, TWICE_OF_ONE];
const TWICE_OF_ONE: (&[Op], &[Op]) = (&[Op::sub(0, 1), Op::add(0, 1), Op::sub(0, 1)], &[Op::add(0, 1)]);
const ZEROS: Ways = &[ZERO, ZERO, ZERO];

fn sampled(executions: u64) -> Config {
    Config { spurious: 2, ..Config::sampled(executions) }
}

#[test]
fn one_at_a_time_has_what_there_is_one_of() {
    const MODELS: [(&[u32], Ways); 5] =
        [(&[1], SINGLE), (&[1, 1], SETS), (&[1, 1], MIXED), (&[0], ZEROS), (&[2], &[TWICE, TWICE, TWICE])];
    for (values, ways) in MODELS {
        explore(sampled(1_500), move || exclusion(values, ways));
    }
}

#[test]
fn what_is_handed_over_comes_with_what_was_done_before() {
    const ZERO_OF: &[Op] = &[Op::wait_zero(0)];
    const SECOND: &[Op] = &[Op::sub(1, 1)];
    const BY_SESSION: &[Op] = &[Op::add(0, 2), Op::add(1, 1), Op::sub(0, 1)];
    const MODELS: [(&[u32], &[Op], &[Op]); 6] = [
        (&[0, 0], ONE.0, ONE.1),
        (&[0, 0], BOTH.0, LIKEWISE.1),
        (&[0, 0], LIKEWISE.0, BOTH.1),
        (&[0, 0], SECOND, BOTH.1),
        (&[0, 0], ONE.0, BY_SESSION),
        (&[1, 0], ZERO_OF, ONE.0),
    ];
    for (values, take, give) in MODELS {
        explore(sampled(1_500), move || hand_over(values, take, give));
    }
}

fn adds(array: &Array) {
    array.apply(&[Op::add(0, 1)], Wait::No).expect("there is room");
}

fn subtracts(array: &Array) {
    array.apply(&[Op::sub(0, 1)], Wait::No).expect("there is one");
}

fn zero(array: &Array) -> bool {
    array.apply(&[Op::wait_zero(0)], Wait::No).is_ok()
}

fn is_not_zero(array: &Array) -> bool {
    array.apply(&[Op::wait_zero(0)], Wait::No) == Err(Error::WouldBlock)
}

fn reads_one(array: &Array) -> bool {
    array.value(0) == Ok(1)
}

fn subtracts_in_a_session(array: &Array) {
    // It is refused if the other thread has taken it.
    _ = array.apply(TWICE_OF_ONE.0, Wait::No);
}

fn is_refused_one(array: &Array) -> bool {
    array.apply(ONE.0, Wait::No) == Err(Error::WouldBlock)
}

fn finds_it_closed_in_a_session(array: &Array) -> bool {
    array.apply(TWICE.0, Wait::No) == Err(Error::Closed)
}

#[test]
fn what_is_seen_comes_with_what_was_done_before() {
    explore(Config::exhaustive(), || publication(1, subtracts, zero));
    explore(Config::exhaustive(), || publication(0, adds, is_not_zero));
    explore(Config::exhaustive(), || publication(0, adds, reads_one));
    explore(Config::exhaustive(), || publication(0, Array::close, Array::is_closed));
    explore(Config::exhaustive(), || publication(0, Array::close, finds_it_closed_in_a_session));
    let few = Config { preemptions: Some(3), ..Config::exhaustive() };
    explore(few, || publication(1, subtracts_in_a_session, is_refused_one));
}

/// Each of two threads adds to its own semaphore, then looks at the other's. The calls come one
/// after the other, so one thread at least sees what the other did. Nothing else orders the two.
fn one_sees(misses: fn(&Array, [usize; 2]) -> bool) {
    let protected = Protected::new(&[0; 4]);
    let misses_in = move |protected: &Protected, [me, other]: [usize; 2]| {
        protected.apply(&[Op::add(me, 1)]);
        misses(&protected.array, [me, other])
    };
    let second = with(&protected, move |protected| misses_in(protected, [1, 0]));
    let first = misses_in(&protected, [0, 1]);
    let second = second.join().expect("the second thread panicked");
    assert!(!(first && second), "each missed what the other had done");
}

fn finds_zero(array: &Array, [_, other]: [usize; 2]) -> bool {
    array.apply(&[Op::wait_zero(other)], Wait::No).is_ok()
}

fn is_refused(array: &Array, [_, other]: [usize; 2]) -> bool {
    array.apply(&[Op::sub(other, 1)], Wait::No) == Err(Error::WouldBlock)
}

/// Behind an operation on a semaphore of the thread's own, which it has locked then.
fn is_refused_later(array: &Array, [me, other]: [usize; 2]) -> bool {
    array.apply(&[Op::add(2 + me, 1), Op::sub(other, 1)], Wait::No) == Err(Error::WouldBlock)
}

fn reads_zero(array: &Array, [_, other]: [usize; 2]) -> bool {
    array.value(other) == Ok(0)
}

#[test]
fn of_two_that_find_zero_one_sees_the_other() {
    explore(Config::exhaustive(), || one_sees(finds_zero));
}

#[test]
fn of_two_that_are_refused_one_sees_the_other() {
    explore(Config::exhaustive(), || one_sees(is_refused));
    explore(sampled(1_500), || one_sees(is_refused_later));
}

#[test]
fn of_two_that_read_one_sees_the_other() {
    explore(Config::exhaustive(), || one_sees(reads_zero));
}
