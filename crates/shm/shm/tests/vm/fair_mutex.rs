//! The robust fair mutex, and with it the queue of robust locks. No waiter looks again after a
//! time.

use crate::place::{
    Fair, Place, at_each_step, beside_a_bystander, clients, held_first, leaves_with_it, sampled, soon,
};
use std::sync::Arc;
use std::time::Duration;
use ulocks_core::model::crash::sweep;
use ulocks_core::model::{Config, Deaths, Kernel, explore, thread};
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::sync::{AtomicU32, spin_until, yield_now};
use ulocks_core::time::Deadline;
use ulocks_shm::robust::RawRobust;

#[test]
fn of_fair_threads_one_is_inside_and_none_sleeps_for_ever() {
    for kernel in Kernel::ALL {
        explore(sampled(1, kernel), clients::<Fair, 2>(2, 0, false));
        explore(sampled(3, kernel), clients::<Fair, 3>(2, 0, false));
        explore(sampled(4, kernel), clients::<Fair, 4>(1, 0, false));
        explore(sampled(8, kernel), clients::<Fair, 8>(1, 0, false));
    }
}

#[test]
fn a_fair_timeout_strands_no_thread() {
    for kernel in Kernel::ALL {
        let config = |threads| Config { timeouts: true, ..sampled(threads, kernel) };
        explore(config(3), clients::<Fair, 3>(2, 1, false));
        explore(config(4), clients::<Fair, 4>(1, 2, false));
        explore(config(3), held_first::<Fair, 3>(true, 2));
    }
}

#[test]
fn a_member_that_leaves_with_the_fair_mutex_is_told_like_one_that_died() {
    for kernel in Kernel::ALL {
        explore(sampled(1, kernel), leaves_with_it::<Fair>);
    }
}

#[test]
fn a_fair_death_at_any_step_strands_no_thread() {
    for kernel in Kernel::ALL {
        let three = Arc::new(clients::<Fair, 3>(1, 0, false));
        at_each_step(1, kernel, false, 60, move || three());
        for passes in [false, true] {
            let held = Arc::new(held_first::<Fair, 3>(passes, 0));
            at_each_step(1, kernel, false, 60, move || held());
        }
        let config = |threads| Config { deaths: Deaths::Threads(1), ..sampled(threads, kernel) };
        explore(config(1), held_first::<Fair, 2>(true, 0));
        explore(config(2), clients::<Fair, 4>(2, 0, false));
        explore(config(4), held_first::<Fair, 5>(false, 0));
    }
}

#[test]
fn a_fair_death_beside_timeouts_strands_no_thread() {
    for kernel in Kernel::ALL {
        let config =
            |threads| Config { deaths: Deaths::Threads(1), timeouts: true, ..sampled(threads, kernel) };
        explore(config(2), clients::<Fair, 3>(2, 1, false));
        explore(config(3), held_first::<Fair, 4>(false, 2));
    }
}

#[test]
fn a_fair_death_beside_a_bystander_strands_no_thread() {
    for kernel in Kernel::ALL {
        at_each_step(1, kernel, false, 100, beside_a_bystander::<Fair>);
    }
}

/// Three threads come one after the other while another one holds the mutex, the last one perhaps
/// after its release. The second one has a deadline, if it is `timed`.
fn in_turn(timed: bool) {
    let place = Place::<Fair, 3>::new();
    let me = place.join();
    // SAFETY: all members are of the place's slots.
    let how = unsafe { place.mutex.lock(&me) }.unwrap();
    let last = Arc::new(AtomicU32::new(0));
    let come = |name: u32| {
        let (shared, last) = (Arc::clone(&place), Arc::clone(&last));
        let thread = thread::spawn(move || {
            let me = shared.join();
            let deadline = if timed && name == 2 { soon() } else { Deadline::after(Duration::MAX) };
            // SAFETY: as above.
            if let Ok(how) = unsafe { shared.mutex.lock_until(&me, deadline) } {
                assert!(last.swap(name, Relaxed) < name || timed, "thread {name} came out of turn");
                shared.critical(&me, name, how);
            }
            std::mem::forget(me);
        });
        if timed {
            // Mostly it waits then; it may die instead.
            (0..40).for_each(|_| yield_now());
        } else if name < 3 {
            spin_until(|| place.mutex.waiters(&me) == name as usize);
        }
        thread
    };
    let threads = (1..=3).map(come).collect();
    place.critical(&me, 100, how);
    std::mem::forget(me);
    place.ends(threads, 4);
}

#[test]
fn fair_waiters_get_it_in_turn() {
    for kernel in Kernel::ALL {
        explore(sampled(3, kernel), || in_turn(false));
    }
}

#[test]
fn a_fair_death_behind_a_thread_that_left_strands_no_thread() {
    for kernel in Kernel::ALL {
        at_each_step(1, kernel, true, 60, || in_turn(true));
    }
}

/// No step of a thread is one that must not be its last.
#[test]
fn no_fair_step_is_fatal() {
    for kernel in Kernel::ALL {
        let config = Config { kernel, timeouts: false, ..Config::sampled(60) };
        let held = held_first::<Fair, 3>(true, 0);
        let sweep = sweep(&config, 1, held).unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(sweep.fatal().count(), 0, "{sweep}");
        assert!(sweep.points.len() > 20, "{sweep}");
    }
}

/// Thread 1 releases while a thread is known to have waited, and may die with the queue lock when
/// the mutex is free. Then one thread takes the mutex without the queue lock, and another one finds
/// that lock with its dead owner.
fn released_and_died() {
    let place = Place::<Fair, 4>::new();
    let me = place.join();
    let has_waited = Arc::new(AtomicU32::new(0));
    let dying = thread::spawn({
        let (place, has_waited) = (Arc::clone(&place), Arc::clone(&has_waited));
        move || {
            let me = place.join();
            // SAFETY: all members are of the place's slots.
            let how = unsafe { place.mutex.lock(&me) }.unwrap();
            spin_until(|| has_waited.load(Relaxed) == 1);
            place.critical(&me, 1, how);
            std::mem::forget(me);
        }
    });
    // So many steps that thread 1 has the mutex, mostly.
    (0..100).for_each(|_| yield_now());
    // SAFETY: as above.
    if let Ok(how) = unsafe { place.mutex.try_lock(&me) } {
        place.critical(&me, 100, how);
    }
    has_waited.store(1, Relaxed);
    let _ = dying.join();
    // It claims the slot of thread 1, and so sees all that thread 1 did.
    drop(place.join());
    let allowed = place.told.load(Relaxed) + u32::from(place.mutex.is_locked());
    let others = [place.resident(2, 1, false), place.resident(3, 1, false)];
    others.into_iter().for_each(|other| other.join().unwrap());
    assert!(place.told.load(Relaxed) <= allowed, "a thread was told of the death of one that lives");
    std::mem::forget(me);
}

#[test]
fn a_fair_death_after_the_release_is_not_taken_for_that_of_the_next_holder() {
    for kernel in Kernel::ALL {
        at_each_step(1, kernel, false, 100, released_and_died);
    }
}
