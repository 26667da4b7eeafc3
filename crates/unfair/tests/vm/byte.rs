//! The mutex in two bits of a byte.

use crate::bits::{bits_survive, replacements_succeed_one_another};
use crate::mutex::sampled;
use ulocks_core::Private;
use ulocks_core::model::{Config, Deaths, Survivors, explore};
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_testkit::model;
use ulocks_testkit::tickets::{all_at_once, all_beside_a_barger, one_gives_up};
use ulocks_unfair::RawByteMutex;

type Mutex = RawByteMutex;
/// Fewer steps, hence more executions of what is left; and other bits.
type Sleeper = RawByteMutex<Private<NoSpin>, 0b0001_0000, 0b0000_1000>;

/// Runs `check` on the mutex in its variants, each with a chance of its own.
macro_rules! on_sound_locks {
    ($check:ident) => {
        $check::<Mutex>(1);
        $check::<Sleeper>(2);
    };
}

const MANY: [usize; 4] = [3, 4, 8, 16];

fn exclusion<L: RawMutex + Send + Sync + 'static>(seed: u64) {
    for threads in MANY {
        explore(sampled(threads, seed), move || model::exclusion::<L>(threads));
    }
}

#[test]
fn at_most_one_is_inside() {
    on_sound_locks!(exclusion);
    explore(Config::exhaustive(), || model::exclusion::<Sleeper>(2));
}

#[test]
fn try_lock_tells_the_truth() {
    explore(Config::exhaustive(), || model::try_lock_coherence::<Mutex>(2));
    for threads in MANY {
        explore(sampled(threads, 1), move || model::try_lock_coherence::<Mutex>(threads));
    }
}

fn no_lost_wake<L: RawMutex + Send + Sync + 'static>(seed: u64) {
    for threads in MANY {
        explore(sampled(threads, seed), move || model::no_lost_wake::<L>(threads, 2));
    }
}

#[test]
fn nobody_sleeps_for_ever() {
    on_sound_locks!(no_lost_wake);
    explore(Config::exhaustive(), || model::no_lost_wake::<Sleeper>(2, 1));
}

fn timeout_vs_unlock<L: RawMutex + Send + Sync + 'static>(seed: u64) {
    for threads in MANY {
        explore(sampled(threads, seed), move || model::timeout_vs_unlock::<L>(threads));
    }
}

#[test]
fn a_timeout_strands_nobody() {
    on_sound_locks!(timeout_vs_unlock);
}

fn last_unlocker_frees<L: RawMutex + Send + Sync + 'static>(seed: u64) {
    for threads in MANY {
        explore(sampled(threads, seed), move || model::last_unlocker_frees::<L>(threads));
    }
}

#[test]
fn the_release_is_the_last_access() {
    on_sound_locks!(last_unlocker_frees);
    explore(Config::exhaustive(), || model::last_unlocker_frees::<Sleeper>(2));
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

#[test]
fn the_other_bits_are_the_users() {
    explore(Config::exhaustive(), || bits_survive(1));
    explore(sampled(4, 1), || bits_survive(2));
    explore(sampled(4, 2), || replacements_succeed_one_another(2));
}

#[test]
fn a_condition_variable_works_with_it() {
    for waiters in [2, 4] {
        for while_holding in [false, true] {
            explore(sampled(2 * waiters, 1), move || all_at_once::<Sleeper>(waiters, while_holding));
        }
        explore(sampled(2 * waiters, 1), move || all_beside_a_barger::<Sleeper>(waiters));
        explore(sampled(2 * waiters, 1), move || one_gives_up::<Sleeper>(waiters));
    }
}
