//! The calock keeps its promises.

use crate::advice::{self, AlwaysHot, Rarely, Short, Strictly, WakesEachTime};
use crate::impatient::impatient_strand_nobody;
use crate::overtaking::promoted_is_next;
use crate::{sampled, timeless};
use ulocks_calock::RawCalock;
use ulocks_calock::advice::Advised;
use ulocks_core::Private;
use ulocks_core::model::{Config, explore};
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_testkit::model;
use ulocks_testkit::suite::{MANY, exclusion, last_unlocker_frees, no_lost_wake, timeout_vs_unlock};
use ulocks_testkit::tickets::{all_at_once, all_beside_a_barger, one_by_one, one_gives_up};

/// Every release that may wake does.
type Strict = RawCalock<Private<NoSpin>, Strictly>;
type StrictSpinner = RawCalock<Private, Strictly>;
type Eager = RawCalock<Private<NoSpin>, Advised<Short, WakesEachTime>>;
/// As the plan says.
type Calock = RawCalock<Private, Short>;
type Sleeper = RawCalock<Private<NoSpin>, Short>;
/// No release wakes that need not, so that everything comes from the timer of the standby.
type Rare = RawCalock<Private<NoSpin>, Rarely>;
/// The same, and an arriving thread parks at once while a thread is parked.
type Hot = RawCalock<Private, Advised<Short, AlwaysHot>>;
/// The standby sleeps twice before its interval has passed.
type Seen = RawCalock<Private<NoSpin>, advice::Seen>;

/// Runs `check` on locks for which no timer is needed, each with a chance of its own.
macro_rules! on_each {
    ($check:ident) => {
        $check::<Strict>(timeless, 1);
        $check::<StrictSpinner>(timeless, 2);
        $check::<Eager>(timeless, 8);
    };
}

/// Runs `check` on locks that rely on the timer of the standby.
macro_rules! on_each_in_time {
    ($check:ident) => {
        $check::<Calock>(sampled, 4);
        $check::<Sleeper>(sampled, 5);
        $check::<Rare>(sampled, 6);
        $check::<Seen>(sampled, 7);
        $check::<Hot>(sampled, 9);
    };
}

#[test]
fn at_most_one_is_inside() {
    explore(Config::exhaustive(), || model::try_lock_coherence::<Calock>(2));
    on_each!(exclusion);
    on_each_in_time!(exclusion);
    explore(sampled(4, 1), || model::try_lock_coherence::<Calock>(4));
}

#[test]
fn nobody_sleeps_for_ever() {
    on_each!(no_lost_wake);
    on_each_in_time!(no_lost_wake);
}

fn impatient<L: RawMutex + Send + Sync + 'static>(sampled: fn(usize, u64) -> Config, seed: u64) {
    for threads in MANY {
        explore(sampled(threads, seed), move || impatient_strand_nobody::<L>(threads - 1));
    }
}

#[test]
fn a_timeout_strands_nobody() {
    on_each_in_time!(timeout_vs_unlock);
    on_each_in_time!(impatient);
    explore(Config::sampled(20_000), || model::timeout_vs_unlock::<Strict>(2));
    // A waiter that gives up is seldom woken at that moment.
    explore(Config::sampled(50_000), || impatient_strand_nobody::<Strict>(2));
}

#[test]
fn the_release_is_the_last_access() {
    on_each_in_time!(last_unlocker_frees);
}

#[test]
fn the_promoted_is_next() {
    explore(Config::sampled(20_000), || _ = promoted_is_next::<Short>(2, 3, || {}));
    explore(Config::sampled(50_000), || _ = promoted_is_next::<Strictly>(2, 2, || {}));
    for threads in [2, 3, 4, 8] {
        explore(sampled(threads, 1), move || _ = promoted_is_next::<Strictly>(threads, 2, || {}));
        explore(sampled(threads, 2), move || _ = promoted_is_next::<Rarely>(threads, 2, || {}));
        explore(sampled(threads, 3), move || _ = promoted_is_next::<advice::Seen>(threads, 2, || {}));
    }
}

#[test]
fn those_who_were_moved_here_all_get_the_mutex() {
    for waiters in [2, 4, 8] {
        for while_holding in [false, true] {
            explore(timeless(2 * waiters, 1), move || all_at_once::<Strict>(waiters, while_holding));
            explore(sampled(2 * waiters, 1), move || all_at_once::<Rare>(waiters, while_holding));
            explore(timeless(2 * waiters, 1), move || one_by_one::<Strict>(waiters, while_holding));
            explore(sampled(2 * waiters, 1), move || one_by_one::<Rare>(waiters, while_holding));
        }
        explore(timeless(2 * waiters, 1), move || all_beside_a_barger::<Strict>(waiters));
        explore(sampled(2 * waiters, 1), move || all_beside_a_barger::<Rare>(waiters));
        explore(sampled(2 * waiters, 1), move || one_gives_up::<Sleeper>(waiters));
    }
}
