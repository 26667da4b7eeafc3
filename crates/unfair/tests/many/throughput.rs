//! The throughput mutex.

use ulocks_core::{Private, Shared};
use ulocks_testkit::crowd;
use ulocks_unfair::{HandOff, RawThroughputMutex};

#[test]
fn ten_thousand_wait_and_allocate_nothing() {
    crowd::ten_thousand_wait::<RawThroughputMutex<Private>>().check();
    crowd::ten_thousand_wait::<RawThroughputMutex<Private, HandOff>>().check();
    crowd::ten_thousand_wait::<RawThroughputMutex<Shared>>().check();
}
