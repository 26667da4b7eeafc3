//! The mutex.

use ulocks_core::{Private, Shared};
use ulocks_fair::RawFairMutex;
use ulocks_testkit::crowd;

#[test]
fn ten_thousand_wait_and_allocate_nothing() {
    crowd::ten_thousand_wait::<RawFairMutex<Private>>().check();
    crowd::ten_thousand_wait::<RawFairMutex<Shared>>().check();
}
