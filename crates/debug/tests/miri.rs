//! The clients of the mutexes on checked locks, small enough for Miri.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use ulocks_core::Private;
use ulocks_core::spin::NoSpin;
use ulocks_debug::{Checked, FairCondvar, FairMutex};
use ulocks_fair::RawFairMutex;
use ulocks_unfair::{RawMutex, RawThroughputMutex};

ulocks_testkit::miri_tests! {
    FairMutex, FairCondvar;
    Checked<RawMutex<Private>>,
    Checked<RawThroughputMutex<Private<NoSpin>>>,
    Checked<RawFairMutex<Private>>,
}
