//! Arrays that remember who has slept too long.

use crate::random_recorded::{Array, soon};
use core::time::Duration;
use ulocks_core::model::{Config, explore};
use ulocks_core::sync::spin_until;
use ulocks_core::time::Deadline;
use ulocks_semarray::{Error, Fairness, Op, Wait, groups};
use ulocks_testkit::thread::{Arc, spawn};

/// Nobody sleeps on for ever who could go on.
const FOR_EVER: Wait = Wait::Until(None);
const AT_ONCE: Fairness = Fairness::Strict { after: Duration::ZERO };
const LATER: Fairness = Fairness::Strict { after: Duration::from_millis(1) };

fn sampled(executions: u64, seed: u64) -> Config {
    Config { spurious: 2, seed, ..Config::sampled(executions) }
}

fn array(values: &[u32], fairness: Fairness) -> Arc<Array> {
    assert_eq!(groups::claimed(), 0, "somebody has left a seat behind");
    Arc::new(Array::new(values, 9, 9, fairness))
}

fn at_rest(array: &Array, values: &[u32]) {
    assert_eq!(array.values(), values);
    assert!(array.is_at_rest(), "something was left behind");
    assert_eq!(groups::claimed(), 0, "somebody has left a seat behind");
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

/// Who comes does not take what the eldest needs, not even of what it would not need all; who gives
/// may.
fn arriving_sets_stop() {
    let array = array(&[1, 0], AT_ONCE);
    let lets_pass = Deadline::after(Duration::from_millis(10));
    let eldest = waits!(array, Op::sub(0, 1), Op::sub(1, 1));
    if sleeps(&array, 1) {
        assert_eq!(array.apply(&[Op::sub(0, 1)], Wait::No), Err(Error::WouldBlock), "the eldest was passed");
        if array.apply(&[Op::sub(0, 1)], soon()).is_ok() {
            assert!(lets_pass.remaining().is_zero(), "the eldest was passed");
            array.apply(&[Op::add(0, 1)], Wait::No).expect("there is room");
        }
        assert_eq!(array.apply(&[Op::sub(0, 1), Op::add(0, 1), Op::add(1, 1)], Wait::No), Ok(()));
    } else {
        array.apply(&[Op::add(1, 1)], Wait::No).expect("there is room");
    }
    eldest.join().expect("the eldest panicked");
    at_rest(&array, &[0, 0]);
}

/// The eldest gives up, and those who stopped for it need not any more.
fn the_oldest_aged_set_times_out(fairness: Fairness) {
    let array = array(&[1], fairness);
    let timed = Arc::clone(&array);
    let eldest = spawn(move || assert_eq!(timed.apply(&[Op::sub(0, 2)], soon()), Err(Error::TimedOut)));
    let other = Arc::clone(&array);
    let next = spawn(move || other.apply(&[Op::sub(0, 3)], soon()));
    array.apply(&[Op::sub(0, 1)], FOR_EVER).expect("an open array");
    eldest.join().expect("the eldest panicked");
    assert_eq!(next.join().expect("the next panicked"), Err(Error::TimedOut));
    at_rest(&array, &[0]);
}

/// The eldest is served, and somebody who stopped for it needs nothing but that.
fn the_oldest_aged_set_is_served(fairness: Fairness) {
    let array = array(&[0, 2], fairness);
    let eldest = waits!(array, Op::sub(1, 1), Op::sub(0, 1));
    let stops = waits!(array, Op::sub(1, 1));
    array.apply(&[Op::add(0, 1)], Wait::No).expect("there is room");
    eldest.join().expect("the eldest panicked");
    stops.join().expect("who stops panicked");
    at_rest(&array, &[0, 0]);
}

/// The eldest loses what it had got as far as, and with it what it stops others from.
fn the_oldest_aged_set_goes_back(fairness: Fairness) {
    let array = array(&[1, 1], fairness);
    let eldest = waits!(array, Op::sub(0, 1), Op::sub(1, 2));
    let stops = waits!(array, Op::sub(1, 1));
    array.set(0, 0).expect("in range");
    stops.join().expect("who stops panicked");
    array.apply(&[Op::add(0, 1), Op::add(1, 2)], Wait::No).expect("there is room");
    eldest.join().expect("the eldest panicked");
    at_rest(&array, &[0, 0]);
}

/// The older of two grows old after the younger, and is the eldest from then on; who stopped for
/// the younger is not in its way, and brings what both need.
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
        thread.join().expect("somebody panicked");
    }
    at_rest(&array, &[0, 0]);
}

/// The same, and what the older one has got as far as is kept for it once it is the eldest, however
/// soon the younger one was.
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

/// Somebody who has a part of what the eldest needs asks for more before it gives back.
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
    whole.join().expect("who wants all panicked");
    at_rest(&array, &[2]);
}

/// The same with a semaphore as a count of readers, whom a writer waits for.
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
