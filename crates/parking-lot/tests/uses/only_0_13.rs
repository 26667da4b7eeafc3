// What version 0.13 alone has.

use super::NOW;
use lot::{
    Condvar, MappedRecursiveRwLockReadGuard, MappedRecursiveRwLockWriteGuard, Once, OnceState, RawCondvar,
    RawRwLockRecursive, RecursiveRwLock, RecursiveRwLockReadGuard, RecursiveRwLockUpgradableReadGuard,
    RecursiveRwLockWriteGuard,
};

#[test]
fn a_reader_comes_in_again_beside_a_writer_that_waits() {
    let rwlock: RecursiveRwLock<u32> = RecursiveRwLock::new(0);
    let first: RecursiveRwLockReadGuard<'_, u32> = rwlock.read();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut guard: RecursiveRwLockWriteGuard<'_, u32> = rwlock.write();
            *guard += 1;
        });
        std::thread::sleep(20 * NOW);
        let again = (rwlock.read(), rwlock.try_read().unwrap(), rwlock.try_read_for(NOW).unwrap());
        drop(first);
        drop((rwlock.read(), again));
    });
    let guard: RecursiveRwLockUpgradableReadGuard<'_, u32> = rwlock.upgradable_read();
    let guard = RecursiveRwLockUpgradableReadGuard::upgrade(guard);
    let guard: MappedRecursiveRwLockWriteGuard<'_, u32> = RecursiveRwLockWriteGuard::map(guard, |all| all);
    drop(guard);
    let guard: MappedRecursiveRwLockReadGuard<'_, u32> =
        RecursiveRwLockReadGuard::map(rwlock.read(), |all| all);
    assert_eq!(*guard, 1);
    let _: Option<RawRwLockRecursive> = None;
}

#[test]
fn waits_for_a_once() {
    let once = Once::new();
    std::thread::scope(|scope| {
        scope.spawn(|| once.wait());
        scope.spawn(|| once.wait_force());
        std::thread::sleep(10 * NOW);
        once.call_once(|| {});
    });
    assert!(once.is_completed() && once.state().is_completed() && !once.state().is_poisoned());
    assert_eq!(Once::new_completed().state(), OnceState::Done);
}

#[test]
fn the_condvar_has_a_raw_one() {
    use lock_api::RawCondvar as _;
    let condvar: lock_api::Condvar<RawCondvar> = Condvar::new();
    assert!(!condvar.raw().notify_one());
}
