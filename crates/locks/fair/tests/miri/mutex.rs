//! The mutex.

use ulocks_core::Private;
use ulocks_core::spin::{NoSpin, Patience};
use ulocks_fair::{FairCondvar, FairMutex, RawFairMutex};
use ulocks_testkit::tasks::{Mixed, Restless};

ulocks_testkit::miri_tests! {
    FairMutex, FairCondvar;
    RawFairMutex<Private>,
    RawFairMutex<Private<NoSpin>>,
    RawFairMutex<Private<Patience<1_000>>>,
    Restless<RawFairMutex<Private<NoSpin>>>,
    Mixed<RawFairMutex<Private>>,
}
