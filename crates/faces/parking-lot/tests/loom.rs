//! Small models of the protocols under loom. The reader-writer lock is too large for it.
#![cfg(all(ulocks_loom, feature = "loom"))]

mod clients;

use clients::condvar::Simple;
use clients::{condvar, once};
use ulocks_core::model::{Config, explore};

#[test]
fn notifications_count_those_that_say_they_were_notified() {
    explore(Config::bounded(2), || condvar::counts_agree::<Simple>(1, 0));
    explore(Config { timeouts: 2, ..Config::bounded(2) }, || condvar::counts_agree::<Simple>(0, 1));
}

#[test]
fn all_are_notified_and_counted() {
    explore(Config::bounded(2), || condvar::all_at_once::<Simple>(2));
    explore(Config { spurious: 1, ..Config::bounded(2) }, || condvar::one_by_one::<Simple>(1));
}

#[test]
fn one_closure_runs_and_all_see_it() {
    explore(Config::default(), || once::one_of_several_runs(2, 0));
    explore(Config::bounded(2), || once::one_of_several_runs(1, 2));
}
