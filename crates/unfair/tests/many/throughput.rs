//! The throughput mutex.

use ulocks_core::{Private, Shared};
use ulocks_unfair::{HandOff, RawThroughputMutex};

ulocks_testkit::crowd_tests! {
    RawThroughputMutex<Private>, RawThroughputMutex<Private, HandOff>, RawThroughputMutex<Shared>,
}
