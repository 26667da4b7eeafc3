//! Writes in steps, and in two phases, on the typed lock: the model checks its data.

use core::time::Duration;
use ulocks_psrwlock::{
    Bulk, ByClass, Configuration, Partial, PendingWrite, PsRwLockUpgradableReadGuard, PsRwLockWith,
    PsRwLockWriteGuard, Stage, ThreadClass,
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
pub fn in_steps<D: Configuration, C: ThreadClass>(polls: usize, end: End, readers: usize, writers: usize) {
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

/// Writes in steps that wait for their news and for nothing else, each so many times, beside
/// writers and readers of a class.
pub fn by_news<D: Configuration, C: ThreadClass>(
    steps: usize,
    rounds: usize,
    readers: usize,
    writers: usize,
) {
    let lock = Arc::new(PsRwLockWith::<usize, D>::new(0));
    let mut others = Vec::new();
    for _ in 0..readers {
        let lock = Arc::clone(&lock);
        others.push(spawn(move || assert!(*lock.read_in::<C>() <= 32)));
    }
    for writer in 0..writers {
        let lock = Arc::clone(&lock);
        others.push(spawn(move || {
            for round in 0..rounds {
                let mut guard = lock.write();
                *guard += 1;
                if (writer + round) % 2 == 1 {
                    drop(PsRwLockWriteGuard::downgrade(guard));
                }
            }
        }));
    }
    for _ in 0..steps {
        let lock = Arc::clone(&lock);
        others.push(spawn(move || {
            for _ in 0..rounds {
                let mut pending = lock.write_begin();
                while pending.poll() != Stage::Ready {
                    pending.news().wait();
                }
                *pending.finish().expect("it is ready") += 1;
            }
        }));
    }
    others.into_iter().for_each(|other| other.join().expect("a client panicked"));
    let expected = (writers + steps) * rounds;
    assert_eq!(*lock.try_write().expect("try_write failed on a lock that nobody holds"), expected);
}

/// A write that has been polled so many times is forgotten, or dropped, beside writers.
pub fn given_up<D: Configuration>(polls: usize, forgets: bool, writers: usize) {
    let lock = Arc::new(PsRwLockWith::<usize, D>::new(0));
    let mut others = Vec::new();
    for _ in 0..writers {
        let lock = Arc::clone(&lock);
        others.push(spawn(move || *lock.write() += 1));
    }
    let mut pending = lock.write_begin();
    let asks = (0..polls).all(|_| pending.poll() == Stage::Writer);
    if asks && forgets {
        core::mem::forget(pending);
    } else {
        drop(pending);
    }
    others.into_iter().for_each(|other| other.join().expect("a client panicked"));
    assert_eq!(*lock.try_write().expect("try_write failed on a lock that nobody holds"), writers);
}

/// Writes in steps of one thread take over from each other beside a writer. That writer gives way
/// for a millisecond in all, not once for each of them.
pub fn gives_way_once<D: Configuration>() {
    let lock = Arc::new(PsRwLockWith::<usize, D>::new(0));
    let mut held = lock.write();
    let writer = {
        let lock = Arc::clone(&lock);
        spawn(move || *lock.write() = 1)
    };
    let idle = PsRwLockWith::<(), D>::new(());
    let kept = idle.write();
    let pause = |micros| assert!(idle.try_write_for(Duration::from_micros(micros)).is_none());
    for _ in 0..6 {
        let mut next = lock.write_begin();
        assert_eq!(next.poll(), Stage::Writer);
        pause(2_000);
        drop(held);
        pause(500);
        while next.poll() != Stage::Ready {
            next.news().wait();
        }
        held = next.finish().expect("it is ready");
        if *held == 1 {
            drop((held, kept));
            return writer.join().expect("a client panicked");
        }
    }
    panic!("a writer is kept out");
}

/// A thread waits for news of a write in steps that is gone, beside owners that wait for readers in
/// line.
pub fn old_news<D: Configuration>(readers: usize, writers: usize) {
    let lock = Arc::new(PsRwLockWith::<usize, D>::new(0));
    let news = {
        let _reader = lock.read();
        let mut write = lock.write_begin();
        assert_eq!(write.poll(), Stage::Readers("Bulk"));
        write.news()
    };
    let mut others = Vec::new();
    for _ in 0..writers {
        let lock = Arc::clone(&lock);
        others.push(spawn(move || *lock.write() += 1));
    }
    for _ in 0..readers {
        let lock = Arc::clone(&lock);
        others.push(spawn(move || assert!(*lock.read() <= 8)));
    }
    news.wait();
    others.into_iter().for_each(|other| other.join().expect("a client panicked"));
    assert_eq!(*lock.try_write().expect("try_write failed on a lock that nobody holds"), writers);
}

/// A reader is inside on the same thread while a write is polled: it is waited for.
pub fn polls_tell_the_truth<D: Configuration, C: ThreadClass>(stage: Stage) {
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

/// An upgradable reader shuts [`Bulk`] out, beside a reader of that class that may give up, one
/// that does not, and one of a higher class.
pub fn two_phases<D: Configuration, Higher: ThreadClass>(
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
