//! The throughput mutex.

use crate::mutex::sampled;
use crate::overtaking::reserver_is_next;
use ulocks_core::model::{Config, Deaths, Strategy, Survivors, explore};
use ulocks_core::raw::RawMutex;
use ulocks_core::slice::Extended;
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};
use ulocks_testkit::model;
use ulocks_testkit::tickets::{all_at_once, all_beside_a_barger, one_by_one, one_gives_up};
use ulocks_unfair::{After, HandOff, RawThroughputMutex};

type Mutex = RawThroughputMutex<Private>;
/// Fewer steps, hence more executions of what is left.
type Sleeper = RawThroughputMutex<Private<NoSpin>>;
/// Reserves whenever it was woken in vain.
type Strict = RawThroughputMutex<Private<NoSpin>, HandOff>;
/// Would take the head of the line for dead if deadlines passed.
type BetweenProcesses = RawThroughputMutex<Shared<NoSpin>, HandOff>;

/// Runs `check` on the mutex in its variants, each with a chance of its own.
macro_rules! on_each {
    ($check:ident) => {
        $check::<Mutex>(1);
        $check::<Sleeper>(2);
        $check::<Strict>(3);
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
    explore(Config::exhaustive(), || model::exclusion::<Sleeper>(2));
    on_each!(exclusion);
    explore(sampled(4, 1), || model::try_lock_coherence::<Mutex>(4));
}

fn no_lost_wake<L: RawMutex + Send + Sync + 'static>(seed: u64) {
    for threads in MANY {
        explore(sampled(threads, seed), move || model::no_lost_wake::<L>(threads, 2));
    }
}

#[test]
fn nobody_sleeps_for_ever() {
    on_each!(no_lost_wake);
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

#[test]
fn a_death_lets_nobody_in() {
    on_each!(death);
}

/// Between processes waiters look now and then whether the head is dead, for ever if need be. A run
/// may let no time pass, or by chance, but not as much as its priorities please.
#[test]
fn a_mutex_between_processes_keeps_these_promises() {
    for threads in [3, 4, 8] {
        let timeless = Config { timeouts: false, ..sampled(threads, 4) };
        explore(timeless.clone(), move || model::exclusion::<BetweenProcesses>(threads));
        explore(timeless.clone(), move || model::no_lost_wake::<BetweenProcesses>(threads, 2));
        let by_chance = Config { strategy: Strategy::Random, ..sampled(threads, 4) };
        explore(by_chance.clone(), move || model::exclusion::<BetweenProcesses>(threads));
        explore(by_chance, move || model::timeout_vs_unlock::<BetweenProcesses>(threads));
    }
}

#[test]
fn nobody_but_the_reserver_takes_a_reserved_mutex() {
    for threads in [2, 3, 4, 8] {
        explore(sampled(threads, 1), move || {
            _ = reserver_is_next::<Private<NoSpin>, HandOff>(vec![2; threads], || {})
        });
        explore(sampled(threads, 2), move || {
            _ = reserver_is_next::<Private, HandOff>(vec![2; threads], || {})
        });
        explore(sampled(threads, 3), move || {
            _ = reserver_is_next::<Private<NoSpin>, After>(vec![2; threads], || {})
        });
    }
}

#[test]
fn those_who_were_moved_here_all_get_the_mutex() {
    for waiters in [2, 4, 8] {
        for while_holding in [false, true] {
            explore(sampled(2 * waiters, 1), move || all_at_once::<Strict>(waiters, while_holding));
            explore(sampled(2 * waiters, 1), move || one_by_one::<Strict>(waiters, while_holding));
        }
        explore(sampled(2 * waiters, 1), move || all_beside_a_barger::<Strict>(waiters));
        explore(sampled(2 * waiters, 1), move || one_gives_up::<Strict>(waiters));
    }
}

/// What asks for time slices adds nothing that a model sees, and loses nothing on the way.
#[test]
fn around_it_everything_is_as_within() {
    exclusion::<Extended<Mutex>>(5);
    no_lost_wake::<Extended<Sleeper>>(5);
    timeout_vs_unlock::<Extended<Sleeper>>(5);
    last_unlocker_frees::<Extended<Mutex>>(5);
    explore(sampled(8, 5), || all_at_once::<Extended<Strict>>(4, true));
}
