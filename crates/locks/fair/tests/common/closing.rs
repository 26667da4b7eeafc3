//! Clients of a semaphore that is closed: each is the body of one execution of a model.

use crate::permits::{Shared, semaphore, soon};
use crate::way::Way;
use ulocks_core::sync::UnsafeCell;
use ulocks_fair::{Closed, RawSemaphore};
use ulocks_testkit::thread::{Arc, JoinHandle, spawn, together, with};

/// A thread that waits for `wanted` permits as long as that takes; returns how many it has.
fn waiting<P: Way>(semaphore: &Shared<P>, wanted: u32) -> JoinHandle<u32> {
    with(semaphore, move |semaphore| P::acquire_unless_closed(semaphore, wanted).map_or(0, |()| wanted))
}

/// A thread that waits for `wanted` permits until its time is up.
fn trying<P: Way>(semaphore: &Shared<P>, wanted: u32) -> JoinHandle<u32> {
    with(semaphore, move |semaphore| if P::acquire_until(semaphore, wanted, soon()) { wanted } else { 0 })
}

/// Closed, left by everybody, with `permits` in it, of which none can be had any more.
fn check_closed<P: Way>(semaphore: &RawSemaphore<P>, permits: u32) {
    assert!(semaphore.is_closed(), "it was closed");
    assert_eq!(semaphore.waiters(), 0, "somebody is counted as waiting although everybody has left");
    assert_eq!(semaphore.available(), permits, "permits were lost or made");
    for count in [0, 1] {
        assert!(!semaphore.try_acquire(count), "a closed semaphore gave {count} permits");
        assert_eq!(P::acquire_unless_closed(semaphore, count), Err(Closed));
        assert!(!P::acquire_until(semaphore, count, soon()));
    }
    assert_eq!(semaphore.release(1), Ok(()), "permits can still be put in");
    assert_eq!(semaphore.available(), permits + 1);
}

/// Waiters, of which `timed` may give up, and one release of `released` permits beside `closers`
/// that close: each waiter leaves, and what they have got is what is missing.
pub fn all_leave<P: Way>(patient: usize, timed: usize, released: u32, closers: usize) {
    let semaphore = semaphore::<P>(0);
    let mut waiters: Vec<_> = (0..patient).map(|me| waiting(&semaphore, 1 + me as u32 % 2)).collect();
    waiters.extend((0..timed).map(|me| trying(&semaphore, 1 + me as u32 % 2)));
    let users = Arc::clone(&semaphore);
    together(1 + closers, move |me| {
        if me == 0 {
            assert_eq!(users.release(released), Ok(()));
        } else {
            users.close();
            assert!(users.is_closed(), "a thread that has closed finds it open");
        }
    });
    let had: u32 = waiters.into_iter().map(|waiter| waiter.join().unwrap()).sum();
    assert!(had <= released, "{had} permits of {released} were had");
    check_closed(&semaphore, released - had);
}

/// A request for many at the head of the queue, and small ones behind it, for which there are
/// permits: all leave without any.
pub fn the_large_one_at_the_head_leaves_too<P: Way>(small: usize) {
    let semaphore = semaphore::<P>(1);
    let large = waiting(&semaphore, 2);
    ulocks_core::sync::spin_until(|| semaphore.is_queued());
    let others: Vec<_> = (0..small).map(|_| waiting(&semaphore, 1)).collect();
    semaphore.close();
    let had: u32 = [large].into_iter().chain(others).map(|waiter| waiter.join().unwrap()).sum();
    assert_eq!(had, 0, "a waiter was served although there were never enough permits for the first");
    check_closed(&semaphore, 1);
}

/// A waiter that has its permits before the close keeps them, although it has not woken up yet.
pub fn a_grant_before_the_close_is_kept<P: Way>() {
    let semaphore = semaphore::<P>(0);
    let waiter = waiting(&semaphore, 1);
    assert_eq!(semaphore.release(1), Ok(()));
    let taken = semaphore.available() == 0;
    semaphore.close();
    let had = waiter.join().unwrap();
    assert!(had == 1 || !taken, "the permit was taken before the close, and the waiter had none");
    check_closed(&semaphore, 1 - had);
}

