//! The mutex.

use ulocks_core::{Private, Shared};
use ulocks_unfair::RawBargingMutex;

ulocks_testkit::crowd_tests! { RawBargingMutex<Private>, RawBargingMutex<Shared> }
