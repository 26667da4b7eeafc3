//! Writes in steps, and in two phases, on the typed lock: the model checks its data.

use core::time::Duration;
use ulocks_psrwlock::{
    Bulk, ByClass, Discipline, Partial, PendingWrite, PsRwLockUpgradableReadGuard, PsRwLockWith, Stage,
    ThreadClass,
};
use ulocks_testkit::thread::{Arc, spawn};

/// What becomes of a write that has begun, and has been polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Waits,
    Finishes,
    Drops,
}

/// A write that is polled so many times, beside a writer and readers of a class.
pub fn in_steps<D: Discipline, C: ThreadClass>(polls: usize, end: End, readers: usize, writers: usize) {
    let lock = Arc::new(PsRwLockWith::<usize, D>::new(0));
    let mut others = Vec::new();
    for _ in 0..readers {
        let lock = Arc::clone(&lock);
        others.push(spawn(move || {
            let guard = lock.read_in::<C>();
            assert!(*guard <= 8);
        }));
    }
    for _ in 0..writers {
        let lock = Arc::clone(&lock);
        others.push(spawn(move || *lock.write() += 1));
    }
    let mut pending = lock.write_begin();
    for _ in 0..polls {
        pending.poll();
    }
    let mut expected = writers;
    match end {
        End::Waits => {
            *pending.wait() += 1;
            expected += 1;
        }
        End::Finishes => {
            if let Ok(mut guard) = pending.finish() {
                *guard += 1;
                expected += 1;
            }
        }
        End::Drops => drop(pending),
    }
    others.into_iter().for_each(|other| other.join().expect("a client panicked"));
    assert_eq!(*lock.try_write().expect("try_write failed on a lock that nobody holds"), expected);
}

/// A reader is inside on the same thread while a write is polled: it is waited for.
pub fn polls_tell_the_truth<D: Discipline, C: ThreadClass>(stage: Stage) {
    let lock = PsRwLockWith::<usize, D>::new(0);
    let reader = lock.read_in::<C>();
    let mut pending: PendingWrite<'_, usize, D> = lock.write_begin();
    assert_eq!(pending.poll(), stage);
    let pending = pending.finish().expect_err("a writer is not alone");
    drop(reader);
    *pending.finish().expect("nobody is inside") += 1;
    assert_eq!(*lock.read(), 1);
}

/// What becomes of an upgradable reader that has shut [`Bulk`] out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    Upgrades,
    TriesToUpgrade,
    UpgradesInTime,
    Admits,
    Releases,
}

/// An upgradable reader shuts [`Bulk`] out, beside a reader of that class that may give up, one that does not, and one of a
/// higher class.
pub fn two_phases<D: Discipline, Higher: ThreadClass>(
    then: Then,
    impatient: usize,
    patient: usize,
    higher: usize,
) {
    let lock = Arc::new(PsRwLockWith::<usize, D>::new(0));
    let mut others = Vec::new();
    for _ in 0..impatient {
        let lock = Arc::clone(&lock);
        others.push(spawn(move || {
            _ = lock.try_read_in_for::<Bulk>(Duration::from_millis(1)).map(|guard| *guard)
        }));
    }
    for _ in 0..patient {
        let lock = Arc::clone(&lock);
        others.push(spawn(move || assert!(*lock.read() <= 1)));
    }
    for _ in 0..higher {
        let lock = Arc::clone(&lock);
        others.push(spawn(move || assert!(*lock.read_in::<Higher>() <= 1)));
    }
    let mut guard = lock.upgradable_read();
    Partial::exclude::<Bulk>(&mut guard);
    assert!(lock.try_read().is_none(), "Bulk is shut out");
    match then {
        Then::Upgrades => *PsRwLockUpgradableReadGuard::upgrade(guard) += 1,
        Then::TriesToUpgrade => {
            if let Ok(mut guard) = PsRwLockUpgradableReadGuard::try_upgrade(guard) {
                *guard += 1;
            }
        }
        Then::UpgradesInTime => {
            let upgraded = PsRwLockUpgradableReadGuard::try_upgrade_for(guard, Duration::from_millis(1));
            if let Ok(mut guard) = upgraded {
                *guard += 1;
            }
        }
        Then::Admits => {
            Partial::admit(&mut guard);
            drop(guard);
        }
        Then::Releases => drop(guard),
    }
    others.into_iter().for_each(|other| other.join().expect("a client panicked"));
    drop(lock.try_write().expect("try_write failed on a lock that nobody holds"));
}
