//! The asymmetric mutex. The heavy fence is the machine's own here: a fence on every thread,
//! wherever it is.

use crate::warm::{Warm, neighbours};
use ulocks_core::model::{Config, Deaths, Survivors, explore};
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};
use ulocks_testkit::model;
use ulocks_testkit::tickets::{all_at_once, all_beside_a_barger, one_by_one, one_gives_up};
use ulocks_unfair::RawAsymMutex;

/// With its gate open from the start, and with fewer steps, hence more executions of what is left.
type Open = Warm<Private<NoSpin>>;

/// Runs `check` on the mutex in its variants, each with a chance of its own.
macro_rules! on_each {
    ($check:ident) => {
        $check::<Warm<Private>>(1);
        $check::<Open>(2);
        $check::<RawAsymMutex<Private<NoSpin>>>(3);
        $check::<RawAsymMutex<Shared<NoSpin>>>(4);
    };
}

/// How many executions of a model of so many threads: about as many steps for each number.
fn sampled(threads: usize, seed: u64) -> Config {
    Config { spurious: 2, seed, ..Config::sampled(12_000 / threads as u64) }
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
    explore(Config::exhaustive(), || model::try_lock_coherence::<Open>(2));
    for threads in MANY {
        explore(sampled(threads, 1), move || model::try_lock_coherence::<Open>(threads));
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
    on_each!(no_lost_wake);
}

#[test]
fn neighbours_do_not_lose_one_anothers_marks() {
    for threads in MANY {
        explore(sampled(threads, 1), move || neighbours::<Open>(threads - 1, 1, 2));
        explore(sampled(threads, 2), move || neighbours::<Open>(threads / 2, threads - threads / 2, 3));
    }
    // Of a waiter that comes while the gate is closing.
    explore(Config::sampled(100_000), || neighbours::<Open>(2, 2, 1));
}

fn timeout_vs_unlock<L: RawMutex + Send + Sync + 'static>(seed: u64) {
    for threads in [2].into_iter().chain(MANY) {
        explore(sampled(threads, seed), move || model::timeout_vs_unlock::<L>(threads));
    }
}

#[test]
fn a_timeout_strands_nobody() {
    on_each!(timeout_vs_unlock);
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
    on_each!(condvar);
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
    on_each!(death);
}
