//! The mutex, in both protocols.

use ulocks_core::model::{Config, Deaths, Survivors, explore};
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};
use ulocks_fair::RawFairMutex;
use ulocks_testkit::model;
use ulocks_testkit::order::Recorder;

/// Runs `check` on the mutex in its variants, each with a chance of its own.
macro_rules! on_each {
    ($check:ident) => {
        $check::<RawFairMutex<Private>>(1);
        $check::<RawFairMutex<Private<NoSpin>>>(2);
        $check::<RawFairMutex<Shared>>(3);
        $check::<RawFairMutex<Shared<NoSpin>>>(4);
    };
}

/// How many executions of a model of so many threads: about as many steps for each number.
pub(crate) fn sampled(threads: usize, seed: u64) -> Config {
    Config { spurious: 2, seed, ..Config::sampled(6_000 / threads as u64) }
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
    on_each!(exclusion);
}

#[test]
fn try_lock_tells_the_truth() {
    for threads in MANY {
        explore(sampled(threads, 1), move || model::try_lock_coherence::<RawFairMutex<Private>>(threads));
        explore(sampled(threads, 1), move || model::try_lock_coherence::<RawFairMutex<Shared>>(threads));
    }
}

type Recorded = RawFairMutex<Private<NoSpin, Recorder>>;
type RecordedShared = RawFairMutex<Shared<NoSpin, Recorder>>;

#[test]
fn who_came_first_is_served_first() {
    for threads in MANY {
        for timed in [false, true] {
            explore(sampled(threads, 1), move || model::in_order::<Recorded>(threads, timed));
            explore(sampled(threads, 2), move || model::in_order::<RecordedShared>(threads, timed));
        }
    }
}

fn no_lost_wake<L: RawMutex + Send + Sync + 'static>(seed: u64) {
    explore(Config::exhaustive(), || model::no_lost_wake::<L>(2, 1));
    for threads in MANY {
        explore(sampled(threads, seed), move || model::no_lost_wake::<L>(threads, 2));
    }
    // With few numbers of tickets, as planted changes make them, this goes round them.
    explore(Config { seed, ..Config::sampled(200) }, || model::no_lost_wake::<L>(4, 20));
}

#[test]
fn nobody_sleeps_for_ever() {
    on_each!(no_lost_wake);
}

fn timeout_vs_unlock<L: RawMutex + Send + Sync + 'static>(seed: u64) {
    for threads in [2, 3, 4, 8, 16] {
        explore(sampled(threads, seed), move || model::timeout_vs_unlock::<L>(threads));
        explore(sampled(threads, seed), move || model::give_up_while_held::<L>(threads));
        // No deadline passes, so each thread that waits outside must be woken.
        let patient = Config { timeouts: false, ..sampled(threads, seed) };
        explore(patient, move || model::timeout_vs_unlock::<L>(threads));
    }
}

#[test]
fn a_timeout_strands_nobody() {
    on_each!(timeout_vs_unlock);
    explore(Config::exhaustive(), || model::timeout_vs_unlock::<RawFairMutex<Private<NoSpin>>>(2));
}

fn last_unlocker_frees<L: RawMutex + Send + Sync + 'static>(seed: u64) {
    explore(Config::exhaustive(), || model::last_unlocker_frees::<L>(2));
    for threads in MANY {
        explore(sampled(threads, seed), move || model::last_unlocker_frees::<L>(threads));
    }
}

#[test]
fn the_release_is_the_last_access() {
    on_each!(last_unlocker_frees);
}

fn death<L: RawMutex + Send + Sync + 'static>(seed: u64) {
    for threads in MANY {
        let config =
            Config { deaths: Deaths::Threads(2), survivors: Survivors::MayBlock, ..sampled(threads, seed) };
        explore(config, move || model::exclusion_despite_deaths::<L>(threads));
    }
}

/// Between processes a death may hold up everybody, but it lets nobody in. In one process threads
/// do not die alone: a node in line would be gone with its stack.
#[test]
fn a_death_lets_nobody_in() {
    death::<RawFairMutex<Shared>>(1);
    death::<RawFairMutex<Shared<NoSpin>>>(2);
}
