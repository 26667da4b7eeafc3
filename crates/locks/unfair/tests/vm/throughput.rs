//! The throughput mutex.

use crate::barging::sampled;
use ulocks_core::Private;
use ulocks_core::spin::NoSpin;
use ulocks_unfair::{HandOff, RawThroughputMutex};

type Mutex = RawThroughputMutex<Private>;
/// Fewer steps, hence more executions of what is left.
type Sleeper = RawThroughputMutex<Private<NoSpin>>;
/// Reserves whenever it was woken in vain.
type Strict = RawThroughputMutex<Private<NoSpin>, HandOff>;

ulocks_testkit::vm_models! {
    sampled: sampled,
    locks: [Mutex = 1, Sleeper = 2, Strict = 3],
    exhaustive: {
        exclusion: [],
        no_lost_wake: [],
        timeout_vs_unlock: [],
        last_unlocker_frees: [],
    },
    try_lock: [Mutex],
    deaths: [Mutex = 1, Sleeper = 2, Strict = 3],
}

