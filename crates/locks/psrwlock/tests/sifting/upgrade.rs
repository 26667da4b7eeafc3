//! Upgradable readers: beside readers, before writers; upgrades and downgrades.

use crate::threads::{asleep, until, with};
use std::thread;
use std::time::{Duration, Instant};
use ulocks_psrwlock::{
    Bulk, ByClass, Nested, Partial, PsRwLock, PsRwLockUpgradableReadGuard as UpgradableGuard,
    PsRwLockWriteGuard as WriteGuard, ThreadClass, Urgent,
};

const SHORT: Duration = Duration::from_millis(2);

#[test]
fn an_upgradable_reader_is_in_the_way_of_writers_only() {
    with("upgradable", PsRwLock::new(0), |lock| {
        let upgradable = lock.upgradable_read();
        assert_eq!(lock.state().level(), 0);
        thread::scope(|scope| {
            let readers =
                scope.spawn(|| *lock.read() + *lock.read_in::<Urgent>() + *lock.read_in::<Nested>());
            assert_eq!(readers.join().unwrap(), 0);
            assert!(lock.try_write().is_none() && lock.try_write_for(SHORT).is_none());
            assert!(lock.try_upgradable_read().is_none() && lock.try_upgradable_read_for(SHORT).is_none());
            assert!(lock.try_read().is_some(), "who gave up has shut nobody out");
            let second = asleep(scope, || *lock.upgradable_read());
            let writer = asleep(scope, || *lock.write() += 1);
            assert!(lock.try_read().is_some(), "who waits for an upgradable reader has shut nobody out");
            drop(upgradable);
            assert!(second.join().unwrap() <= 1);
            writer.join().unwrap();
        });
        assert_eq!(*lock.read(), 1);
    });
}

#[test]
fn an_upgrade_waits_for_readers_class_by_class() {
    with("upgrade", PsRwLock::new(0), |lock| {
        let (slow, urgent) = (lock.read(), lock.read_in::<Urgent>());
        thread::scope(|scope| {
            let upgrader = scope.spawn(|| *UpgradableGuard::upgrade(lock.upgradable_read()) += 1);
            until(|| lock.state().level() == 1);
            assert!(lock.try_read().is_none() && lock.try_read_in::<Urgent>().is_some());
            drop(slow);
            until(|| lock.state().level() == 2);
            assert!(lock.try_read_in::<Urgent>().is_none() && lock.try_read_in::<Nested>().is_some());
            drop(urgent);
            upgrader.join().unwrap();
        });
        assert_eq!(*lock.read(), 1);
    });
}

#[test]
fn an_attempt_to_upgrade_beside_a_reader_changes_nothing() {
    fn try_beside<C: ThreadClass>(lock: &PsRwLock<i32>) {
        let upgradable = lock.upgradable_read();
        let _reader = lock.read_in::<C>();
        let before = lock.state();
        assert_eq!(before.level(), 0);
        let _upgradable = UpgradableGuard::try_upgrade(upgradable).expect_err("there is a reader");
        assert_eq!(lock.state(), before, "all is open as before");
        assert!(lock.try_read().is_some() && lock.try_read_in::<Nested>().is_some());
        assert!(lock.try_write().is_none() && lock.try_upgradable_read().is_none(), "it is upgradable still");
    }
    with("attempt to upgrade", PsRwLock::new(0), |lock| {
        try_beside::<Bulk>(lock);
        try_beside::<Urgent>(lock);
        try_beside::<Nested>(lock);
        let mut upgraded =
            UpgradableGuard::try_upgrade(lock.upgradable_read()).expect("there are no readers");
        *upgraded += 1;
        drop(upgraded);
        // With a class shut out before, it stays so.
        let mut upgradable = lock.upgradable_read();
        let reader = lock.read_in::<Urgent>();
        Partial::exclude::<Bulk>(&mut upgradable);
        let upgradable = UpgradableGuard::try_upgrade(upgradable).expect_err("there is a reader");
        assert!(lock.try_read().is_none() && lock.try_read_in::<Urgent>().is_some());
        let upgradable = UpgradableGuard::try_upgrade_for(upgradable, SHORT).expect_err("there is a reader");
        assert!(lock.try_read().is_none() && lock.try_read_in::<Urgent>().is_some());
        drop(reader);
        // And without a reader it succeeds from there.
        let mut upgradable = upgradable;
        Partial::exclude::<Urgent>(&mut upgradable);
        assert_eq!(*UpgradableGuard::try_upgrade(upgradable).expect("there are no readers"), 1);
    });
}

