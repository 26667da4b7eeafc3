//! Sizes, as the README gives them.

use ulocks_parking_lot::{Condvar, FairMutex, Mutex, Once, RecursiveRwLock, ReentrantMutex, RwLock};
use ulocks_testkit as _;

/// The documents speak of 64-bit processors.
#[cfg(target_pointer_width = "64")]
#[test]
fn sizes_are_as_documented() {
    assert_eq!(size_of::<Mutex<()>>(), 8);
    assert_eq!(size_of::<FairMutex<()>>(), 16);
    assert_eq!(size_of::<ReentrantMutex<()>>(), 24);
    assert_eq!(size_of::<RwLock<()>>(), 24);
    assert_eq!(size_of::<RecursiveRwLock<()>>(), 24);
    assert_eq!(size_of::<Condvar>(), 32);
    assert_eq!(size_of::<Once>(), 4);
}

#[test]
#[cfg(feature = "send_guard")]
fn guards_are_send() {
    fn elsewhere<T: Send>() {}
    elsewhere::<ulocks_parking_lot::MutexGuard<'static, ()>>();
    elsewhere::<ulocks_parking_lot::FairMutexGuard<'static, ()>>();
    elsewhere::<ulocks_parking_lot::RwLockReadGuard<'static, ()>>();
    elsewhere::<ulocks_parking_lot::RwLockWriteGuard<'static, ()>>();
    elsewhere::<ulocks_parking_lot::RwLockUpgradableReadGuard<'static, ()>>();
    elsewhere::<ulocks_parking_lot::RecursiveRwLockReadGuard<'static, ()>>();
    // Released by another thread.
    static LOCK: (Mutex<u32>, FairMutex<u32>, RwLock<u32>) =
        (Mutex::new(0), FairMutex::new(0), RwLock::new(0));
    let guards = (LOCK.0.lock(), LOCK.1.lock(), LOCK.2.write());
    std::thread::spawn(move || drop(guards)).join().unwrap();
    let guards = (LOCK.2.read(), LOCK.2.read());
    std::thread::spawn(move || drop(guards)).join().unwrap();
    drop(LOCK.2.upgradable_read());
    assert!(LOCK.0.try_lock().is_some() && LOCK.1.try_lock().is_some() && LOCK.2.try_write().is_some());
}
