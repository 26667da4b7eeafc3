//! The mutex.

use ulocks_core::model::Config;
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};
use ulocks_testkit::suite::{exact, timed, unordered};
use ulocks_unfair::RawBargingMutex;

// Without patience there are fewer steps, hence more executions of what is left.
ulocks_testkit::loom_models! {
    locks: [RawBargingMutex<Private>, RawBargingMutex<Private<NoSpin>>, RawBargingMutex<Shared>],
    exclusion: [exact(2) => 3, unordered(2) => 3, Config { spurious: 2, ..exact(2) } => 2],
    try_lock: RawBargingMutex<Private>,
    no_lost_wake: [
        exact(3) => (2, 2),
        exact(3) => (3, 1),
        unordered(2) => (3, 1),
        Config { spurious: 2, ..exact(2) } => (3, 1),
    ],
    timeout_vs_unlock: [timed(3, 3) => 2, Config { timeouts: 3, ..unordered(2) } => 3],
    last_unlocker_frees: [exact(2) => 3],
}
