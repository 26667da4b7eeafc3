// What version 0.12 alone has.

use super::{MUTEX, NOW, soon};
use lock_api::RawMutex as _;
use lot::{FairMutex, Mutex, RawMutex, ReentrantMutex, RwLock};

static CONSTANT: (Mutex<u32>, FairMutex<u32>, ReentrantMutex<u32>, RwLock<u32>) =
    (lot::const_mutex(1), lot::const_fair_mutex(2), lot::const_reentrant_mutex(3), lot::const_rwlock(4));

#[test]
fn constants() {
    assert_eq!(*CONSTANT.0.lock() + *CONSTANT.1.lock() + *CONSTANT.2.lock() + *CONSTANT.3.read(), 10);
    assert_eq!(*Mutex::const_new(RawMutex::INIT, 5).lock(), 5);
    let _: &RawMutex = &RawMutex::INIT;
    assert!(MUTEX.try_lock_for(NOW).is_some() || MUTEX.is_locked());
}

#[test]
fn a_reader_comes_in_again_beside_a_writer_that_waits() {
    let rwlock = RwLock::new(0);
    let (first, second) = (rwlock.read(), rwlock.read_recursive());
    std::thread::scope(|scope| {
        scope.spawn(|| *rwlock.write() += 1);
        // The writer waits, and shuts out readers that do not say that they come again.
        while rwlock.try_read().is_some() {
            std::thread::sleep(NOW);
        }
        let guards = (rwlock.read_recursive(), rwlock.try_read_recursive().unwrap());
        assert!(rwlock.try_read_recursive_for(NOW).is_some() && rwlock.try_read_recursive_until(soon()).is_some());
        drop((second, guards.0));
        drop((rwlock.read_recursive(), first));
        drop((rwlock.read_recursive(), guards.1));
    });
    assert_eq!(*rwlock.read(), 1);
}
