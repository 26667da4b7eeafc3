//! The mutex, in both protocols.

use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};
use ulocks_fair::RawFairMutex;

ulocks_testkit::loom_models! { RawFairMutex<Private<NoSpin>>, RawFairMutex<Shared<NoSpin>> }
