//! What is no deadlock, or ends by itself, is let be.

use crate::{AtSlots, Careless, Lock, new};
use std::mem::{ManuallyDrop, MaybeUninit, forget};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use ulocks_psrwlock::{
    Bulk, ByClass, Central, Nested, PsRwLockReadGuard as ReadGuard,
    PsRwLockUpgradableReadGuard as UpgradableGuard, Readers, State, Urgent,
};

const SHORT: Duration = Duration::from_millis(1);

#[test]
fn upwards() {
    fn test<R: Readers>() {
        let lock = new::<R>();
        let upgradable = lock.upgradable_read();
        let (bulk, urgent, nested) = (lock.read(), lock.read_in::<Urgent>(), lock.read_in::<Nested>());
        // In any order, and again.
        drop(urgent);
        drop(bulk);
        drop(nested);
        let bulk = lock.read();
        let nested = lock.read_in::<Nested>();
        drop(bulk);
        drop(nested);
        *UpgradableGuard::upgrade(upgradable) += 1;
        drop(lock.write());
    }
    test::<Central>();
    test::<AtSlots>();
}

#[test]
fn attempts_and_deadlines() {
    let lock = new::<Central>();
    let held = lock.read_in::<Nested>();
    assert!(lock.try_read().is_some() && lock.try_read_in::<Nested>().is_some());
    assert!(lock.try_read_for(SHORT).is_some() && lock.try_read_in_until::<Urgent>(Instant::now()).is_some());
    assert!(lock.try_write().is_none() && lock.try_write_for(SHORT).is_none());
    drop(held);
    let held = lock.upgradable_read();
    assert!(lock.try_write_for(SHORT).is_none() && lock.try_upgradable_read_for(SHORT).is_none());
    let reader = lock.read();
    let held = UpgradableGuard::try_upgrade_for(held, SHORT).expect_err("there is a reader");
    let held = UpgradableGuard::try_upgrade(held).expect_err("there is a reader");
    drop(reader);
    drop(held);
    let held = lock.write();
    assert!(lock.try_read().is_none() && lock.try_read_for(SHORT).is_none() && lock.try_write().is_none());
    drop(held);
    drop(lock.write());
    assert_eq!(lock.state(), State::UNLOCKED);
}

/// What attempts have acquired is entered like the rest: a wait beside it is found.
#[test]
fn an_attempt_is_entered() {
    let lock = new::<Central>();
    let held = lock.try_read_for(SHORT).expect("free");
    let wait = std::panic::AssertUnwindSafe(|| drop(lock.write()));
    std::panic::catch_unwind(wait).expect_err("a thread waits for itself");
    drop(held);
    drop(lock.write());
}

#[test]
fn locks_of_the_same_class_of_different_locks() {
    let (one, other) = (new::<Central>(), new::<Central>());
    let held = (one.read_in::<Nested>(), other.read_in::<Nested>());
    drop(held.0);
    let again = (one.write(), held.1);
    drop(again.1);
    drop(other.write());
}

#[test]
fn another_thread_s() {
    let lock = new::<Central>();
    let held = lock.read();
    std::thread::scope(|scope| scope.spawn(|| drop(lock.read())).join().unwrap());
    drop(held);
}

/// The entry of a guard that was forgotten stays, and its lock's place may become another lock's.
#[test]
fn a_forgotten_guard_of_a_lock_that_is_gone() {
    fn test<R: Readers>() {
        let mut place = MaybeUninit::<Lock<R>>::uninit();
        for forgotten in 0..5 {
            let lock = place.write(new::<R>());
            match forgotten {
                0 => forget(lock.read()),
                1 => forget(lock.read_in::<Nested>()),
                2 => forget(lock.upgradable_read()),
                3 => forget(lock.write()),
                _ => {}
            }
            // At the same address, unlocked.
            let lock = place.write(new::<R>());
            drop(lock.read());
            drop(lock.read_in::<Nested>());
            drop(lock.upgradable_read());
            drop(lock.write());
            assert_eq!(lock.state(), State::UNLOCKED);
        }
    }
    // Each on a thread of its own, which has a list of its own.
    std::thread::spawn(test::<Central>).join().unwrap();
    std::thread::spawn(test::<AtSlots>).join().unwrap();
}

