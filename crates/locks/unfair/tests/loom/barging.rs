//! The mutex.

use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};
use ulocks_unfair::RawBargingMutex;

ulocks_testkit::loom_models! { RawBargingMutex<Private>, RawBargingMutex<Private<NoSpin>>, RawBargingMutex<Shared> }