#[test]
fn an_exclusion_that_fails_shuts_nobody_out() {
    with("exclusion in vain", PsRwLock::new(0), |lock| {
        let mut held = lock.upgradable_read();
        let slow = lock.read();
        assert!(
            !Partial::try_exclude::<Bulk>(&mut held) && !Partial::try_exclude_for::<Bulk>(&mut held, SHORT)
        );
        assert!(!Partial::try_exclude_until::<Urgent>(&mut held, Instant::now() + SHORT));
        assert_eq!(lock.state().level(), 0);
        assert!(lock.try_read().is_some() && lock.try_upgradable_read().is_none());
        drop(slow);
        assert!(Partial::try_exclude::<Bulk>(&mut held) && lock.try_read().is_none());
        // From there it goes on, or comes back to there.
        let nested = lock.read_in::<Nested>();
        assert!(
            !Partial::try_exclude::<Nested>(&mut held)
                && !Partial::try_exclude_for::<Nested>(&mut held, SHORT)
        );
        assert_eq!(lock.state().level(), 1);
        assert!(lock.try_read().is_none() && lock.try_read_in::<Urgent>().is_some());
        assert!(Partial::try_exclude::<Urgent>(&mut held) && Partial::try_exclude::<Bulk>(&mut held));
        assert_eq!(lock.state().level(), 2);
        drop(nested);
        assert!(Partial::try_exclude_for::<Nested>(&mut held, Duration::from_secs(60)));
        assert_eq!(lock.state().level(), 3);
        Partial::admit(&mut held);
        assert_eq!(lock.state().level(), 0);
    });
}

/// A reader that sleeps because of it is let in when it fails.
#[test]
fn an_exclusion_that_gives_up_wakes_those_it_has_kept_out() {
    with("exclusion gives up", PsRwLock::new(0), |lock| {
        for _ in 0..20 {
            let mut held = lock.upgradable_read();
            let reader = lock.read();
            thread::scope(|scope| {
                let other = scope.spawn(|| *lock.read());
                assert!(!Partial::try_exclude_for::<Bulk>(&mut held, SHORT));
                assert_eq!(other.join().unwrap(), 0);
            });
            drop(reader);
        }
    });
}

#[test]
fn an_upgrade_that_gives_up_lets_all_in_and_stays_what_it_was() {
    with("upgrade in vain", PsRwLock::new(0), |lock| {
        thread::scope(|scope| {
            let upgradable = lock.upgradable_read();
            let reader = lock.read();
            // It comes while the class is shut, or before or after; either way it gets in beside
            // the upgradable reader.
            let other = scope.spawn(|| *lock.read());
            let upgradable =
                UpgradableGuard::try_upgrade_for(upgradable, SHORT).expect_err("there is a reader");
            assert_eq!(other.join().unwrap(), 0);
            assert_eq!(lock.state().level(), 0);
            assert!(lock.try_upgradable_read().is_none(), "it is upgradable still");
            drop(reader);
            *UpgradableGuard::try_upgrade_for(upgradable, Duration::from_secs(60))
                .expect("there are no readers") += 1;
        });
        assert_eq!(*lock.read(), 1);
    });
}

#[test]
fn a_downgrade_lets_readers_in_and_no_writer() {
    with("downgrade", PsRwLock::new(0), |lock| {
        thread::scope(|scope| {
            let mut held = lock.write();
            *held = 1;
            let (bulk, nested) =
                (asleep(scope, || *lock.read()), asleep(scope, || *lock.read_in::<Nested>()));
            let writers = [asleep(scope, || *lock.write() += 1), asleep(scope, || *lock.write() += 1)];
            let held = WriteGuard::downgrade(held);
            // They are woken, and do not wait for this reader.
            assert_eq!((bulk.join().unwrap(), nested.join().unwrap()), (1, 1));
            // One of the writers shuts readers out by and by, and waits for this one.
            until(|| lock.state().level() == 1);
            assert_eq!(*held, 1);
            assert!(writers.iter().all(|writer| !writer.is_finished()));
            drop(held);
            writers.into_iter().for_each(|writer| writer.join().unwrap());
        });
        assert_eq!(*lock.read(), 3);
    });
}

