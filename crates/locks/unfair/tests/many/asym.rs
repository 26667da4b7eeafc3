//! The asymmetric mutex.

use ulocks_core::{Private, Shared};
use ulocks_unfair::RawAsymMutex;

ulocks_testkit::crowd_tests! { RawAsymMutex<Private>, RawAsymMutex<Shared> }
