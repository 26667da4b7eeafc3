//! A few small models in loom's world: that the lock works there, for models of protocols that are
//! built on it. What the planted bugs break, and all larger models, is the virtual machine's.
#![cfg(all(ulocks_loom, feature = "loom"))]

#[allow(dead_code, reason = "the virtual machine uses the others")]
#[path = "common/advice.rs"]
mod advice;

use advice::Strictly;
use ulocks_calock::RawCalock;
use ulocks_core::Private;
use ulocks_core::spin::NoSpin;

/// Every release that may wake does, so that a lost wake-up is a deadlock: no timer helps.
type Strict = RawCalock<Private<NoSpin>, Strictly>;

ulocks_testkit::loom_models! { Strict }
