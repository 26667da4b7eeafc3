//! The mutex.

use ulocks_core::Private;
use ulocks_core::spin::{NoSpin, Patience};
use ulocks_fair::{FairCondvar, FairMutex, RawFairMutex};

ulocks_testkit::miri_tests! {
    FairMutex, FairCondvar;
    RawFairMutex<Private>,
    RawFairMutex<Private<NoSpin>>,
    RawFairMutex<Private<Patience<1_000>>>,
}
