//! The biased mutex, which no process owns.

use ulocks_core::Shared;
use ulocks_core::spin::NoSpin;
use ulocks_testkit::stress::Load;
use ulocks_unfair::RawBiasedMutex;

ulocks_testkit::shared_tests! { Load::default(); RawBiasedMutex<Shared>, RawBiasedMutex<Shared<NoSpin>> }
