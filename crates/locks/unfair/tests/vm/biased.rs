//! The biased mutex. The heavy fence is the machine's own here.

use crate::inside::stay;
use crate::warm::{Warm, neighbours};
use ulocks_core::Private;
use ulocks_core::model::{Config, explore};
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_testkit::suite::MANY;
use ulocks_testkit::tickets::{all_at_once, all_beside_a_barger, one_by_one, one_gives_up};
use ulocks_unfair::RawBiasedMutex;

/// Owned by the thread that makes it, which takes part in the models.
type Owned = Warm<RawBiasedMutex<Private<NoSpin>>, 2>;
type OwnedSpinner = Warm<RawBiasedMutex<Private>, 2>;
/// Without an owner at first: threads that lock it several times become owners in turn.
type Sleeper = RawBiasedMutex<Private<NoSpin>>;

/// How many executions of a model of so many threads: about as many steps for each number.
fn sampled(threads: usize, seed: u64) -> Config {
    Config { spurious: 2, seed, ..Config::sampled(12_000 / threads as u64) }
}

ulocks_testkit::vm_models! {
    sampled: sampled,
    locks: [Owned = 1, OwnedSpinner = 2, Sleeper = 3],
    exhaustive: {
        exclusion: [Owned],
        no_lost_wake: [],
        timeout_vs_unlock: [],
        last_unlocker_frees: [],
    },
    try_lock: [Sleeper],
    deaths: [Owned = 1, OwnedSpinner = 2, Sleeper = 3],
}

#[test]
fn an_owner_that_stays_inside_is_alone() {
    for threads in MANY {
        explore(sampled(threads, 1), move || stay::<Owned>(threads, 1));
        explore(sampled(threads, 2), move || stay::<OwnedSpinner>(threads, 1));
        explore(sampled(threads, 3), move || stay::<Sleeper>(threads, 4));
    }
    explore(Config::sampled(100_000), || stay::<Owned>(2, 3));
}

/// Two mutexes behind one gate: a release of one opens the gate on the owner of the other.
#[test]
fn neighbours_keep_to_their_owners() {
    for threads in MANY {
        explore(sampled(threads, 1), move || neighbours::<Owned>(threads - 1, 1, 3));
        explore(sampled(threads, 2), move || neighbours::<Sleeper>(threads / 2, threads - threads / 2, 4));
    }
    explore(Config::sampled(100_000), || neighbours::<Owned>(2, 2, 2));
}

fn condvar<L: RawMutex + Send + Sync + 'static>(seed: u64) {
    for waiters in [2, 4, 8] {
        for while_holding in [false, true] {
            explore(sampled(2 * waiters, seed), move || all_at_once::<L>(waiters, while_holding));
            explore(sampled(2 * waiters, seed), move || one_by_one::<L>(waiters, while_holding));
        }
        explore(sampled(2 * waiters, seed), move || all_beside_a_barger::<L>(waiters));
        explore(sampled(2 * waiters, seed), move || one_gives_up::<L>(waiters));
    }
}

#[test]
fn who_waits_for_a_condition_gets_the_mutex() {
    condvar::<Owned>(1);
    condvar::<OwnedSpinner>(2);
    condvar::<Sleeper>(3);
}
