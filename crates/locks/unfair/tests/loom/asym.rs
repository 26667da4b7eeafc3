//! The asymmetric mutex.

use crate::warm::{Warm, neighbours};
use ulocks_core::model::explore;
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};
use ulocks_testkit::suite::exact;
use ulocks_unfair::RawAsymMutex;

/// With its gate open from the start, and with fewer steps, hence more executions of what is left.
type Open = Warm<RawAsymMutex<Private<NoSpin>>, 1>;

ulocks_testkit::loom_models! { Warm<RawAsymMutex<Private>, 1>, Open, RawAsymMutex<Private<NoSpin>>, RawAsymMutex<Shared<NoSpin>> }

#[test]
fn neighbours_do_not_lose_one_anothers_marks() {
    explore(exact(3), || neighbours::<Open>(2, 1, 1));
    explore(exact(2), || neighbours::<RawAsymMutex<Private<NoSpin>>>(2, 1, 1));
}
