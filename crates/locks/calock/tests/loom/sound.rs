//! The calock keeps its promises.

use crate::advice::{self, AlwaysHot, Rarely, Short, Strictly, WakesEachTime};
use crate::at_last;
use crate::impatient::impatient_strand_nobody;
use crate::overtaking::promoted_is_next;
use ulocks_calock::RawCalock;
use ulocks_calock::advice::Advised;
use ulocks_core::model::{Config, explore};
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};
use ulocks_testkit::model;
use ulocks_testkit::suite::{exact, timed, unordered};
use ulocks_testkit::tickets::{all_at_once, all_beside_a_barger, one_by_one, one_gives_up};

/// Every release that may wake does, so that a lost wake-up is a deadlock: no timer helps.
type Strict = RawCalock<Private<NoSpin>, Strictly>;
type StrictSpinner = RawCalock<Private, Strictly>;
type StrictShared = RawCalock<Shared<NoSpin>, Strictly>;
type Eager = RawCalock<Private<NoSpin>, Advised<Short, WakesEachTime>>;
/// No release wakes that need not, so that everything comes from the timer of the standby.
type Rare = RawCalock<Private<NoSpin>, Rarely>;
/// The same, and an arriving thread parks at once while a thread is parked.
type Hot = RawCalock<Private, Advised<Short, AlwaysHot>>;
/// The standby sleeps twice before its interval has passed.
type Seen = RawCalock<Private<NoSpin>, advice::Seen>;

/// Runs `check` on the lock in its variants.
macro_rules! on_each {
    ($check:ident) => {
        $check::<Strict>();
        $check::<StrictSpinner>();
        $check::<StrictShared>();
        $check::<Eager>();
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

// Some deadlines pass: of naps, of waiters that are overdue, of timed waiters. After these none
// does.
ulocks_testkit::loom_models! {
    locks: [Strict, StrictSpinner, StrictShared, Eager],
    exclusion: [
        exact(4) => 2,
        exact(2) => 3,
        timed(2, 2) => 3,
        unordered(1) => 3,
        Config { spurious: 2, ..exact(2) } => 2,
    ],
    try_lock: StrictSpinner,
    no_lost_wake: [
        exact(4) => (2, 2),
        exact(2) => (3, 2),
        unordered(1) => (3, 1),
        timed(2, 3) => (3, 1),
        Config { spurious: 2, ..exact(1) } => (3, 1),
    ],
    timeout_vs_unlock: [timed(3, 4) => 2, timed(1, 4) => 3],
    last_unlocker_frees: [exact(4) => 2, exact(2) => 3, timed(1, 3) => 3],
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

fn impatient<L: RawMutex + Send + Sync + 'static>() {
    explore(timed(1, 3), || impatient_strand_nobody::<L>(2));
    explore(timed(1, 3), || impatient_strand_nobody::<L>(3));
}

#[test]
fn a_timeout_strands_nobody_if_waiters_are_impatient() {
    on_each!(impatient);
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
