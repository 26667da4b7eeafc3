//! Arrays with strict fairness: which set stops for which.

use crate::random_recorded::{Array, soon};
use core::time::Duration;
use ulocks_core::model::{Config, explore};
use ulocks_core::sync::spin_until;
use ulocks_core::time::Deadline;
use ulocks_semarray::{Error, Fairness, Op, Wait, groups};
use ulocks_testkit::thread::{Arc, spawn, with};

/// No set waits for ever that could proceed.
const FOR_EVER: Wait = Wait::Until(None);
const AT_ONCE: Fairness = Fairness::Strict { after: Duration::ZERO };
const LATER: Fairness = Fairness::Strict { after: Duration::from_millis(1) };

fn sampled(executions: u64, seed: u64) -> Config {
    Config { spurious: 2, seed, ..Config::sampled(executions) }
}

fn array(values: &[u32], fairness: Fairness) -> Arc<Array> {
    assert_eq!(groups::claimed(), 0, "a seat was left behind");
    Arc::new(Array::new(values, 9, 9, fairness))
}

fn at_rest(array: &Array, values: &[u32]) {
    assert_eq!(array.values(), values);
    assert!(array.is_at_rest(), "something was left behind");
    assert_eq!(groups::claimed(), 0, "a seat was left behind");
}

/// Runs `set` on a thread of its own; it must be performed.
macro_rules! waits {
    ($array:expr, $($op:expr),+) => {{
        let array = Arc::clone(&$array);
        spawn(move || array.apply(&[$($op),+], FOR_EVER).expect("an open array"))
    }};
}

fn sleeps(array: &Array, index: usize) -> bool {
    array.waiters(index).expect("an index").increase > 0
}

/// An arriving set does not take what the oldest aged set needs, not even if there is more than
/// that set needs. A set that gives to it may.
fn arriving_sets_stop() {
    let array = array(&[1, 0], AT_ONCE);
    let lets_pass = Deadline::after(Duration::from_millis(10));
    let oldest = waits!(array, Op::sub(0, 1), Op::sub(1, 1));
    if sleeps(&array, 1) {
        assert_eq!(
            array.apply(&[Op::sub(0, 1)], Wait::No),
            Err(Error::WouldBlock),
            "the oldest aged set was passed"
        );
        if array.apply(&[Op::sub(0, 1)], soon()).is_ok() {
            assert!(lets_pass.remaining().is_zero(), "the oldest aged set was passed");
            array.apply(&[Op::add(0, 1)], Wait::No).expect("there is room");
        }
        assert_eq!(array.apply(&[Op::sub(0, 1), Op::add(0, 1), Op::add(1, 1)], Wait::No), Ok(()));
    } else {
        array.apply(&[Op::add(1, 1)], Wait::No).expect("there is room");
    }
    oldest.join().expect("the aged set's thread panicked");
    at_rest(&array, &[0, 0]);
}

/// The oldest aged set times out, and the sets that stopped for it need not stop any more.
fn the_oldest_aged_set_times_out(fairness: Fairness) {
    let array = array(&[1], fairness);
    let oldest =
        with(&array, |array| assert_eq!(array.apply(&[Op::sub(0, 2)], soon()), Err(Error::TimedOut)));
    let next = with(&array, |array| array.apply(&[Op::sub(0, 3)], soon()));
    array.apply(&[Op::sub(0, 1)], FOR_EVER).expect("an open array");
    oldest.join().expect("the aged set's thread panicked");
    assert_eq!(next.join().expect("the next panicked"), Err(Error::TimedOut));
    at_rest(&array, &[0]);
}

/// The oldest aged set is served, and a set that stopped for it needs nothing but that.
fn the_oldest_aged_set_is_served(fairness: Fairness) {
    let array = array(&[0, 2], fairness);
    let oldest = waits!(array, Op::sub(1, 1), Op::sub(0, 1));
    let stops = waits!(array, Op::sub(1, 1));
    array.apply(&[Op::add(0, 1)], Wait::No).expect("there is room");
    oldest.join().expect("the aged set's thread panicked");
    stops.join().expect("the stopped thread panicked");
    at_rest(&array, &[0, 0]);
}

/// The oldest aged set goes back to an earlier operation, and stops others no more at the later
/// one.
fn the_oldest_aged_set_goes_back(fairness: Fairness) {
    let array = array(&[1, 1], fairness);
    let oldest = waits!(array, Op::sub(0, 1), Op::sub(1, 2));
    let stops = waits!(array, Op::sub(1, 1));
    array.set(0, 0).expect("in range");
    stops.join().expect("the stopped thread panicked");
    array.apply(&[Op::add(0, 1), Op::add(1, 2)], Wait::No).expect("there is room");
    oldest.join().expect("the aged set's thread panicked");
    at_rest(&array, &[0, 0]);
}

