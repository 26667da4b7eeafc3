//! The throughput mutex.

use ulocks_core::Private;
use ulocks_core::model::Config;
use ulocks_core::spin::NoSpin;
use ulocks_testkit::suite::{exact, timed, unordered};
use ulocks_unfair::{HandOff, RawThroughputMutex};

type Mutex = RawThroughputMutex<Private>;
/// Fewer steps, hence more executions of what is left.
type Sleeper = RawThroughputMutex<Private<NoSpin>>;
/// Reserves whenever it was woken in vain.
type Strict = RawThroughputMutex<Private<NoSpin>, HandOff>;

ulocks_testkit::loom_models! {
    locks: [Mutex, Sleeper, Strict],
    exclusion: [
        exact(2) => 3,
        unordered(1) => 3,
        Config { spurious: 2, ..exact(2) } => 2,
    ],
    try_lock: Mutex,
    no_lost_wake: [
        exact(2) => (3, 1),
        unordered(1) => (3, 1),
        timed(1, 2) => (3, 1),
    ],
    timeout_vs_unlock: [timed(2, 3) => 2],
    last_unlocker_frees: [exact(2) => 3],
}