/// Threads that come up to `rounds` times, use what they get, and release it, until the semaphore
/// is closed: in the end all permits are back.
pub fn users_come_until_it_is_closed<P: Way>(threads: usize, permits: u32, rounds: u32) {
    let semaphore = semaphore::<P>(permits);
    let users = Arc::clone(&semaphore);
    together(1 + threads, move |me| {
        if me == threads {
            return users.close();
        }
        let wanted = 1 + me as u32 % 2;
        let served = (0..rounds).take_while(|_| {
            let served = P::acquire_unless_closed(&users, wanted).is_ok();
            assert!(!served || users.release(wanted).is_ok(), "there was room for them before");
            served
        });
        served.for_each(drop);
    });
    check_closed(&semaphore, permits);
}

/// What was done before the close happens before each error, of waiters and of who comes later.
pub fn a_close_publishes<P: Way>(waiters: usize) {
    struct Story<P: Way>(RawSemaphore<P>, UnsafeCell<u32>);
    // SAFETY: the cell is written before the close, and read after an error; that the semaphore
    // orders the two is what the client tests.
    unsafe impl<P: Way> Sync for Story<P> {}

    let story = Arc::new(Story::<P>(RawSemaphore::new(0), UnsafeCell::new(0)));
    let readers: Vec<_> = (0..waiters)
        .map(|_| {
            with(&story, |story| {
                assert_eq!(P::acquire_unless_closed(&story.0, 1), Err(Closed));
                // SAFETY: the only writer has closed.
                assert_eq!(story.1.with(|value| unsafe { *value }), 7);
            })
        })
        .collect();
    // SAFETY: no thread reads before the close.
    story.1.with_mut(|value| unsafe { *value = 7 });
    story.0.close();
    readers.into_iter().for_each(|reader| reader.join().unwrap());
}

/// As [`a_close_publishes`], for a thread that only asks.
pub fn who_asks_learns<P: Way>() {
    struct Story<P: Way>(RawSemaphore<P>, UnsafeCell<u32>);
    // SAFETY: as above.
    unsafe impl<P: Way> Sync for Story<P> {}

    let story = Arc::new(Story::<P>(RawSemaphore::new(0), UnsafeCell::new(0)));
    let asking = {
        let story = Arc::clone(&story);
        spawn(move || {
            // SAFETY: the only writer has closed.
            story.0.is_closed().then(|| story.1.with(|value| unsafe { *value }))
        })
    };
    // SAFETY: no thread reads before the close.
    story.1.with_mut(|value| unsafe { *value = 7 });
    story.0.close();
    assert!([None, Some(7)].contains(&asking.join().unwrap()));
}

/// Who closes, and then finds by the count that all permits are back, sees what their holders did.
pub fn the_count_publishes<P: Way>() {
    struct Desks<P: Way>(RawSemaphore<P>, [UnsafeCell<u32>; 2]);
    // SAFETY: each cell is written before a release, and read after the count of both; that the
    // semaphore orders the two is what the client tests.
    unsafe impl<P: Way> Sync for Desks<P> {}

    let desks = Arc::new(Desks::<P>(RawSemaphore::new(2), [UnsafeCell::new(0), UnsafeCell::new(0)]));
    P::acquire(&desks.0, 2);
    let holders = [0, 1].map(|me| {
        with(&desks, move |desks| {
            // SAFETY: no thread reads before the release.
            desks.1[me].with_mut(|value| unsafe { *value = 7 });
            assert_eq!(desks.0.release(1), Ok(()));
        })
    });
    desks.0.close();
    ulocks_core::sync::spin_until(|| desks.0.available() == 2);
    for desk in &desks.1 {
        // SAFETY: the only writer has released.
        assert_eq!(desk.with(|value| unsafe { *value }), 7);
    }
    holders.into_iter().for_each(|holder| holder.join().unwrap());
}
