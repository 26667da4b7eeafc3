//! The condition variable on this mutex: sleepers that a notification moves to a word that is free,
//! locked or marked, beside threads that barge in and release without a look at the queue.

use ulocks_core::Private;
use ulocks_core::model::{Config, Grade, explore};
use ulocks_core::spin::NoSpin;
use ulocks_testkit::tickets::{all_at_once, all_beside_a_barger, one_by_one, one_gives_up};

type Mutex = ulocks_unfair::RawBargingMutex<Private<NoSpin>>;

#[test]
fn those_who_were_moved_here_all_get_the_mutex() {
    for while_holding in [false, true] {
        explore(Config::bounded(3), move || all_at_once::<Mutex>(2, while_holding));
        explore(Config::bounded(2), move || one_by_one::<Mutex>(1, while_holding));
        explore(Config { grade: Grade::Cheap, ..Config::bounded(2) }, move || {
            all_at_once::<Mutex>(2, while_holding)
        });
        explore(Config { grade: Grade::Unordered, ..Config::bounded(1) }, move || {
            all_at_once::<Mutex>(2, while_holding)
        });
        explore(Config { spurious: 2, ..Config::bounded(2) }, move || all_at_once::<Mutex>(2, while_holding));
    }
    explore(Config::bounded(2), || all_beside_a_barger::<Mutex>(2));
}

#[test]
fn a_waiter_that_gives_up_strands_nobody_that_was_moved_here() {
    explore(Config { timeouts: 3, ..Config::bounded(2) }, || one_gives_up::<Mutex>(1));
}
