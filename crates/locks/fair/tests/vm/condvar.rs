//! The condition variable on this mutex: the notified threads queue for it one behind the other.

use crate::mutex::sampled;
use ulocks_core::Private;
use ulocks_core::model::explore;
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_fair::RawFairMutex;
use ulocks_testkit::tickets::{all_at_once, all_beside_a_barger, one_gives_up};

/// How many wait.
const MANY: [usize; 3] = [2, 4, 8];

fn serves_all<L: RawMutex<Token = ()> + Send + Sync + 'static>() {
    for waiters in MANY {
        for while_holding in [false, true] {
            explore(sampled(2 * waiters, 1), move || all_at_once::<L>(waiters, while_holding));
        }
        explore(sampled(2 * waiters, 1), move || all_beside_a_barger::<L>(waiters));
        explore(sampled(2 * waiters, 1), move || one_gives_up::<L>(waiters));
    }
}

#[test]
fn those_who_are_notified_all_get_the_mutex() {
    serves_all::<RawFairMutex<Private<NoSpin>>>();
}
