//! What the models would miss if they found nothing: each bug of `seeded`, but for those that only the virtual machine finds.
//! For `NO_HEIR` and `LEAVES_A_FREE_LOCK` all naps of a sentinel must end beside two others, and such a sentinel never blocks here.
//! `READS_LATE` is found within no bound on preemptions that was tried; `LEAVES_WITH_THE_WAKE_UP` takes millions of executions;
//! `NO_SUCCESSOR` was not tried. And nobody dies here.

use crate::overtaking::promoted_is_next;
use crate::{Short, exact, timed};
use ulocks_calock::{RawCalock, seeded as bug};
use ulocks_core::Private;
use ulocks_core::model::{finds_bug, finds_bug_saying};
use ulocks_core::spin::NoSpin;
use ulocks_testkit::model;
use ulocks_testkit::tickets::all_at_once;

type Broken<const BUG: u8> = RawCalock<Private<NoSpin>, Short, BUG>;
type BrokenSpinner<const BUG: u8> = RawCalock<Private, Short, BUG>;

const RACE: &str = "Causality violation";

#[test]
fn each_missing_ordering_is_found() {
    finds_bug_saying(RACE, exact(2), || model::exclusion::<Broken<{ bug::RELAXED_TAKE }>>(2));
    finds_bug_saying(RACE, exact(2), || model::exclusion::<Broken<{ bug::RELAXED_TAKE_PARKED }>>(2));
    finds_bug_saying(RACE, exact(2), || model::exclusion::<BrokenSpinner<{ bug::RELAXED_TAKE }>>(2));
    finds_bug_saying(RACE, exact(2), || model::exclusion::<Broken<{ bug::RELAXED_RELEASE }>>(2));
}

#[test]
fn an_overtaken_waiter_is_found() {
    finds_bug_saying("overtaken", timed(2, 3), || {
        promoted_is_next::<Short, { bug::NEVER_GRANTS }>(2, 2, || {});
    });
    finds_bug(timed(2, 3), || _ = promoted_is_next::<Short, { bug::IGNORES_PROMOTED }>(3, 2, || {}));
}

#[test]
fn a_promoted_waiter_that_is_not_woken_is_found() {
    finds_bug_saying("deadlock", timed(2, 3), || {
        promoted_is_next::<Short, { bug::SLEEPS_QUIETLY }>(2, 2, || {});
    });
    finds_bug_saying("deadlock", timed(2, 3), || {
        promoted_is_next::<Short, { bug::WAKES_ANYBODY }>(2, 2, || {});
    });
}

#[test]
fn a_wake_up_before_the_sleep_is_found() {
    finds_bug_saying("deadlock", exact(2), || model::no_lost_wake::<Broken<{ bug::NO_BELL }>>(2, 1));
    finds_bug_saying("deadlock", exact(4), || model::no_lost_wake::<Broken<{ bug::RINGS_EARLY }>>(2, 1));
}

#[test]
fn a_wake_up_that_is_kept_is_found() {
    finds_bug_saying("deadlock", exact(3), || model::no_lost_wake::<Broken<{ bug::LEAVES_AWAKE }>>(3, 2));
    finds_bug_saying("deadlock", exact(3), || model::no_lost_wake::<Broken<{ bug::PARKS_AWAKE }>>(2, 2));
}

#[test]
fn what_a_waiter_leaves_behind_is_found() {
    finds_bug(timed(2, 4), || {
        model::timeout_vs_unlock::<Broken<{ bug::LEAVES_FLAGS }>>(2);
    });
}

#[test]
fn a_mutex_that_forgets_who_else_was_moved_is_found() {
    for while_holding in [false, true] {
        finds_bug_saying("deadlock", exact(3), move || {
            all_at_once::<Broken<{ bug::REQUEUED_FORGETS }>>(2, while_holding);
        });
    }
}

#[test]
fn a_touch_after_the_release_is_found() {
    finds_bug_saying("index out of bounds", exact(3), || {
        model::last_unlocker_frees::<Broken<{ bug::TOUCHES_AFTER }>>(3);
    });
}
