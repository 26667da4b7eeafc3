//! The mutex.

use ulocks_core::spin::{NoSpin, Patience};
use ulocks_core::{Private, Shared};
use ulocks_fair::{FairCondvar, FairMutex, RawFairMutex};

ulocks_testkit::miri_tests! {
    FairMutex, FairCondvar;
    RawFairMutex<Private>,
    RawFairMutex<Private<NoSpin>>,
    RawFairMutex<Shared<Patience<1_000>>>,
    RawFairMutex<Shared<NoSpin>>,
}