/// The oldest aged set gets on. Now another set gives to it, and does not stop for it any more.
fn the_oldest_aged_set_gets_on(fairness: Fairness) {
    let array = array(&[5, 1, 0], fairness);
    let oldest = waits!(array, Op::sub(0, 1), Op::sub(1, 2), Op::sub(2, 1));
    let gives = waits!(array, Op::sub(0, 1), Op::add(2, 1));
    array.apply(&[Op::add(1, 1)], Wait::No).expect("there is room");
    oldest.join().expect("the aged set's thread panicked");
    gives.join().expect("the giving thread panicked");
    at_rest(&array, &[3, 0, 0]);
}

/// The older of two sets becomes aged after the younger, and stops others from then on. A thread
/// that stopped for the younger one is not in its way, and brings what both need.
fn an_older_one_grows_old() {
    let array = array(&[0, 1], LATER);
    let older = waits!(array, Op::sub(0, 1));
    let younger = waits!(array, Op::sub(1, 2));
    let brings = Arc::clone(&array);
    let brings = spawn(move || {
        brings.apply(&[Op::sub(1, 1)], FOR_EVER).expect("an open array");
        brings.apply(&[Op::add(0, 1)], Wait::No).expect("there is room");
        brings.apply(&[Op::add(1, 2)], Wait::No).expect("there is room");
    });
    for thread in [older, younger, brings] {
        thread.join().expect("a thread panicked");
    }
    at_rest(&array, &[0, 0]);
}

/// The same. What the older set has got as far as is kept for it once it is aged, however early the
/// younger one was.
fn the_older_of_two_aged_sets_stops_others() {
    let array = array(&[1, 0, 0], LATER);
    let older = waits!(array, Op::sub(0, 1), Op::sub(1, 1));
    spin_until(|| sleeps(&array, 1));
    let younger = waits!(array, Op::sub(2, 1));
    let is_kept = || array.apply(&[Op::sub(0, 1)], Wait::No) == Err(Error::WouldBlock);
    spin_until(|| {
        is_kept() || {
            array.apply(&[Op::add(0, 1)], Wait::No).expect("there is room");
            false
        }
    });
    array.apply(&[Op::add(1, 1), Op::add(2, 1)], Wait::No).expect("there is room");
    older.join().expect("the older one panicked");
    younger.join().expect("the younger one panicked");
    at_rest(&array, &[0, 0, 0]);
}

/// A thread that has a part of what the aged set needs asks for more before it gives that back.
fn holds_and_waits(fairness: Fairness) {
    let array = array(&[2], fairness);
    let whole = Arc::clone(&array);
    let whole = spawn(move || {
        whole.apply(&[Op::sub(0, 2)], FOR_EVER).expect("an open array");
        whole.apply(&[Op::add(0, 2)], Wait::No).expect("there is room");
    });
    array.apply(&[Op::sub(0, 1)], FOR_EVER).expect("an open array");
    array.apply(&[Op::sub(0, 1)], FOR_EVER).expect("an open array");
    array.apply(&[Op::add(0, 2)], Wait::No).expect("there is room");
    whole.join().expect("the other thread panicked");
    at_rest(&array, &[2]);
}

/// The same with a semaphore as a count of readers, for which a writer waits.
fn reads_again(fairness: Fairness) {
    let array = array(&[0], fairness);
    let writer = waits!(array, Op::wait_zero(0), Op::add(0, 1), Op::sub(0, 1));
    for _ in 0..2 {
        array.apply(&[Op::add(0, 1)], FOR_EVER).expect("an open array");
    }
    array.apply(&[Op::sub(0, 2)], FOR_EVER).expect("an open array");
    writer.join().expect("the writer panicked");
    at_rest(&array, &[0]);
}

#[test]
fn arriving_sets_stop_for_the_oldest_aged_set() {
    explore(sampled(4_000, 1), arriving_sets_stop);
}

#[test]
fn a_set_that_stops_for_the_oldest_aged_set_is_served_when_that_leaves() {
    for fairness in [AT_ONCE, LATER] {
        explore(sampled(3_000, 1), move || the_oldest_aged_set_times_out(fairness));
        explore(sampled(3_000, 2), move || the_oldest_aged_set_is_served(fairness));
        explore(sampled(3_000, 3), move || the_oldest_aged_set_goes_back(fairness));
        explore(sampled(3_000, 6), move || the_oldest_aged_set_gets_on(fairness));
    }
    explore(sampled(3_000, 4), an_older_one_grows_old);
    explore(sampled(3_000, 5), the_older_of_two_aged_sets_stops_others);
}

#[test]
fn a_holder_that_waits_is_let_pass() {
    for fairness in [AT_ONCE, LATER] {
        explore(sampled(3_000, 1), move || holds_and_waits(fairness));
        explore(sampled(3_000, 1), move || reads_again(fairness));
    }
}
