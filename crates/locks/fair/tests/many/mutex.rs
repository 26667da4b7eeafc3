//! The mutex.

use ulocks_core::Private;
use ulocks_fair::RawFairMutex;

ulocks_testkit::crowd_tests! { RawFairMutex<Private> }
