//! The semaphore as a mutex, and clients of what a mutex does not have: each is the body of one
//! execution of a model.

use crate::way::Way;
use core::time::Duration;
use ulocks_core::futex::{self, Futex};
use ulocks_core::raw::{Metered, RawInterruptible, RawMutex};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicU32, UnsafeCell};
use ulocks_core::time::Deadline;
use ulocks_fair::{RawSemaphore, TooManyPermits};
use ulocks_testkit::model;
use ulocks_testkit::thread::{Arc, JoinHandle, spawn, together, with};

/// A semaphore of one permit.
pub struct Binary<P: Way>(RawSemaphore<P>);

ulocks_core::initial!([P: Way] Binary<P> = Self(RawSemaphore::new(1)));

// SAFETY: a semaphore that had one permit at first, and gets back only what was taken, lets in one
// at a time; what happened before a release happens before the acquisition that follows. The token
// is nothing. That it keeps this is what the clients test.
unsafe impl<P: Way> RawMutex for Binary<P> {
    type Scope = P::Scope;
    type Token = ();
    type Condvar = ulocks_core::condvar::Sequence<Self>;

    fn lock(&self) {
        P::acquire(&self.0, 1);
    }

    fn try_lock(&self) -> Option<()> {
        self.0.try_acquire(1).then_some(())
    }

    fn lock_until(&self, deadline: Deadline) -> Option<()> {
        P::acquire_until(&self.0, 1, deadline).then_some(())
    }

    unsafe fn unlock(&self, (): ()) {
        assert_eq!(self.0.release(1), Ok(()), "there is one permit at most");
    }

    fn is_locked(&self) -> bool {
        self.0.available() == 0 || self.0.waiters() > 0
    }
}

impl<P: Way> RawInterruptible for Binary<P> {}

impl<P: Way> Metered for Binary<P> {
    type Meter = P::Meter;

    fn meter(&self) -> &P::Meter {
        self.0.meter()
    }
}

pub type Shared<P> = Arc<RawSemaphore<P>>;

pub fn semaphore<P: Way>(permits: u32) -> Shared<P> {
    Arc::new(RawSemaphore::new(permits))
}

/// What an attempt with a deadline waits at the most.
pub fn soon() -> Deadline {
    Deadline::after(Duration::from_millis(1))
}

fn check_at_rest<P: Way>(semaphore: &RawSemaphore<P>, permits: u32) {
    assert_eq!(semaphore.waiters(), 0, "somebody is counted as waiting although everybody has left");
    assert_eq!(semaphore.available(), permits, "permits were lost or made");
    assert!(semaphore.try_acquire(permits), "permits that are there cannot be had");
}

/// Threads want one permit or two, of `permits`: never are more out than there were.
pub fn never_more_out_than_in<P: Way>(threads: usize, permits: u32) {
    let semaphore = semaphore::<P>(permits);
    let out = Arc::new(AtomicU32::new(0));
    let users = Arc::clone(&semaphore);
    together(threads, move |me| {
        let wanted = 1 + me as u32 % 2;
        P::acquire(&users, wanted);
        let before = out.fetch_add(wanted, Relaxed);
        assert!(before + wanted <= permits, "{} permits of {permits} are out", before + wanted);
        out.fetch_sub(wanted, Relaxed);
        assert_eq!(users.release(wanted), Ok(()));
    });
    check_at_rest(&semaphore, permits);
}

/// Threads that release one permit each, and threads that acquire one each: no thread sleeps for
/// ever, and a receiver sees what its senders did. With `at_once`, one thread releases everything
/// with one call.
pub fn producers_and_consumers<P: Way>(producers: usize, consumers: usize, at_once: bool) {
    let semaphore = semaphore::<P>(0);
    let receivers: Vec<_> =
        (0..consumers).map(|_| with(&semaphore, |semaphore| P::acquire(semaphore, 1))).collect();
    if at_once {
        assert_eq!(semaphore.release(consumers as u32), Ok(()));
    } else {
        let sender = Arc::clone(&semaphore);
        let each = consumers / producers;
        together(producers, move |_| {
            for _ in 0..each {
                assert_eq!(sender.release(1), Ok(()));
            }
        });
    }
    receivers.into_iter().for_each(|receiver| receiver.join().unwrap());
    check_at_rest(&semaphore, 0);
}

/// A value that the only release hands to the only acquisition, by one way or the other.
pub fn a_release_publishes<P: Way>() {
    struct Parcel<P: Way>(RawSemaphore<P>, UnsafeCell<u32>);
    // SAFETY: the cell is written before the release and read after the acquisition; that the
    // semaphore orders the two is what the client tests.
    unsafe impl<P: Way> Sync for Parcel<P> {}

    let parcel = Arc::new(Parcel::<P>(RawSemaphore::new(0), UnsafeCell::new(0)));
    let sender = Arc::clone(&parcel);
    let sender = spawn(move || {
        // SAFETY: no thread reads before the release.
        sender.1.with_mut(|value| unsafe { *value = 7 });
        assert_eq!(sender.0.release(1), Ok(()));
    });
    P::acquire(&parcel.0, 1);
    // SAFETY: the only writer has released.
    assert_eq!(parcel.1.with(|value| unsafe { *value }), 7);
    sender.join().unwrap();
}

