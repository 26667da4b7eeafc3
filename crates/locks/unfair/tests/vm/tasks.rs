//! The throughput mutex, with waiters that are tasks; and the rule of the calock.

use crate::throughput::AlwaysSolo;
use ulocks_core::Private;
use ulocks_core::model::Config;
use ulocks_core::queue::{Every, QueueMutex};
use ulocks_core::spin::{NoSpin, Patience};
use ulocks_testkit::tasks::{Mixed, Restless, Tasks};
use ulocks_unfair::{After, HandOff, RawThroughputMutex};

type All = Tasks<RawThroughputMutex<Private<NoSpin>>>;
type Some = Mixed<RawThroughputMutex<Private<NoSpin>>>;
type Strict = Mixed<RawThroughputMutex<Private<NoSpin>, HandOff>>;
type Polled = Restless<RawThroughputMutex<Private<NoSpin>>>;
/// A thread that is the candidate naps.
type Solo = Mixed<RawThroughputMutex<Private<NoSpin>, After<50_000, AlwaysSolo>>>;
type Culled = Mixed<QueueMutex<Private<NoSpin>, Every<50_000>>>;
/// A task looks for a moment as it arrives, and when it was woken.
type Looking = Tasks<RawThroughputMutex<Private<Patience<1>>>>;
type StrictlyLooking = Mixed<RawThroughputMutex<Private<Patience<1>>, HandOff>>;

/// How many executions of a model of so many threads: about as many steps for each number.
fn sampled(threads: usize, seed: u64) -> Config {
    Config { spurious: 2, seed, ..Config::sampled(8_000 / threads as u64) }
}

ulocks_testkit::vm_models! {
    sampled: sampled,
    locks: [All = 1, Some = 2, Strict = 3, Polled = 4, Solo = 5, Culled = 6, Looking = 7, StrictlyLooking = 8],
    exhaustive: {
        preemptions: 3,
        exclusion: [All, Polled],
        no_lost_wake: [All, Polled],
        timeout_vs_unlock: [All],
        last_unlocker_frees: [All],
    },
    try_lock: [All],
}
