//! A semaphore that is closed: what each call does then.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use ulocks_core::Private;
use ulocks_core::policy::InOneProcess;
use ulocks_core::spin::NoSpin;
use ulocks_fair::{Closed, Semaphore, SemaphoreWith, TooManyPermits};
use ulocks_testkit::limit;

const LONG: Duration = Duration::from_secs(1_000);

/// A thread that waits in `acquire`.
fn waiter<P: InOneProcess>(
    semaphore: &Arc<SemaphoreWith<P>>,
    acquire: impl FnOnce(&SemaphoreWith<P>) -> Option<u32> + Send + 'static,
) -> JoinHandle<Option<u32>>
where
    SemaphoreWith<P>: Send + Sync + 'static,
{
    let before = semaphore.raw().waiters();
    let mine = Arc::clone(semaphore);
    let thread = std::thread::spawn(move || acquire(&mine));
    // It is counted before it has its place. Until the first has one, another could be served.
    limit::until("a thread waits", || semaphore.raw().waiters() > before && semaphore.raw().is_queued());
    thread
}

#[test]
fn nothing_is_had_from_a_closed_semaphore() {
    fn check<P: InOneProcess>() {
        let semaphore = SemaphoreWith::<P>::new(3);
        assert!(!semaphore.is_closed());
        semaphore.close();
        semaphore.close();
        assert!(semaphore.is_closed());
        for count in [0, 1, 3, 4] {
            assert_eq!(semaphore.acquire_many_unless_closed(count).map(drop), Err(Closed));
            assert!(semaphore.try_acquire_many(count).is_none());
            assert!(semaphore.try_acquire_many_for(count, LONG).is_none());
            assert!(semaphore.try_acquire_many_until(count, Instant::now() + LONG).is_none());
        }
        assert_eq!(semaphore.acquire_unless_closed().map(drop), Err(Closed));
        assert!(semaphore.try_acquire().is_none());
        assert!(semaphore.try_acquire_for(LONG).is_none());
        assert!(semaphore.try_acquire_until(Instant::now() + LONG).is_none());
        assert_eq!((semaphore.available_permits(), semaphore.raw().waiters()), (3, 0));
    }
    check::<Private>();
    check::<Private<NoSpin>>();
    assert_eq!(Closed.to_string(), "the semaphore is closed");
}

#[test]
fn an_open_semaphore_gives_what_was_asked_for() {
    let semaphore = Semaphore::new(3);
    let two = semaphore.acquire_many_unless_closed(2).expect("it is open");
    let one = semaphore.acquire_unless_closed().expect("it is open");
    assert_eq!((two.count(), one.count(), semaphore.available_permits()), (2, 1, 0));
}

#[test]
fn who_has_permits_keeps_them() {
    fn check<P: InOneProcess>() {
        let semaphore = SemaphoreWith::<P>::new(5);
        let mut held = semaphore.acquire_many(4);
        semaphore.close();
        assert_eq!((held.count(), semaphore.available_permits()), (4, 1));
        let one = held.split(1).expect("there are four");
        held.split(1).expect("there are three").forget();
        held.merge(one);
        semaphore.close();
        drop(held);
        assert_eq!(semaphore.available_permits(), 4);
        assert_eq!(semaphore.release(2), Ok(()));
        assert_eq!(semaphore.release(0), Ok(()));
        assert_eq!(semaphore.release(SemaphoreWith::<P>::MAX_PERMITS - 5), Err(TooManyPermits));
        assert_eq!(semaphore.available_permits(), 6);
        assert!(semaphore.is_closed() && semaphore.try_acquire().is_none());
    }
    check::<Private>();
}

#[test]
fn waiters_of_every_kind_leave() {
    fn check<P: InOneProcess>()
    where
        SemaphoreWith<P>: Send + Sync + 'static,
    {
        let semaphore = Arc::new(SemaphoreWith::<P>::new(2));
        let far = Instant::now() + LONG;
        // The first wants more than there is, and all others stand behind it.
        let waiters = [
            waiter(&semaphore, |it| it.acquire_many_unless_closed(3).ok().map(|permit| permit.count())),
            waiter(&semaphore, |it| it.acquire_unless_closed().ok().map(|permit| permit.count())),
            waiter(&semaphore, |it| it.try_acquire_for(LONG).map(|permit| permit.count())),
            waiter(&semaphore, move |it| it.try_acquire_until(far).map(|permit| permit.count())),
            waiter(&semaphore, |it| it.try_acquire_many_for(2, LONG).map(|permit| permit.count())),
            waiter(&semaphore, move |it| it.try_acquire_many_until(2, far).map(|permit| permit.count())),
        ];
        semaphore.close();
        for waiter in waiters {
            limit::until("a waiter has left", || waiter.is_finished());
            assert_eq!(waiter.join().unwrap(), None, "it got permits that were for the first");
        }
        assert_eq!((semaphore.available_permits(), semaphore.raw().waiters()), (2, 0));
    }
    check::<Private>();
    check::<Private<NoSpin>>();
}

#[test]
fn an_acquisition_that_cannot_fail_panics() {
    fn check<P: InOneProcess>()
    where
        SemaphoreWith<P>: Send + Sync + 'static,
    {
        let semaphore = Arc::new(SemaphoreWith::<P>::new(0));
        let waiter = waiter(&semaphore, |it| Some(it.acquire().count()));
        semaphore.close();
        limit::until("the waiter has panicked", || waiter.is_finished());
        let message = *waiter.join().unwrap_err().downcast::<&str>().expect("a text");
        assert_eq!(message, "the semaphore is closed: `acquire_unless_closed` returns that as an error");
        assert_eq!((semaphore.available_permits(), semaphore.raw().waiters()), (0, 0));
    }
    check::<Private>();
    check::<Private<NoSpin>>();
}

#[test]
#[should_panic(expected = "the semaphore is closed")]
fn an_arriving_thread_panics_too() {
    let semaphore = Semaphore::new(1);
    semaphore.close();
    semaphore.acquire().forget();
}

#[test]
#[should_panic(expected = "1073741824 permits are more than a semaphore has: at most 1073741823")]
fn a_request_that_can_never_be_met_panics_first() {
    let semaphore = Semaphore::new(1);
    semaphore.close();
    _ = semaphore.acquire_many_unless_closed(Semaphore::MAX_PERMITS + 1);
}

#[test]
fn says_that_it_is_closed() {
    let semaphore = Semaphore::new(3);
    semaphore.close();
    assert_eq!(format!("{semaphore:?}"), "Semaphore { available_permits: 3, waiters: 0, closed: true }");
    assert_eq!(format!("{:?}", semaphore.raw()), "RawSemaphore(permits=3 closed)");
}
