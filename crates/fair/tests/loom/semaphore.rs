//! The semaphore.

use crate::permits::{
    Binary, a_release_publishes, never_more_out_than_in, overflow_changes_nothing, producers_and_consumers,
    the_acquirer_frees, the_large_one_is_not_overtaken, timeout_against_release,
    who_gives_up_lets_others_pass,
};
use ulocks_core::model::{Config, Grade, explore, finds_bug, finds_bug_saying};
use ulocks_core::spin::NoSpin;
use ulocks_core::{Policy, Private, Shared};
use ulocks_fair::semaphore_seeded as bug;
use ulocks_testkit::model;

/// Waiters sleep at once: fewer steps, hence more executions of what is left.
type Sleeps = Private<NoSpin>;
type SleepsShared = Shared<NoSpin>;

/// Runs `check` on the semaphore in its variants.
macro_rules! on_each {
    ($check:ident) => {
        $check::<Private, 0>();
        $check::<Sleeps, 0>();
        $check::<SleepsShared, 0>();
        $check::<SleepsShared, { bug::FIRST_IS_NEAR }>();
    };
}

fn exact(preemptions: usize) -> Config {
    Config::bounded(preemptions)
}

/// A wake-up orders nothing, as on the machine: what a woken waiter sees it has from the words.
fn unordered(preemptions: usize) -> Config {
    Config { grade: Grade::Unordered, ..Config::bounded(preemptions) }
}

fn timed(preemptions: usize) -> Config {
    Config { timeouts: 3, ..Config::bounded(preemptions) }
}

/// Every deadline passes, the first one at the first look at it or at the second: for waits that end in no other way.
fn expiring(preemptions: usize) -> Config {
    Config { timeouts: 1, rest_expire: true, ..Config::bounded(preemptions) }
}

#[test]
fn one_permit_is_a_mutex() {
    fn check<P: Policy, const V: u8>() {
        explore(exact(3), || model::exclusion::<Binary<P, V>>(2));
        explore(exact(1), || model::exclusion::<Binary<P, V>>(3));
        explore(unordered(2), || model::exclusion::<Binary<P, V>>(2));
        explore(Config { spurious: 2, ..exact(2) }, || model::exclusion::<Binary<P, V>>(2));
        explore(exact(2), || model::no_lost_wake::<Binary<P, V>>(2, 2));
        explore(exact(1), || model::try_lock_coherence::<Binary<P, V>>(3));
    }
    on_each!(check);
}

#[test]
fn never_more_are_out_than_in() {
    fn check<P: Policy, const V: u8>() {
        explore(exact(3), || never_more_out_than_in::<P, V>(2, 2));
        explore(exact(1), || never_more_out_than_in::<P, V>(3, 2));
    }
    on_each!(check);
    finds_bug_saying("permits", exact(2), || never_more_out_than_in::<Sleeps, { bug::TAKES_IN_TWO }>(2, 2));
}

#[test]
fn a_release_is_seen_by_who_gets_its_permits() {
    fn check<P: Policy, const V: u8>() {
        explore(exact(3), || a_release_publishes::<P, V>());
        explore(unordered(3), || a_release_publishes::<P, V>());
    }
    on_each!(check);
    finds_bug(exact(2), a_release_publishes::<Sleeps, { bug::RELAXED_TAKE }>);
    finds_bug(exact(2), a_release_publishes::<Sleeps, { bug::RELAXED_GIVE }>);
    finds_bug(exact(2), a_release_publishes::<Sleeps, { bug::RELAXED_GRANT }>);
    finds_bug(exact(2), a_release_publishes::<SleepsShared, { bug::RELAXED_TAKE }>);
    finds_bug(exact(2), a_release_publishes::<SleepsShared, { bug::RELAXED_GIVE }>);
}

#[test]
fn nobody_sleeps_for_ever() {
    fn check<P: Policy, const V: u8>() {
        explore(exact(3), || producers_and_consumers::<P, V>(1, 1, false));
        explore(exact(1), || producers_and_consumers::<P, V>(1, 2, false));
        explore(exact(2), || producers_and_consumers::<P, V>(1, 2, true));
        explore(unordered(1), || producers_and_consumers::<P, V>(1, 2, true));
        explore(Config { spurious: 2, ..exact(1) }, || producers_and_consumers::<P, V>(1, 2, true));
    }
    on_each!(check);
}

