//! The condition variable.

use crate::tickets::{all_at_once, one_by_one, one_gives_up};
use ulocks_core::model::{Config, Grade, explore};
use ulocks_core::spin::NoSpin;

type Exact = ulocks_core::Private<NoSpin>;
/// The first waiter polls before it sleeps.
type Patient = ulocks_core::Private;

fn exact(preemptions: usize) -> Config {
    Config::bounded(preemptions)
}

fn timed(preemptions: usize) -> Config {
    Config { timeouts: 2, ..Config::bounded(preemptions) }
}

#[test]
fn everybody_is_notified_by_a_holder_and_by_others() {
    for while_holding in [false, true] {
        explore(exact(3), move || all_at_once::<Exact>(1, while_holding));
        explore(exact(2), move || all_at_once::<Exact>(2, while_holding));
        explore(Config { spurious: 2, ..exact(1) }, move || all_at_once::<Exact>(2, while_holding));
        explore(Config { grade: Grade::Unordered, ..exact(1) }, move || {
            all_at_once::<Exact>(2, while_holding);
        });
    }
    explore(exact(2), || one_by_one::<Exact>(2));
}

#[test]
fn a_lone_spinner_is_notified() {
    for while_holding in [false, true] {
        explore(exact(3), move || all_at_once::<Patient>(1, while_holding));
        explore(exact(1), move || all_at_once::<Patient>(2, while_holding));
    }
}

#[test]
fn a_waiter_that_gives_up_takes_no_notification_with_it() {
    explore(timed(2), one_gives_up::<Exact>);
}
