//! What a process leaves behind that is killed while it holds the lock or waits for it. The lock is
//! not robust: the others have to bound their waits, and these tests say which of them come to
//! nothing.

use crate::children::{Child, with_a_lock};
use std::time::Duration;
use ulocks_psrwlock::{ByClass, Stage, State, Urgent};

const SHORT: Duration = Duration::from_millis(20);
/// How long a writer waits that another process looks at meanwhile, also on a slow machine.
const LONG: Duration = Duration::from_millis(500);

#[test]
fn readers_go_on_beside_a_reader_that_died() {
    with_a_lock("reader killed", |lock| {
        Child::keeps(|| lock.read()).sleeps(lock, |state| !state.has_no_readers()).killed();
        for _ in 0..3 {
            assert!(lock.try_read().is_some() && lock.try_read_in::<Urgent>().is_some());
            assert!(lock.try_write().is_none() && lock.try_write_for(SHORT).is_none());
            // Readers that came while it waited, and slept, get in when it has given up.
            let writer = Child::runs(|| assert!(lock.try_write_for(LONG).is_none()))
                .sleeps(lock, |state| state.level() == 1);
            let reader = Child::runs(|| _ = *lock.read());
            Child::runs(|| _ = *lock.read_in::<Urgent>()).ends();
            writer.ends();
            reader.ends();
            assert_eq!(lock.state().level(), 0);
        }
        assert_eq!(*lock.upgradable_read(), 0, "what needs no exclusion goes on, too");
    });
}

#[test]
fn all_waits_time_out_behind_a_writer_that_died() {
    with_a_lock("writer killed", |lock| {
        Child::keeps(|| lock.write()).sleeps(lock, |state| state.level() == 2).killed();
        for _ in 0..2 {
            assert!(lock.try_read().is_none() && lock.try_read_for(SHORT).is_none());
            assert!(
                lock.try_read_in_for::<Urgent>(SHORT).is_none()
                    && lock.try_upgradable_read_for(SHORT).is_none()
            );
            assert!(lock.try_write().is_none() && lock.try_write_for(SHORT).is_none());
        }
        assert!(lock.state().is_owned());
    });
}

#[test]
fn higher_classes_go_on_behind_a_writer_that_died_as_it_waited_for_lower_ones() {
    with_a_lock("waiting writer killed", |lock| {
        let reader = lock.read();
        Child::runs(|| *lock.write() += 1).sleeps(lock, |state| state.level() == 1).killed();
        drop(reader);
        assert!(lock.try_read().is_none() && lock.try_read_for(SHORT).is_none());
        assert_eq!(*lock.read_in::<Urgent>(), 0);
        assert!(lock.try_write_for(SHORT).is_none() && lock.try_upgradable_read_for(SHORT).is_none());
    });
}

#[test]
fn a_writer_that_died_behind_another_is_missed_by_nobody() {
    with_a_lock("queued writer killed", |lock| {
        let held = lock.write();
        let waits = |state: State| state.0 & State::WRITERS != 0;
        let dead = Child::runs(|| *lock.write() += 1).sleeps(lock, waits);
        let alive: Vec<_> = (0..3).map(|_| Child::runs(|| *lock.write() += 1).sleeps(lock, waits)).collect();
        dead.killed();
        drop(held);
        alive.into_iter().for_each(Child::ends);
        assert_eq!(*lock.read(), 3);
        drop(lock.write());
        assert_eq!(lock.state(), State::UNLOCKED);
    });
}

#[test]
fn writers_time_out_behind_a_reader_that_died_in_line() {
    with_a_lock("reader in line killed", |lock| {
        let held = lock.write();
        let waits = |state: State| state.0 & State::LOW != 0;
        let dead = Child::runs(|| _ = *lock.read()).sleeps(lock, waits);
        let alive = Child::runs(|| assert_eq!(*lock.read(), 0)).sleeps(lock, waits);
        dead.killed();
        drop(held);
        alive.ends();
        for _ in 0..2 {
            assert_eq!(*lock.read() + *lock.read_in::<Urgent>(), 0);
            assert!(lock.try_write().is_none() && lock.try_write_for(SHORT).is_none());
        }
    });
}

/// The line is waited for as long as one is in it: seen with one that does not run.
#[test]
fn a_writer_waits_for_those_in_line() {
    with_a_lock("reader in line stopped", |lock| {
        let held = lock.write();
        let slow = Child::runs(|| assert_eq!(*lock.read(), 0));
        let slow = slow.sleeps(lock, |state| state.0 & State::LOW != 0).stopped();
        drop(held);
        let mut write = lock.write_begin();
        for _ in 0..3 {
            assert_eq!(write.poll(), Stage::Queue);
            assert!(lock.try_read().is_some(), "the class is not shut yet");
        }
        drop(write);
        assert!(lock.try_write().is_none() && lock.try_write_for(SHORT).is_none());
        let writer = Child::runs(|| *lock.write() += 1).sleeps(lock, |state| state.0 & State::DRAINING != 0);
        assert!(lock.try_read().is_some());
        slow.continued();
        writer.ends();
        assert_eq!(*lock.read(), 1);
        assert_eq!(lock.state(), State::UNLOCKED);
    });
}
