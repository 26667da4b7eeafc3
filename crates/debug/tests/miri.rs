//! The clients of the mutexes on checked locks, small enough for Miri.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use ulocks_core::Private;
use ulocks_core::spin::NoSpin;
use ulocks_debug::{
    BargingCondvar, BargingMutex, Checked, FairCondvar, FairMutex, ThroughputCondvar, ThroughputMutex,
};
use ulocks_fair::RawFairMutex;
use ulocks_unfair::{RawBargingMutex, RawThroughputMutex};

mod unfair {
    use super::*;
    ulocks_testkit::miri_tests! { BargingMutex, BargingCondvar; Checked<RawBargingMutex<Private>> }
}

mod throughput {
    use super::*;
    ulocks_testkit::miri_tests! {
        ThroughputMutex, ThroughputCondvar; Checked<RawThroughputMutex<Private<NoSpin>>>
    }
}

mod fair {
    use super::*;
    ulocks_testkit::miri_tests! { FairMutex, FairCondvar; Checked<RawFairMutex<Private>> }
}
