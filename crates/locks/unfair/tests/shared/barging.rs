//! The mutex.

use ulocks_core::Shared;
use ulocks_core::spin::NoSpin;
use ulocks_testkit::stress::Load;
use ulocks_unfair::RawBargingMutex;

ulocks_testkit::shared_tests! { Load::default(); RawBargingMutex<Shared>, RawBargingMutex<Shared<NoSpin>> }
