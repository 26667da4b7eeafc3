//! The calock keeps its promises.

use crate::advice::{self, AlwaysHot, Rarely, Short, Strictly, WakesEachTime};
use crate::impatient::impatient_strand_nobody;
use crate::overtaking::promoted_is_next;
use crate::{at_last, exact, timed, unordered};
use ulocks_calock::RawCalock;
use ulocks_calock::advice::Advised;
use ulocks_core::model::{Config, explore};
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};
use ulocks_testkit::model;
use ulocks_testkit::tickets::{all_at_once, all_beside_a_barger, one_by_one, one_gives_up};

/// Every release that may wake does, so that a lost wake-up is a deadlock: no timer helps.
type Strict = RawCalock<Private<NoSpin>, Strictly>;
type StrictSpinner = RawCalock<Private, Strictly>;
type StrictShared = RawCalock<Shared<NoSpin>, Strictly>;
/// No release wakes that need not, so that everything comes from the timer of the standby.
type Rare = RawCalock<Private<NoSpin>, Rarely>;
/// The same, and who arrives parks at once while somebody is parked.
type Hot = RawCalock<Private, Advised<Short, AlwaysHot>>;
/// The standby sleeps twice before its interval has passed.
type Seen = RawCalock<Private<NoSpin>, advice::Seen>;

/// Runs `check` on the lock in its variants.
macro_rules! on_each {
    ($check:ident) => {
        $check::<Strict>();
        $check::<StrictSpinner>();
        $check::<StrictShared>();
        $check::<RawCalock<Private<NoSpin>, Advised<Short, WakesEachTime>>>();
    };
}

/// Runs `check` on what depends on the timer, for two threads.
macro_rules! on_each_in_time {
    ($check:ident) => {
        $check::<RawCalock<Private<NoSpin>, Short>>();
        $check::<Rare>();
        $check::<Hot>();
        $check::<Seen>();
    };
}

fn exclusion<L: RawMutex + Send + Sync + 'static>() {
    explore(exact(4), || model::exclusion::<L>(2));
    explore(exact(2), || model::exclusion::<L>(3));
    explore(timed(2, 2), || model::exclusion::<L>(3));
    explore(unordered(1), || model::exclusion::<L>(3));
    explore(Config { spurious: 2, ..exact(2) }, || model::exclusion::<L>(2));
}

#[test]
fn at_most_one_is_inside() {
    on_each!(exclusion);
    explore(exact(2), || model::try_lock_coherence::<StrictSpinner>(3));
}

fn no_lost_wake<L: RawMutex + Send + Sync + 'static>() {
    explore(exact(4), || model::no_lost_wake::<L>(2, 2));
    explore(exact(2), || model::no_lost_wake::<L>(3, 2));
    explore(unordered(1), || model::no_lost_wake::<L>(3, 1));
    explore(timed(2, 3), || model::no_lost_wake::<L>(3, 1));
    explore(Config { spurious: 2, ..exact(1) }, || model::no_lost_wake::<L>(3, 1));
}

#[test]
fn nobody_sleeps_for_ever() {
    on_each!(no_lost_wake);
}

fn in_time<L: RawMutex + Send + Sync + 'static>() {
    explore(at_last(3), || model::exclusion::<L>(2));
    explore(at_last(3), || model::no_lost_wake::<L>(2, 2));
    explore(at_last(3), || model::timeout_vs_unlock::<L>(2));
    explore(at_last(3), || model::last_unlocker_frees::<L>(2));
}

#[test]
fn the_sentinel_wakes_by_itself() {
    on_each_in_time!(in_time);
}

fn timeout_vs_unlock<L: RawMutex + Send + Sync + 'static>() {
    explore(timed(3, 4), || model::timeout_vs_unlock::<L>(2));
    explore(timed(1, 4), || model::timeout_vs_unlock::<L>(3));
    explore(timed(1, 3), || impatient_strand_nobody::<L>(2));
    explore(timed(1, 3), || impatient_strand_nobody::<L>(3));
}

#[test]
fn a_timeout_strands_nobody() {
    on_each!(timeout_vs_unlock);
}

fn last_unlocker_frees<L: RawMutex + Send + Sync + 'static>() {
    explore(exact(4), || model::last_unlocker_frees::<L>(2));
    explore(exact(2), || model::last_unlocker_frees::<L>(3));
    explore(timed(1, 3), || model::last_unlocker_frees::<L>(3));
}

#[test]
fn the_release_is_the_last_access() {
    on_each!(last_unlocker_frees);
}

#[test]
fn the_promoted_is_next() {
    explore(timed(2, 3), || _ = promoted_is_next::<Strictly>(2, 2, || {}));
    explore(timed(1, 3), || _ = promoted_is_next::<Strictly>(3, 2, || {}));
    explore(at_last(3), || _ = promoted_is_next::<Rarely>(2, 2, || {}));
    explore(at_last(3), || _ = promoted_is_next::<advice::Seen>(2, 2, || {}));
}

#[test]
fn those_who_were_moved_here_all_get_the_mutex() {
    for while_holding in [false, true] {
        explore(exact(2), move || all_at_once::<Strict>(2, while_holding));
        explore(exact(2), move || one_by_one::<Strict>(1, while_holding));
        explore(timed(1, 3), move || all_at_once::<Strict>(2, while_holding));
    }
    explore(exact(1), || all_beside_a_barger::<Strict>(2));
    explore(timed(1, 4), || one_gives_up::<Strict>(1));
}