/// One that wants two permits is in line; others come that want one. When the first permit comes,
/// no thread gets it; with the second the first in line has both.
pub fn the_large_one_is_not_overtaken<P: Way>(small: usize) {
    let semaphore = semaphore::<P>(0);
    let (served, queued) = (Arc::new(AtomicU32::new(0)), Arc::new(Futex::<futex::Local>::new(0)));
    let large = {
        let (semaphore, served) = (Arc::clone(&semaphore), Arc::clone(&served));
        spawn(move || {
            P::acquire(&semaphore, 2);
            let before = served.fetch_add(1, Relaxed);
            assert_eq!(semaphore.release(2), Ok(()));
            before
        })
    };
    // The large one is in line: from here on no thread is before it.
    ulocks_core::sync::spin_until(|| semaphore.is_queued());
    let others: Vec<_> = (0..small)
        .map(|_| {
            let (semaphore, served, queued) =
                (Arc::clone(&semaphore), Arc::clone(&served), Arc::clone(&queued));
            spawn(move || {
                assert!(!semaphore.try_acquire(1), "try_acquire overtakes one that waits");
                queued.fetch_add(1, Release);
                P::acquire(&semaphore, 1);
                let before = served.fetch_add(1, Relaxed);
                assert_eq!(semaphore.release(1), Ok(()));
                before
            })
        })
        .collect();
    assert_eq!(semaphore.release(1), Ok(()));
    ulocks_core::sync::spin_until(|| queued.load(Acquire) == small as u32);
    assert_eq!(semaphore.release(1), Ok(()));
    assert_eq!(large.join().unwrap(), 0, "a small request was served before a large one that came first");
    let mut order: Vec<_> = others.into_iter().map(|other| other.join().unwrap()).collect();
    order.sort_unstable();
    assert_eq!(order, (1..=small as u32).collect::<Vec<_>>());
    check_at_rest(&semaphore, 2);
}

/// A permit that comes when no thread is counted as waiting any more can be had, although the last
/// waiter has not returned yet.
pub fn a_permit_that_nobody_waits_for_can_be_had<P: Way>() {
    let semaphore = semaphore::<P>(0);
    let waiter = with(&semaphore, |semaphore| P::acquire(semaphore, 1));
    ulocks_core::sync::spin_until(|| semaphore.is_queued());
    assert_eq!(semaphore.release(1), Ok(()));
    ulocks_core::sync::spin_until(|| semaphore.waiters() == 0);
    assert_eq!(semaphore.release(1), Ok(()));
    assert!(semaphore.try_acquire(1), "there is a permit and no waiter, and it was not to be had");
    waiter.join().unwrap();
}

/// Of `timed` waits that may end and others that are patient, and as many releases as there are
/// patient ones and one more: what a timed one has not got is there for another.
pub fn timeout_against_release<P: Way>(timed: usize, patient: usize) {
    let semaphore = semaphore::<P>(0);
    let attempts: Vec<JoinHandle<u32>> = (0..timed)
        .map(|_| with(&semaphore, |semaphore| u32::from(P::acquire_until(semaphore, 1, soon()))))
        .collect();
    let waits: Vec<_> =
        (0..patient).map(|_| with(&semaphore, |semaphore| P::acquire(semaphore, 1))).collect();
    for _ in 0..timed + patient {
        assert_eq!(semaphore.release(1), Ok(()));
    }
    waits.into_iter().for_each(|wait| wait.join().unwrap());
    let had: u32 = attempts.into_iter().map(|attempt| attempt.join().unwrap()).sum();
    check_at_rest(&semaphore, timed as u32 - had);
}

/// One that wants more than there is gives up; those behind it get what it has left, although
/// no thread releases anything.
pub fn who_gives_up_lets_others_pass<P: Way>(behind: usize) {
    let semaphore = semaphore::<P>(behind as u32);
    let impatient = with(&semaphore, move |semaphore| P::acquire_until(semaphore, behind as u32 + 1, soon()));
    let users = Arc::clone(&semaphore);
    together(behind, move |_| P::acquire(&users, 1));
    assert!(!impatient.join().unwrap(), "more permits were had than there are");
    check_at_rest(&semaphore, 0);
}

/// A thread that acquires what is released frees the semaphore at once, while the release may still
/// be on its way back.
pub fn the_acquirer_frees<P: Way>() {
    struct Handle<P: Way>(*const RawSemaphore<P>);
    // SAFETY: the semaphore can be sent and shared; it is freed after the last use, which is what
    // the client tests.
    unsafe impl<P: Way> Send for Handle<P> {}

    let doomed = Box::into_raw(Box::new(RawSemaphore::<P>::new(0)));
    let handle = Handle(doomed.cast_const());
    let releaser = spawn(move || {
        let handle = handle;
        // SAFETY: no thread frees it before the permit is there.
        assert_eq!(unsafe { &*handle.0 }.release(1), Ok(()));
    });
    // SAFETY: alive until freed below.
    P::acquire(unsafe { &*doomed }, 1);
    // SAFETY: it came from a box, and the only other user is on its way out of its release.
    unsafe { model::free(doomed) };
    releaser.join().unwrap();
}

/// Two releases of which only one finds room: one fails, and has changed nothing.
pub fn overflow_changes_nothing<P: Way>(waiting: bool) {
    const MOST: u32 = 1_073_741_823;
    let semaphore = semaphore::<P>(MOST - 3);
    // A request for more than there is: the line is not empty, and the permits stay.
    let waiter = waiting.then(|| with(&semaphore, |semaphore| P::acquire_until(semaphore, MOST, soon())));
    let users = Arc::clone(&semaphore);
    let results = together(2, move |_| users.release(2));
    let failed = results.iter().filter(|&&result| result == Err(TooManyPermits)).count();
    assert_eq!(failed, 1, "{results:?}");
    if let Some(waiter) = waiter {
        assert!(!waiter.join().unwrap());
    }
    check_at_rest(&semaphore, MOST - 1);
}
