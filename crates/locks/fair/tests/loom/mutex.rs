//! The mutex.

use ulocks_core::Private;
use ulocks_core::spin::NoSpin;
use ulocks_fair::RawFairMutex;

ulocks_testkit::loom_models! { RawFairMutex<Private<NoSpin>> }
