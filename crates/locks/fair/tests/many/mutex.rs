//! The mutex.

use ulocks_core::{Private, Shared};
use ulocks_fair::RawFairMutex;

ulocks_testkit::crowd_tests! { RawFairMutex<Private>, RawFairMutex<Shared> }