#[test]
fn a_lost_wake_up_is_found() {
    fn two<P: Policy, const BUG: u8>() {
        finds_bug(exact(2), || producers_and_consumers::<P, BUG>(2, 2, false));
    }
    two::<Sleeps, { bug::PUSHES_SILENTLY }>();
    two::<Sleeps, { bug::COMMITS_BLINDLY }>();
    two::<Sleeps, { bug::GRANTS_SILENTLY }>();
    two::<SleepsShared, { bug::NO_DISTURBANCE }>();
    // NO_NOTE takes loom some ten thousand executions, and the virtual machine a hundred.
    finds_bug(exact(2), || producers_and_consumers::<SleepsShared, { bug::ADVANCES_SILENTLY }>(1, 2, true));
}

#[test]
fn who_is_far_and_stays_there_is_found() {
    fn two<const BUG: u8>() {
        finds_bug(exact(2), || producers_and_consumers::<SleepsShared, BUG>(1, 2, true));
    }
    two::<{ bug::CROSSES_SILENTLY }>();
    two::<{ bug::NEVER_STAMPS }>();
    two::<{ bug::STAMPS_FIRST }>();
    two::<{ bug::LOOKS_AT_TURN_FIRST }>();
    two::<{ bug::RELAXED_STAMP }>();
    two::<{ bug::RELAXED_LOOK }>();
}

#[test]
fn the_first_in_line_is_first() {
    explore(exact(1), || the_large_one_is_not_overtaken::<Sleeps, 0>(1));
    finds_bug(exact(2), || the_large_one_is_not_overtaken::<Sleeps, { bug::SMALL_FIRST }>(1));
    finds_bug(exact(2), || the_large_one_is_not_overtaken::<Sleeps, { bug::OVERTAKES }>(1));
    finds_bug(exact(2), || the_large_one_is_not_overtaken::<SleepsShared, { bug::OVERTAKES }>(1));
}

#[test]
fn a_timeout_loses_no_permit_and_strands_nobody() {
    fn check<P: Policy, const V: u8>() {
        explore(timed(3), || timeout_against_release::<P, V>(1, 0));
        explore(timed(1), || timeout_against_release::<P, V>(1, 1));
        explore(expiring(2), || who_gives_up_lets_others_pass::<P, V>(1));
        explore(timed(2), || model::timeout_vs_unlock::<Binary<P, V>>(2));
        explore(timed(1), || model::timeout_vs_unlock::<Binary<P, V>>(3));
    }
    check::<Sleeps, 0>();
    check::<SleepsShared, 0>();
    check::<SleepsShared, { bug::FIRST_IS_NEAR }>();
}

#[test]
fn a_waiter_that_leaves_badly_is_found() {
    finds_bug(expiring(3), || who_gives_up_lets_others_pass::<Sleeps, { bug::FORGETS_NEWS }>(1));
    finds_bug(timed(2), || timeout_against_release::<Sleeps, { bug::LEAVES_GRANT }>(1, 0));
    finds_bug(timed(2), || timeout_against_release::<Sleeps, { bug::LEAVES_COUNTED }>(1, 0));
    finds_bug(expiring(3), || who_gives_up_lets_others_pass::<Sleeps, { bug::LEAVES_SILENTLY }>(1));
    // A place in the middle of the line takes three waiters: too many for loom, so the virtual machine finds
    // LEAVES_UNSEEN and STOPS_AT_LEFT.
    finds_bug(expiring(3), || who_gives_up_lets_others_pass::<SleepsShared, { bug::LEAVES_TURN }>(1));
}

#[test]
fn the_release_touches_the_semaphore_no_more() {
    fn check<P: Policy, const V: u8>() {
        explore(exact(3), || the_acquirer_frees::<P, V>());
        explore(unordered(3), || the_acquirer_frees::<P, V>());
        explore(exact(2), || model::last_unlocker_frees::<Binary<P, V>>(2));
        explore(exact(1), || model::last_unlocker_frees::<Binary<P, V>>(3));
    }
    on_each!(check);
    finds_bug(exact(2), the_acquirer_frees::<Sleeps, { bug::GRANTS_FIRST }>);
    // Only who wakes for no reason can be faster than the disturbance.
    let spurious = Config { spurious: 1, ..exact(2) };
    finds_bug(spurious, the_acquirer_frees::<SleepsShared, { bug::DISTURBS_LATE }>);
}

#[test]
fn an_overflow_changes_nothing() {
    fn check<P: Policy, const V: u8>() {
        explore(exact(3), || overflow_changes_nothing::<P, V>(false));
        explore(expiring(2), || overflow_changes_nothing::<P, V>(true));
    }
    check::<Sleeps, 0>();
    check::<SleepsShared, 0>();
    finds_bug(exact(2), || overflow_changes_nothing::<Sleeps, { bug::CHECKS_THEN_ADDS }>(false));
}
