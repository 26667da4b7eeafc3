//! Permits that own a share of their semaphore.

use std::sync::Arc;
use std::time::{Duration, Instant};
use ulocks_core::Private;
use ulocks_core::spin::NoSpin;
use ulocks_fair::{Closed, OwnedPermit, Semaphore, SemaphoreWith};

const _: () = assert!(size_of::<OwnedPermit>() == 2 * size_of::<usize>());
const _: fn() = || {
    fn sent_and_shared<T: Send + Sync + std::panic::UnwindSafe + std::panic::RefUnwindSafe + 'static>() {}
    sent_and_shared::<OwnedPermit>();
    sent_and_shared::<OwnedPermit<Private<NoSpin>>>();
};

const MOMENT: Duration = Duration::from_millis(1);

#[test]
fn owned_permits_go_back_unless_forgotten() {
    let semaphore = Arc::new(Semaphore::new(10));
    let mut permits = semaphore.clone().acquire_many_owned(7);
    assert_eq!((semaphore.available_permits(), permits.count()), (3, 7));
    assert!(Arc::ptr_eq(permits.semaphore(), &semaphore));
    let two = permits.split(2).expect("there are seven");
    assert!(permits.split(6).is_none());
    two.forget();
    permits.merge(semaphore.clone().try_acquire_many_owned(3).expect("there are three"));
    assert_eq!((semaphore.available_permits(), permits.count()), (0, 8));
    assert!(semaphore.clone().try_acquire_owned().is_none());
    std::thread::spawn(move || drop(permits)).join().unwrap();
    assert_eq!(semaphore.available_permits(), 8);
    assert_eq!(Arc::strong_count(&semaphore), 1, "a share was kept");
}

#[test]
fn the_last_permit_may_free_the_semaphore() {
    let permit = Arc::new(SemaphoreWith::<Private>::new(1)).acquire_owned();
    let weak = Arc::downgrade(permit.semaphore());
    drop(permit);
    assert_eq!(weak.strong_count(), 0);
}

#[test]
fn each_method_has_an_owned_one() {
    let semaphore = Arc::new(SemaphoreWith::<Private<NoSpin>>::new(2));
    let one = semaphore.clone().acquire_owned();
    assert!(semaphore.clone().try_acquire_many_owned_for(2, MOMENT).is_none());
    assert!(semaphore.clone().try_acquire_many_owned_until(2, Instant::now()).is_none());
    let other = semaphore.clone().try_acquire_owned_for(MOMENT).expect("there is one");
    assert!(semaphore.clone().try_acquire_owned_until(Instant::now()).is_none());
    drop((one, other));
    drop(semaphore.clone().try_acquire_owned_until(Instant::now()).expect("there are two"));
    drop(semaphore.clone().try_acquire_many_owned_for(2, MOMENT).expect("there are two"));
    drop(semaphore.clone().try_acquire_many_owned_until(2, Instant::now()).expect("there are two"));
    drop(semaphore.clone().acquire_owned_unless_closed().expect("it is open"));
    let both = semaphore.clone().acquire_many_owned_unless_closed(2).expect("it is open");
    semaphore.close();
    drop(both);
    assert_eq!(semaphore.available_permits(), 2);
    assert_eq!(semaphore.clone().acquire_owned_unless_closed().map(drop), Err(Closed));
    assert_eq!(semaphore.clone().acquire_many_owned_unless_closed(2).map(drop), Err(Closed));
    assert!(semaphore.clone().try_acquire_owned().is_none());
    assert!(semaphore.clone().try_acquire_owned_for(Duration::MAX).is_none());
    assert_eq!(Arc::strong_count(&semaphore), 1, "an attempt that failed kept its share");
}

#[test]
#[should_panic(expected = "permits of different semaphores cannot be merged")]
fn owned_permits_of_two_semaphores_stay_apart() {
    let [one, other] = [(); 2].map(|()| Arc::new(Semaphore::new(1)).acquire_owned());
    let mut one = one;
    one.merge(other);
}

#[test]
#[should_panic(expected = "permits beyond MAX_PERMITS cannot be merged")]
fn owned_permits_that_would_find_no_room_stay_apart() {
    let semaphore = Arc::new(Semaphore::new(Semaphore::MAX_PERMITS));
    let mut all = semaphore.clone().acquire_many_owned(Semaphore::MAX_PERMITS);
    semaphore.release(1).expect("there are none");
    all.merge(semaphore.acquire_owned());
}

#[test]
#[should_panic(expected = "the semaphore is closed")]
fn an_owned_acquisition_that_cannot_fail_panics() {
    let semaphore = Arc::new(Semaphore::new(1));
    semaphore.close();
    semaphore.acquire_owned().forget();
}

#[test]
fn an_owned_permit_says_what_it_is() {
    let permit = Arc::new(Semaphore::new(3)).acquire_many_owned(2);
    assert_eq!(format!("{permit:?}"), "OwnedPermit { count: 2 }");
}
