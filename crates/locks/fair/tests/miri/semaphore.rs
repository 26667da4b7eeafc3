//! The semaphore.

use crate::closing::{
    a_close_publishes, a_grant_before_the_close_is_kept, all_leave, the_count_publishes,
    the_large_one_at_the_head_leaves_too, users_come_until_it_is_closed, who_asks_learns,
};
use crate::permits::{
    Binary, a_permit_that_nobody_waits_for_can_be_had, a_release_publishes, never_more_out_than_in,
    overflow_changes_nothing, producers_and_consumers, the_acquirer_frees, the_large_one_is_not_overtaken,
    timeout_against_release, who_gives_up_lets_others_pass,
};
use crate::way::{ByTasks, Way};
use ulocks_core::Private;
use ulocks_core::spin::{NoSpin, Patience};
use ulocks_fair::Semaphore;
use ulocks_testkit::model;

fn clients<P: Way>() {
    model::exclusion::<Binary<P>>(3);
    model::no_lost_wake::<Binary<P>>(3, 20);
    model::timeout_vs_unlock::<Binary<P>>(3);
    model::last_unlocker_frees::<Binary<P>>(3);
    never_more_out_than_in::<P>(3, 2);
    producers_and_consumers::<P>(2, 4, false);
    producers_and_consumers::<P>(1, 4, true);
    a_release_publishes::<P>();
    the_large_one_is_not_overtaken::<P>(2);
    timeout_against_release::<P>(2, 2);
    who_gives_up_lets_others_pass::<P>(2);
    the_acquirer_frees::<P>();
    overflow_changes_nothing::<P>(true);
    all_leave::<P>(2, 1, 2, 2);
    the_large_one_at_the_head_leaves_too::<P>(2);
    a_grant_before_the_close_is_kept::<P>();
    users_come_until_it_is_closed::<P>(2, 2, 20);
    a_close_publishes::<P>(2);
    who_asks_learns::<P>();
    the_count_publishes::<P>();
    a_permit_that_nobody_waits_for_can_be_had::<P>();
}

#[test]
fn the_semaphore_serves_its_clients() {
    clients::<Private<NoSpin>>();
    clients::<Private<Patience<1_000>>>();
    clients::<ByTasks<Private<NoSpin>, false, 2>>();
}

#[test]
fn permits_carry_what_was_done_before() {
    let (filled, empty) = (Semaphore::new(0), Semaphore::new(1));
    let slot = std::sync::atomic::AtomicPtr::new(std::ptr::null_mut::<u32>());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..5 {
                empty.acquire().forget();
                slot.store(Box::into_raw(Box::new(number)), std::sync::atomic::Ordering::Relaxed);
                filled.release(1).expect("room");
            }
        });
        for number in 0..5 {
            filled.acquire().forget();
            let taken = slot.load(std::sync::atomic::Ordering::Relaxed);
            // SAFETY: it came from a box whose making happened before the release of the permit.
            assert_eq!(unsafe { *Box::from_raw(taken) }, number);
            empty.release(1).expect("room");
        }
    });
}
