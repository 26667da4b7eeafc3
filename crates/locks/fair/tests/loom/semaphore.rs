//! The semaphore with one permit, as a mutex, in both protocols.

use crate::permits::Binary;
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};

ulocks_testkit::loom_models! { Binary<Private<NoSpin>>, Binary<Shared<NoSpin>> }
