//! The semaphore with one permit, as a mutex, in both protocols.

use crate::permits::Binary;
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};
use ulocks_testkit::suite::{exact, timed, unordered};

ulocks_testkit::loom_models! {
    locks: [Binary<Private<NoSpin>>, Binary<Shared<NoSpin>>],
    exclusion: [exact(3) => 2, exact(1) => 3],
    try_lock: Binary<Private>,
    no_lost_wake: [exact(2) => (2, 2), unordered(1) => (2, 2)],
    timeout_vs_unlock: [timed(2, 3) => 2],
    last_unlocker_frees: [exact(2) => 2, unordered(2) => 2],
}
