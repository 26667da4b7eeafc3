//! The mutex.

use ulocks_core::{Private, Shared};
use ulocks_unfair::RawMutex;

ulocks_testkit::crowd_tests! { RawMutex<Private>, RawMutex<Shared> }