#[test]
fn a_downgrade_to_upgradable_lets_readers_in_and_keeps_the_write_side() {
    with("downgrade to upgradable", PsRwLock::new(0), |lock| {
        thread::scope(|scope| {
            let mut held = lock.write();
            *held = 1;
            let (bulk, nested) =
                (asleep(scope, || *lock.read()), asleep(scope, || *lock.read_in::<Nested>()));
            let writer = asleep(scope, || *lock.write() += 10);
            let held = WriteGuard::downgrade_to_upgradable(held);
            assert_eq!((bulk.join().unwrap(), nested.join().unwrap()), (1, 1));
            assert_eq!(lock.state().level(), 0, "the writer has shut nobody out");
            *UpgradableGuard::upgrade(held) *= 3;
            writer.join().unwrap();
        });
        assert_eq!(*lock.read(), 13);
    });
}

#[test]
fn an_upgradable_reader_becomes_a_plain_one() {
    with("upgradable to reader", PsRwLock::new(0), |lock| {
        thread::scope(|scope| {
            let mut held = lock.upgradable_read();
            Partial::exclude::<Urgent>(&mut held);
            let reader = asleep(scope, || *lock.read());
            let writer = asleep(scope, || *lock.write() += 1);
            let held = UpgradableGuard::downgrade(held);
            assert_eq!(reader.join().unwrap(), 0, "it opens what it had shut");
            until(|| lock.state().level() == 1);
            assert!(!writer.is_finished());
            drop(held);
            writer.join().unwrap();
        });
    });
}

#[test]
fn classes_are_shut_out_before_the_upgrade_and_let_in_again() {
    with("partial", PsRwLock::new(0), |lock| {
        thread::scope(|scope| {
            let mut upgradable = lock.upgradable_read();
            let slow = scope.spawn(|| {
                let held = lock.read();
                until(|| lock.state().level() == 1);
                assert_eq!(*held, 0);
            });
            until(|| !lock.state().has_no_readers());
            Partial::exclude::<Bulk>(&mut upgradable);
            assert!(lock.state().has_no_readers());
            slow.join().unwrap();
            assert!(lock.try_read().is_none() && lock.try_read_in::<Urgent>().is_some());
            let reader = asleep(scope, || *lock.read());
            Partial::exclude::<Bulk>(&mut upgradable);
            Partial::exclude::<Urgent>(&mut upgradable);
            Partial::exclude::<Bulk>(&mut upgradable);
            assert_eq!(lock.state().level(), 2, "what is shut stays so");
            assert!(lock.try_read_in::<Urgent>().is_none() && lock.try_read_in::<Nested>().is_some());
            Partial::admit(&mut upgradable);
            assert_eq!(reader.join().unwrap(), 0);
            Partial::admit(&mut upgradable);
            assert!(lock.try_read().is_some() && lock.try_upgradable_read().is_none());
            Partial::exclude::<Nested>(&mut upgradable);
            let reader = asleep(scope, || *lock.read());
            let urgent = asleep(scope, || *lock.read_in::<Urgent>());
            // The drop lets all in, too.
            drop(upgradable);
            assert_eq!(reader.join().unwrap() + urgent.join().unwrap(), 0);
        });
    });
}

#[test]
fn a_fair_release_by_an_upgradable_reader_is_for_one_that_waits() {
    with("fair release of an upgradable reader", PsRwLock::new(0), |lock| {
        for round in 0..20 {
            let held = lock.upgradable_read();
            thread::scope(|scope| {
                let waits = asleep(scope, || *lock.write() += 1);
                UpgradableGuard::unlock_fair(held);
                assert_eq!(*lock.write(), round + 1, "the one that waited was first");
                waits.join().unwrap();
            });
        }
    });
}
