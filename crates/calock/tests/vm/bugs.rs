//! What the models would miss if they found nothing: each bug of `seeded` but `PARKS_AWAKE`, which only loom finds.

use crate::impatient::impatient_strand_nobody;
use crate::overtaking::promoted_is_next;
use crate::{Short, hunt};
use ulocks_calock::{RawCalock, seeded as bug};
use ulocks_core::Private;
use ulocks_core::model::{Config, Failure, finds_bug_saying};
use ulocks_core::spin::NoSpin;
use ulocks_testkit::model;
use ulocks_testkit::tickets::all_at_once;

type Broken<const BUG: u8> = RawCalock<Private<NoSpin>, Short, BUG>;

/// What a bug is called, by whom it is found, and what is said of it.
fn found(name: &str, says: &str, client: impl Fn() + 'static) {
    report(name, finds_bug_saying(says, hunt(), client));
}

/// The same without time, so that no timer helps.
fn found_timeless(name: &str, client: impl Fn() + 'static) {
    let config = Config { timeouts: false, ..hunt() };
    report(name, finds_bug_saying("nobody can go on", config, client));
}

fn report(name: &str, Failure { execution, .. }: Failure) {
    println!("{name}: found at execution {execution}");
}

#[test]
fn each_missing_ordering_is_found() {
    found("RELAXED_TAKE", "data race", || model::exclusion::<Broken<{ bug::RELAXED_TAKE }>>(2));
    found("RELAXED_TAKE_PARKED", "data race", || model::exclusion::<Broken<{ bug::RELAXED_TAKE_PARKED }>>(2));
    found("RELAXED_RELEASE", "data race", || model::exclusion::<Broken<{ bug::RELAXED_RELEASE }>>(2));
}

#[test]
fn an_overtaken_waiter_is_found() {
    found("IGNORES_PROMOTED", "overtaken", || {
        promoted_is_next::<Short, { bug::IGNORES_PROMOTED }>(2, 2, || {});
    });
}

#[test]
fn a_promoted_waiter_that_is_not_woken_is_found() {
    found("SLEEPS_QUIETLY", "nobody can go on", || {
        promoted_is_next::<Short, { bug::SLEEPS_QUIETLY }>(2, 2, || {});
    });
    found("WAKES_ANYBODY", "nobody can go on", || {
        promoted_is_next::<Short, { bug::WAKES_ANYBODY }>(2, 2, || {});
    });
    // No timer helps: the promoted has none.
    found("RINGS_EARLY", "nobody can go on", || {
        promoted_is_next::<Short, { bug::RINGS_EARLY }>(2, 2, || {});
    });
}

#[test]
fn a_wake_up_before_the_sleep_is_found() {
    found_timeless("NO_BELL", || model::no_lost_wake::<Broken<{ bug::NO_BELL }>>(2, 1));
    found_timeless("RINGS_EARLY", || model::no_lost_wake::<Broken<{ bug::RINGS_EARLY }>>(3, 2));
    found_timeless("READS_LATE", || model::no_lost_wake::<Broken<{ bug::READS_LATE }>>(3, 2));
}

#[test]
fn a_wake_up_that_is_kept_is_found() {
    found_timeless("LEAVES_AWAKE", || model::no_lost_wake::<Broken<{ bug::LEAVES_AWAKE }>>(3, 2));
    found("LEAVES_WITH_THE_WAKE_UP", "", || {
        impatient_strand_nobody::<Broken<{ bug::LEAVES_WITH_THE_WAKE_UP }>>(2);
    });
}

#[test]
fn a_promise_that_is_not_kept_is_found() {
    found("NEVER_GRANTS", "overtaken", || {
        promoted_is_next::<Short, { bug::NEVER_GRANTS }>(2, 2, || {});
    });
}

#[test]
fn a_missing_sentinel_is_found() {
    found("NO_SUCCESSOR", "nobody can go on", || {
        promoted_is_next::<Short, { bug::NO_SUCCESSOR }>(2, 3, || {});
    });
    found("NO_HEIR", "nobody can go on", || model::no_lost_wake::<Broken<{ bug::NO_HEIR }>>(3, 2));
}

#[test]
fn what_a_waiter_leaves_behind_is_found() {
    found("LEAVES_FLAGS", "nobody can go on", || {
        model::timeout_vs_unlock::<Broken<{ bug::LEAVES_FLAGS }>>(2)
    });
    found("LEAVES_A_FREE_LOCK", "nobody can go on", || {
        impatient_strand_nobody::<Broken<{ bug::LEAVES_A_FREE_LOCK }>>(2);
    });
}

#[test]
fn a_mutex_that_forgets_who_else_was_moved_is_found() {
    for while_holding in [false, true] {
        found("REQUEUED_FORGETS", "lost wake-up", move || {
            all_at_once::<Broken<{ bug::REQUEUED_FORGETS }>>(2, while_holding);
        });
    }
}

#[test]
fn a_touch_after_the_release_is_found() {
    found("TOUCHES_AFTER", "the atomic", || {
        model::last_unlocker_frees::<Broken<{ bug::TOUCHES_AFTER }>>(2);
    });
}
