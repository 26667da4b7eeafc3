//! The mutex, in both protocols.

use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};
use ulocks_fair::RawFairMutex;
use ulocks_testkit::suite::{exact, timed, unordered};

ulocks_testkit::loom_models! {
    locks: [RawFairMutex<Private<NoSpin>>, RawFairMutex<Shared<NoSpin>>],
    exclusion: [exact(3) => 2, exact(1) => 3],
    try_lock: RawFairMutex<Private>,
    no_lost_wake: [exact(2) => (2, 2), unordered(1) => (2, 2), exact(1) => (3, 1)],
    timeout_vs_unlock: [timed(2, 3) => 2],
    last_unlocker_frees: [exact(3) => 2],
}
