//! The asymmetric mutex.

use ulocks_core::{Private, Shared};
use ulocks_testkit::crowd;
use ulocks_unfair::RawAsymMutex;

#[test]
fn ten_thousand_wait_and_allocate_nothing() {
    crowd::ten_thousand_wait::<RawAsymMutex<Private>>().check();
    crowd::ten_thousand_wait::<RawAsymMutex<Shared>>().check();
}
