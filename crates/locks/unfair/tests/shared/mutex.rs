//! The mutex.

use ulocks_core::Shared;
use ulocks_core::spin::NoSpin;
use ulocks_testkit::stress::Load;
use ulocks_unfair::RawMutex;

ulocks_testkit::shared_tests! { Load::default(); RawMutex<Shared>, RawMutex<Shared<NoSpin>> }
