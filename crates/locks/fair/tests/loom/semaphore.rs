//! The semaphore.

use crate::permits::{
    Binary, a_release_publishes, never_more_out_than_in, overflow_changes_nothing, producers_and_consumers,
    the_acquirer_frees, the_large_one_is_not_overtaken, timeout_against_release,
    who_gives_up_lets_others_pass,
};
use ulocks_core::model::{Config, Grade, explore};
use ulocks_core::spin::NoSpin;
use ulocks_core::{Policy, Private, Shared};
use ulocks_testkit::model;

/// Waiters sleep at once: fewer steps, hence more executions of what is left.
type Sleeps = Private<NoSpin>;
type SleepsShared = Shared<NoSpin>;

/// Runs `check` on the semaphore in its variants.
macro_rules! on_each {
    ($check:ident) => {
        $check::<Private>();
        $check::<Sleeps>();
        $check::<SleepsShared>();
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

/// Every deadline passes, the first one at the first look at it or at the second: for waits that
/// end in no other way.
fn expiring(preemptions: usize) -> Config {
    Config { timeouts: 1, rest_expire: true, ..Config::bounded(preemptions) }
}

#[test]
fn one_permit_is_a_mutex() {
    fn check<P: Policy>() {
        explore(exact(3), || model::exclusion::<Binary<P>>(2));
        explore(exact(1), || model::exclusion::<Binary<P>>(3));
        explore(unordered(2), || model::exclusion::<Binary<P>>(2));
        explore(Config { spurious: 2, ..exact(2) }, || model::exclusion::<Binary<P>>(2));
        explore(exact(2), || model::no_lost_wake::<Binary<P>>(2, 2));
        explore(exact(1), || model::try_lock_coherence::<Binary<P>>(3));
    }
    on_each!(check);
}

#[test]
fn never_more_are_out_than_in() {
    fn check<P: Policy>() {
        explore(exact(3), || never_more_out_than_in::<P>(2, 2));
        explore(exact(1), || never_more_out_than_in::<P>(3, 2));
    }
    on_each!(check);
}

#[test]
fn a_release_is_seen_by_who_gets_its_permits() {
    fn check<P: Policy>() {
        explore(exact(3), || a_release_publishes::<P>());
        explore(unordered(3), || a_release_publishes::<P>());
    }
    on_each!(check);
}

#[test]
fn nobody_sleeps_for_ever() {
    fn check<P: Policy>() {
        explore(exact(3), || producers_and_consumers::<P>(1, 1, false));
        explore(exact(1), || producers_and_consumers::<P>(1, 2, false));
        explore(exact(2), || producers_and_consumers::<P>(1, 2, true));
        explore(unordered(1), || producers_and_consumers::<P>(1, 2, true));
        explore(Config { spurious: 2, ..exact(1) }, || producers_and_consumers::<P>(1, 2, true));
    }
    on_each!(check);
}

#[test]
fn the_first_in_line_is_first() {
    explore(exact(1), || the_large_one_is_not_overtaken::<Sleeps>(1));
}

#[test]
fn a_timeout_loses_no_permit_and_strands_nobody() {
    fn check<P: Policy>() {
        explore(timed(3), || timeout_against_release::<P>(1, 0));
        explore(timed(1), || timeout_against_release::<P>(1, 1));
        explore(expiring(3), || who_gives_up_lets_others_pass::<P>(1));
        explore(timed(2), || model::timeout_vs_unlock::<Binary<P>>(2));
        explore(timed(1), || model::timeout_vs_unlock::<Binary<P>>(3));
    }
    check::<Sleeps>();
    check::<SleepsShared>();
}

#[test]
fn the_release_touches_the_semaphore_no_more() {
    fn check<P: Policy>() {
        explore(exact(3), || the_acquirer_frees::<P>());
        explore(unordered(3), || the_acquirer_frees::<P>());
        // Only a waiter that wakes for no reason can be faster than the disturbance (D).
        explore(Config { spurious: 1, ..exact(2) }, || the_acquirer_frees::<P>());
        explore(exact(2), || model::last_unlocker_frees::<Binary<P>>(2));
        explore(exact(1), || model::last_unlocker_frees::<Binary<P>>(3));
    }
    on_each!(check);
}

#[test]
fn an_overflow_changes_nothing() {
    fn check<P: Policy>() {
        explore(exact(3), || overflow_changes_nothing::<P>(false));
        explore(expiring(2), || overflow_changes_nothing::<P>(true));
    }
    check::<Sleeps>();
    check::<SleepsShared>();
}
