//! The mutex.

use ulocks_core::model::crash::sweep;
use ulocks_core::model::{Config, Deaths, Survivors, explore};
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};
use ulocks_testkit::model;

type Mutex = ulocks_unfair::RawMutex<Private>;
/// Fewer steps, hence more executions of what is left.
pub(crate) type Sleeper = ulocks_unfair::RawMutex<Private<NoSpin>>;

/// Runs `check` on the mutex in its variants, each with a chance of its own.
macro_rules! on_sound_locks {
    ($check:ident) => {
        $check::<Mutex>(1);
        $check::<Sleeper>(2);
        $check::<ulocks_unfair::RawMutex<Shared>>(3);
    };
}

/// How many executions of a model of so many threads: about as many steps for each number.
pub(crate) fn sampled(threads: usize, seed: u64) -> Config {
    Config { spurious: 2, seed, ..Config::sampled(16_000 / threads as u64) }
}

const MANY: [usize; 4] = [3, 4, 8, 16];

fn exclusion<L: RawMutex + Send + Sync + 'static>(seed: u64) {
    explore(Config::exhaustive(), || model::exclusion::<L>(2));
    for threads in MANY {
        explore(sampled(threads, seed), move || model::exclusion::<L>(threads));
    }
}

#[test]
fn at_most_one_is_inside() {
    on_sound_locks!(exclusion);
}

#[test]
fn try_lock_tells_the_truth() {
    explore(Config::exhaustive(), || model::try_lock_coherence::<Mutex>(2));
    for threads in MANY {
        explore(sampled(threads, 1), move || model::try_lock_coherence::<Mutex>(threads));
    }
}

fn no_lost_wake<L: RawMutex + Send + Sync + 'static>(seed: u64) {
    explore(Config::exhaustive(), || model::no_lost_wake::<L>(2, 1));
    for threads in MANY {
        explore(sampled(threads, seed), move || model::no_lost_wake::<L>(threads, 2));
    }
}

#[test]
fn nobody_sleeps_for_ever() {
    on_sound_locks!(no_lost_wake);
}

fn timeout_vs_unlock<L: RawMutex + Send + Sync + 'static>(seed: u64) {
    explore(Config::exhaustive(), || model::timeout_vs_unlock::<L>(2));
    for threads in MANY {
        explore(sampled(threads, seed), move || model::timeout_vs_unlock::<L>(threads));
    }
}

#[test]
fn a_timeout_strands_nobody() {
    on_sound_locks!(timeout_vs_unlock);
}

fn last_unlocker_frees<L: RawMutex + Send + Sync + 'static>(seed: u64) {
    explore(Config::exhaustive(), || model::last_unlocker_frees::<L>(2));
    for threads in MANY {
        explore(sampled(threads, seed), move || model::last_unlocker_frees::<L>(threads));
    }
}

#[test]
fn the_release_is_the_last_access() {
    on_sound_locks!(last_unlocker_frees);
}

fn death<L: RawMutex + Send + Sync + 'static>(seed: u64) {
    for threads in MANY {
        let config =
            Config { deaths: Deaths::Threads(2), survivors: Survivors::MayBlock, ..sampled(threads, seed) };
        explore(config, move || model::exclusion_despite_deaths::<L>(threads));
    }
}

#[test]
fn a_death_lets_nobody_in() {
    on_sound_locks!(death);
}

/// The mutex is not robust, and says so: who dies with it, or with a wake-up that is another's,
/// holds up the others.
#[test]
fn a_death_before_the_first_access_holds_up_nobody() {
    let sweep = sweep(&sampled(3, 1), 1, || model::exclusion_despite_deaths::<Sleeper>(3)).unwrap();
    println!("{sweep}");
    assert_eq!(sweep.fatal().next().map(|point| point.step), Some(1), "the release that is not reached");
}
