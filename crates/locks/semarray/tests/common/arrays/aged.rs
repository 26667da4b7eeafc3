//! Clients of arrays with aged sets.

use super::{Array, LIMIT, PATIENTLY, Shared, asleep, at_rest, soon, start};
use core::time::Duration;
use ulocks_semarray::{Error, Fairness, Op, Wait};
use ulocks_testkit::thread::Arc;

/// An array in which every waiting set is aged.
fn strict_array(values: &[u32]) -> Shared {
    Arc::new(Array::new(values, LIMIT, 500, Fairness::Strict { after: Duration::ZERO }))
}

/// The aged set wants two units, of which one is there. A later set does not get that one.
pub fn no_set_takes_from_the_oldest_aged_set() {
    let array = strict_array(&[1, 0]);
    let oldest = start(&array, [Op::sub(0, 1), Op::sub(1, 1)], PATIENTLY);
    asleep(&array, 1, 1, 0);
    assert_eq!(array.apply(&[Op::sub(0, 1)], Wait::No), Err(Error::WouldBlock), "the aged set was robbed");
    assert_eq!(array.apply(&[Op::add(1, 1)], Wait::No), Ok(()));
    assert_eq!(oldest.join().unwrap(), Ok(()));
    at_rest(&array, &[0, 0]);
}

/// A set waits because it would take from the aged one. When that times out, its thread serves the
/// set.
#[allow(dead_code, reason = "it takes a clock, which loom has not")]
pub fn the_oldest_aged_set_leaves() {
    let array = strict_array(&[1, 0]);
    let oldest = start(&array, [Op::sub(0, 1), Op::sub(1, 1)], soon());
    let stopped = start(&array, [Op::sub(0, 1)], PATIENTLY);
    assert_eq!(oldest.join().unwrap(), Err(Error::TimedOut));
    // The set was served, or has not come yet.
    assert_eq!(array.waiters(0).unwrap().increase, 0, "a set stops for an aged set that has left");
    assert_eq!(stopped.join().unwrap(), Ok(()));
    at_rest(&array, &[0, 0]);
}

/// A thread holds what the aged set waits for. Before it gives that back, it wants what is kept for
/// the aged set: in time it may pass.
#[allow(dead_code, reason = "it takes a clock, which loom has not")]
pub fn a_holder_that_wants_more_passes() {
    let array = strict_array(&[1, 0]);
    let oldest = start(&array, [Op::sub(0, 1), Op::sub(1, 1)], PATIENTLY);
    asleep(&array, 1, 1, 0);
    assert_eq!(array.apply(&[Op::sub(0, 1)], PATIENTLY), Ok(()));
    assert_eq!(array.apply(&[Op::add(0, 1)], Wait::No), Ok(()));
    assert_eq!(array.apply(&[Op::add(1, 1)], Wait::No), Ok(()));
    assert_eq!(oldest.join().unwrap(), Ok(()));
    at_rest(&array, &[0, 0]);
}
