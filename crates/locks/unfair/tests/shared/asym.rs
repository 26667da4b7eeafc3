//! The asymmetric mutex, whose releases are exchanges here.

use ulocks_core::Shared;
use ulocks_core::spin::NoSpin;
use ulocks_testkit::stress::Load;
use ulocks_unfair::RawAsymMutex;

ulocks_testkit::shared_tests! { Load::default(); RawAsymMutex<Shared>, RawAsymMutex<Shared<NoSpin>> }
