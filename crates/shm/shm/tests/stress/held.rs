//! Many locks held at once, and one region mapped twice.

use crate::joined::joined;
use std::panic::{AssertUnwindSafe, catch_unwind};
use ulocks_shm::{LockError, Mutex, Refused, Region};
use ulocks_testkit::Child;
use ulocks_testkit::watchdog::watch;

/// More than the 2,048 entries of a robust list that the kernel walks.
const MANY: usize = 3_000;

/// Takes a mutex whose holder has died, and repairs it.
fn repairs(mutex: &Mutex<u32>, me: &ulocks_shm::Joined<'_>) -> u32 {
    match mutex.lock(me) {
        Err(LockError::OwnerDied(mut guard)) => {
            guard.mark_consistent();
            *guard
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_of_three_thousand_mutexes_of_a_dead_holder_is_told() {
    let _watch = watch("three thousand mutexes", || "a waiter sleeps for ever".into());
    let region = Region::<[Mutex<u32>; MANY]>::options().anonymous().unwrap();
    Child::runs(|| {
        let me = joined(&region);
        for (value, mutex) in (0..).zip(region.iter()) {
            let mut guard = mutex.lock(&me).unwrap();
            *guard = value;
            std::mem::forget(guard);
        }
        assert_eq!(me.held() as usize, MANY);
        std::mem::forget(me);
    })
    .ends();
    let me = joined(&region);
    for (value, mutex) in (0..).zip(region.iter()) {
        assert_eq!(repairs(mutex, &me), value);
        assert!(mutex.lock(&me).is_ok(), "mutex {value} is told once");
    }
}

#[test]
fn a_region_that_is_mapped_twice_is_one_region() {
    let _watch = watch("two mappings", || "a waiter sleeps for ever".into());
    let options = Region::<Mutex<u32>>::options();
    let one = options.anonymous().unwrap();
    let two = options.from_fd(one.fd()).unwrap();
    assert_ne!(one.base(), two.base());
    let (first, second) = (joined(&one), joined(&two));
    let guard = one.lock(&first).unwrap();
    assert!(matches!(two.try_lock(&second), Err(LockError::Refused(Refused::TimedOut))));
    // The child sleeps at the other address.
    let waiter = Child::runs(|| {
        let me = joined(&two);
        *two.lock(&me).unwrap() += 1;
    })
    .sleeps(|| true);
    drop(guard);
    waiter.ends();
    assert_eq!(*one.lock(&first).unwrap(), 1);
    // A holder by one address dies; the next one comes by the other.
    Child::runs(|| {
        let me = joined(&one);
        std::mem::forget(one.lock(&me).unwrap());
        std::mem::forget(me);
    })
    .ends();
    assert_eq!(repairs(&two, &second), 1);
    // A member of one mapping does not use locks by the address of the other.
    assert!(catch_unwind(AssertUnwindSafe(|| drop(two.try_lock(&first)))).is_err());
}

#[test]
fn neither_a_holder_leaves_nor_its_process_detaches() {
    let region = Region::<Mutex<u32>>::options().anonymous().unwrap();
    let me = joined(&region);
    std::mem::forget(region.lock(&me).unwrap());
    let refused = me.leave().expect_err("the thread holds a lock");
    assert_eq!(refused.count(), 1);
    assert!(refused.to_string().contains("holds robust locks"), "{refused}");
    // It takes part as before.
    let me = refused.into_inner();
    assert!(matches!(region.lock(&me), Err(LockError::Refused(Refused::Deadlock))));
    std::mem::forget(me);
    let refused = region.detach().expect_err("a thread takes part");
    assert_eq!(refused.count(), 1);
    let region = refused.into_inner();
    assert!(region.is_locked());
    // Without a lock, and without a member, both end.
    let region = Region::<Mutex<u32>>::options().from_fd(region.fd()).unwrap();
    joined(&region).leave().unwrap();
    region.detach().unwrap();
}
