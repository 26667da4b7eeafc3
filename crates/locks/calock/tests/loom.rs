//! A few small models in loom's world: that the lock works there, for models of protocols that are
//! built on it. What the planted bugs break, and all larger models, is the virtual machine's.
#![cfg(all(ulocks_loom, feature = "loom"))]

#[allow(dead_code, reason = "the virtual machine uses the others")]
#[path = "common/advice.rs"]
mod advice;

use advice::{Rarely, Strictly};
use ulocks_calock::RawCalock;
use ulocks_core::Private;
use ulocks_core::spin::NoSpin;
use ulocks_testkit::suite::{exact, timed, unordered};

/// Every release that may wake does, so that a lost wake-up is a deadlock: no timer helps.
type Strict = RawCalock<Private<NoSpin>, Strictly>;

ulocks_testkit::loom_models! {
    locks: [Strict],
    exclusion: [exact(4) => 2, exact(2) => 3],
    try_lock: RawCalock<Private, Rarely>,
    no_lost_wake: [exact(3) => (2, 2), exact(2) => (3, 1), unordered(1) => (3, 1)],
    timeout_vs_unlock: [timed(3, 4) => 2],
    last_unlocker_frees: [exact(4) => 2, timed(1, 3) => 3],
}
