//! What only the fair mutex promises, and with it the queue of robust locks. No waiter looks again
//! after a time.

use crate::place::{Fair, Place, at_each_step, join, sampled, slots, soon};
use std::sync::Arc;
use std::time::Duration;
use ulocks_core::model::{Kernel, explore, thread};
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::sync::{AtomicU32, spin_until, yield_now};
use ulocks_core::time::Deadline;
use ulocks_shm::robust::RawRobust;
use ulocks_shm::slots::Slot;
use ulocks_testkit::thread::with;

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

/// Two mutexes of one table.
struct Two {
    slots: [Slot; 4],
    granted: Fair,
    other: Fair,
    /// Whether the thread that never dies is inside of the other one.
    inside: AtomicU32,
}

/// Thread 1 grants a mutex to thread 2, which may die at that moment. Then thread 3 has the slot of
/// thread 2, and waits for another mutex.
fn dies_when_it_is_granted() {
    let place = Arc::new(Two {
        slots: slots(),
        granted: ulocks_core::initial!(Fair),
        other: ulocks_core::initial!(Fair),
        inside: AtomicU32::new(1),
    });
    let me = join(&*place, &place.slots);
    // SAFETY: all members are of the place's slots.
    unsafe { place.other.lock(&me) }.unwrap();
    let come = |waits: bool| {
        with(&place, move |place| {
            let me = join(place, &place.slots);
            // SAFETY: as above.
            unsafe { place.granted.lock(&me) }.unwrap();
            if waits {
                // So many steps that thread 2 waits, mostly.
                (0..40).for_each(|_| yield_now());
            }
            // SAFETY: acquired above.
            unsafe { place.granted.unlock(&me) };
            std::mem::forget(me);
        })
    };
    let granting = come(true);
    let dying = come(false);
    let next = with(&place, move |place| {
        let _ = dying.join();
        let me = join(place, &place.slots);
        // SAFETY: as above.
        unsafe { place.other.lock(&me) }.unwrap();
        assert_eq!(place.inside.load(Relaxed), 0, "a thread was granted what it has not asked for");
        // SAFETY: acquired above.
        unsafe { place.other.unlock(&me) };
        std::mem::forget(me);
    });
    (0..120).for_each(|_| yield_now());
    place.inside.store(0, Relaxed);
    // SAFETY: acquired above.
    unsafe { place.other.unlock(&me) };
    std::mem::forget(me);
    [granting, next].into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn a_grant_for_a_thread_that_has_died_is_not_the_next_ones() {
    // No baton is pending at that death, so the kernels do not differ.
    at_each_step(2, Kernel::V6_18, false, 400, dies_when_it_is_granted);
}
