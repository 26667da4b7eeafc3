//! The biased mutex.

use std::panic::{AssertUnwindSafe, catch_unwind};
use ulocks_core::Private;
use ulocks_core::capabilities::{Capability, force_fallback};
use ulocks_core::meter::Counted;
use ulocks_core::spin::{Adaptive, NoSpin};
use ulocks_testkit::suite::Effort;
use ulocks_unfair::{BiasedMutex, RawBiasedMutex};

ulocks_testkit::stress_tests! {
    Effort::FULL;
    RawBiasedMutex<Private>,
    RawBiasedMutex<Private<NoSpin>>,
    RawBiasedMutex<Private<Adaptive, Counted>>,
}

/// Enough to open the gate, and then to become the owner.
const MANY: u32 = 20_000;

fn is_owned<T>(mutex: &BiasedMutex<T>) -> bool {
    // SAFETY: the raw mutex is printed only.
    format!("{:?}", unsafe { mutex.raw() }.inner()).contains("{ owner: ")
}

#[test]
fn a_thread_alone_becomes_the_owner_until_another_one_comes() {
    let mutex = BiasedMutex::new(0);
    for _ in 0..3 {
        (0..MANY).for_each(|_| *mutex.lock() += 1);
        assert!(is_owned(&mutex), "{mutex:?}");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                *mutex.lock() += 1;
                assert!(!is_owned(&mutex), "{mutex:?}");
            });
        });
    }
    assert_eq!(mutex.into_inner(), 3 * (MANY + 1));
}

#[test]
fn an_owner_that_locks_twice_waits_for_itself() {
    let mutex = BiasedMutex::new(());
    // Before it is the owner, when it becomes the owner, and as the owner.
    for _ in 0..MANY {
        let _held = mutex.lock();
        assert!(mutex.try_lock().is_none());
    }
    assert!(is_owned(&mutex), "{mutex:?}");
    let held = mutex.lock();
    assert!(mutex.try_lock().is_none());
    assert!(mutex.try_lock_for(std::time::Duration::from_millis(1)).is_none());
    drop(held);
    assert!(mutex.try_lock().is_some());
}

/// A barrier that is refused after a thread has become the owner: the owner goes on, another thread
/// is told, and when the barrier is back all is as before.
#[test]
fn the_loss_of_the_barrier_is_told_to_others_than_the_owner() {
    let mutex = BiasedMutex::new(0);
    (0..MANY).for_each(|_| *mutex.lock() += 1);
    assert!(is_owned(&mutex), "{mutex:?}");
    let lock = || catch_unwind(AssertUnwindSafe(|| *mutex.lock() += 1)).is_ok();
    let filter = force_fallback(Capability::Membarrier);
    let other = std::thread::scope(|scope| scope.spawn(lock).join().unwrap());
    let owner = lock();
    drop(filter);
    assert!(!other && owner, "{other} {owner}");
    let other = std::thread::scope(|scope| scope.spawn(lock).join().unwrap());
    assert!(other && lock());
    assert_eq!(mutex.into_inner(), MANY + 3);
}
