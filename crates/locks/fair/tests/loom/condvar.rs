//! The condition variable on this mutex: the notified threads queue for it one behind the other.

use ulocks_core::model::{Config, explore};
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};
use ulocks_fair::RawFairMutex;
use ulocks_testkit::tickets::{all_at_once, all_beside_a_barger, one_gives_up};

type Mutex = RawFairMutex<Private<NoSpin>>;
type BetweenProcesses = RawFairMutex<Shared<NoSpin>>;

#[test]
fn those_who_are_notified_all_get_the_mutex() {
    for while_holding in [false, true] {
        explore(Config::bounded(2), move || all_at_once::<Mutex>(2, while_holding));
        explore(Config::bounded(1), move || all_at_once::<BetweenProcesses>(2, while_holding));
    }
    explore(Config::bounded(1), || all_beside_a_barger::<Mutex>(2));
}

#[test]
fn a_waiter_that_gives_up_strands_nobody() {
    explore(Config { timeouts: 3, ..Config::bounded(1) }, || one_gives_up::<Mutex>(1));
}
