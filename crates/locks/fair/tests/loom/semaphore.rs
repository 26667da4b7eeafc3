//! The semaphore with one permit, as a mutex.

use crate::closing::{a_close_publishes, all_leave, the_large_one_at_the_head_leaves_too};
use crate::permits::Binary;
use crate::way::{ByTasks, Way};
use ulocks_core::Private;
use ulocks_core::model::explore;
use ulocks_core::spin::NoSpin;
use ulocks_testkit::suite::{exact, timed, unordered};

ulocks_testkit::loom_models! { Binary<Private<NoSpin>> }

#[test]
fn all_leave_when_it_is_closed() {
    fn check<P: Way>() {
        explore(exact(2), || all_leave::<P>(1, 0, 1, 1));
        explore(exact(1), || all_leave::<P>(2, 0, 1, 1));
        explore(timed(1, 2), || all_leave::<P>(0, 1, 1, 1));
        explore(exact(2), || the_large_one_at_the_head_leaves_too::<P>(1));
        explore(exact(2), || a_close_publishes::<P>(1));
        explore(unordered(2), || a_close_publishes::<P>(1));
    }
    check::<Private<NoSpin>>();
    check::<ByTasks<Private<NoSpin>>>();
}