/// The same, and another thread holds the new lock in the way in which the old one was held.
#[test]
fn a_forgotten_guard_of_a_lock_that_is_gone_beside_another_holder() {
    fn test<R: Readers>() {
        let mut place = MaybeUninit::<Lock<R>>::uninit();
        for forgotten in 0..4 {
            let lock = place.write(new::<R>());
            match forgotten {
                0 => forget(lock.read()),
                1 => forget(lock.read_in::<Nested>()),
                2 => forget(lock.upgradable_read()),
                _ => forget(lock.write()),
            }
            let lock = &*place.write(new::<R>());
            let (held, done, over) = (Barrier::new(2), Barrier::new(2), AtomicBool::new(false));
            std::thread::scope(|scope| {
                let other = scope.spawn(|| {
                    let readers = (lock.read(), lock.read_in::<Nested>());
                    held.wait();
                    done.wait();
                    drop(readers);
                    let upgradable = lock.upgradable_read();
                    held.wait();
                    while lock.state().0 & State::WRITERS == 0 && !over.load(Relaxed) {
                        std::thread::yield_now();
                    }
                    drop(upgradable);
                });
                held.wait();
                let reads = catch_unwind(AssertUnwindSafe(|| drop((lock.read(), lock.read_in::<Nested>()))));
                done.wait();
                held.wait();
                let waits = catch_unwind(AssertUnwindSafe(|| {
                    drop(lock.read());
                    drop(lock.upgradable_read());
                }));
                over.store(true, Relaxed);
                other.join().unwrap();
                reads.and(waits).expect("this thread holds nothing");
            });
            drop(lock.write());
            assert_eq!(lock.state(), State::UNLOCKED);
        }
    }
    std::thread::spawn(test::<Central>).join().unwrap();
    std::thread::spawn(test::<AtSlots>).join().unwrap();
}

/// An entry that is void is not what a release takes out.
#[test]
fn a_release_beside_a_forgotten_guard_of_a_lock_that_is_gone() {
    std::thread::spawn(|| {
        let mut place = MaybeUninit::<Lock>::uninit();
        let other = new::<Central>();
        let first = other.read();
        // In the second place of the list; the next entry gets the first.
        forget(place.write(new::<Central>()).read());
        drop(first);
        let lock = &*place.write(new::<Central>());
        drop(lock.read());
        let held = lock.read();
        catch_unwind(AssertUnwindSafe(|| drop(lock.read()))).expect_err("a thread waits for itself");
        drop(held);
        drop(lock.read());
        let barrier = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let held = lock.read();
                barrier.wait();
                barrier.wait();
                drop(held);
            });
            barrier.wait();
            let reads = catch_unwind(AssertUnwindSafe(|| drop(lock.read())));
            barrier.wait();
            reads.expect("this thread holds nothing");
        });
    })
    .join()
    .unwrap();
}

/// The list has an end; what is not in it is not checked, and what is in it is.
#[test]
fn more_than_there_is_room_for() {
    std::thread::spawn(|| {
        let lock = ManuallyDrop::new(new::<Central>());
        let forgotten: [Lock; 15] = std::array::from_fn(|_| Lock::new(0));
        forgotten.iter().for_each(|lock| forget(lock.read()));
        let listed = lock.read();
        let others: [Lock; 20] = std::array::from_fn(|_| Lock::new(0));
        let held: Vec<ReadGuard<'_, _, _>> = others.iter().map(|other| other.read_in::<Bulk>()).collect();
        // Not listed: it does not panic, and there is no writer.
        drop(others[7].read());
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(lock.read())))
            .expect_err("it is listed");
        drop((listed, held));
        drop(lock.read());
    })
    .join()
    .unwrap();
}

#[test]
fn anything_where_nothing_is_checked() {
    let lock = Careless::new(0);
    let held = (
        lock.read(),
        lock.read(),
        lock.read_in::<Nested>(),
        lock.read_in::<Urgent>(),
        lock.upgradable_read(),
    );
    drop(held);
    drop(lock.write());
    assert_eq!(lock.state(), State::UNLOCKED);
}
