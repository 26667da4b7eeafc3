//! The condition variable on this mutex: sleepers that a notification moves to a word that is free,
//! locked or marked, beside threads that barge in and release without a look at the queue.

use crate::barging::{Sleeper as Mutex, sampled};
use ulocks_core::model::explore;
use ulocks_testkit::tickets::{all_at_once, all_beside_a_barger, one_by_one, one_gives_up};

/// How many wait.
const MANY: [usize; 3] = [2, 4, 8];

#[test]
fn those_who_were_moved_here_all_get_the_mutex() {
    for waiters in MANY {
        for while_holding in [false, true] {
            explore(sampled(2 * waiters, 1), move || all_at_once::<Mutex>(waiters, while_holding));
            explore(sampled(2 * waiters, 1), move || one_by_one::<Mutex>(waiters, while_holding));
        }
        explore(sampled(2 * waiters, 1), move || all_beside_a_barger::<Mutex>(waiters));
    }
}

#[test]
fn a_waiter_that_gives_up_strands_nobody_that_was_moved_here() {
    for patient in MANY {
        explore(sampled(2 * patient, 1), move || one_gives_up::<Mutex>(patient));
    }
}
