//! The mutex.

use ulocks_core::model::Config;
use ulocks_core::model::crash::sweep;
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};
use ulocks_testkit::model;

type Mutex = ulocks_unfair::RawBargingMutex<Private>;
/// Fewer steps, hence more executions of what is left.
pub(crate) type Sleeper = ulocks_unfair::RawBargingMutex<Private<NoSpin>>;
type BetweenProcesses = ulocks_unfair::RawBargingMutex<Shared>;

/// How many executions of a model of so many threads: about as many steps for each number.
pub(crate) fn sampled(threads: usize, seed: u64) -> Config {
    Config { spurious: 2, seed, ..Config::sampled(16_000 / threads as u64) }
}

ulocks_testkit::vm_models! {
    sampled: sampled,
    locks: [Mutex = 1, Sleeper = 2, BetweenProcesses = 3],
    exhaustive: {
        exclusion: [Mutex, Sleeper, BetweenProcesses],
        no_lost_wake: [Mutex, Sleeper, BetweenProcesses],
        timeout_vs_unlock: [Mutex, Sleeper, BetweenProcesses],
        last_unlocker_frees: [Mutex, Sleeper, BetweenProcesses],
    },
    try_lock: [Mutex],
    interrupted: [Sleeper = 1, BetweenProcesses = 2],
    deaths: [Mutex = 1, Sleeper = 2, BetweenProcesses = 3],
}

/// The mutex is not robust, and says so: a thread that dies with it, or with a wake-up that is
/// another's, holds up the others.
#[test]
fn a_death_before_the_first_access_holds_up_nobody() {
    let sweep = sweep(&sampled(3, 1), 1, || model::exclusion_despite_deaths::<Sleeper>(3)).unwrap();
    println!("{sweep}");
    assert_eq!(sweep.fatal().next().map(|point| point.step), Some(1), "the release that is not reached");
}
