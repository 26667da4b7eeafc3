//! Which threads are let in, and when, and as how many: through the typed faces. Every test has its
//! threads in an order that it knows, and none looks at a clock. The orders that it does not know
//! are the virtual machine's.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

#[path = "common/threads.rs"]
mod threads;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use threads::{until, with};
use ulocks_core::Private;
use ulocks_core::raw::{RawRwLock as _, RawRwLockFair as _};
use ulocks_core::spin::NoSpin;
use ulocks_psrwlock::signal::Soft;
use ulocks_psrwlock::{
    BULK, Bulk, ByClass, Central, Configuration, Eager, HANDLER, NESTED, Nested, Partial, PhaseFair,
    PsRwLock, PsRwLockReadGuard, PsRwLockReadGuard as ReadGuard,
    PsRwLockUpgradableReadGuard as UpgradableGuard, PsRwLockWith, PsRwLockWriteGuard as WriteGuard, Sifted,
    ThreadClass, URGENT, Unchecked, Urgent,
};
use ulocks_testkit::task::asleep;

const THREE: u8 = BULK | URGENT | NESTED;
const SHORT: Duration = Duration::from_millis(2);
/// Longer than any machine takes to find out that there is no room, or nobody.
const LONG: Duration = Duration::from_secs(60);

/// While a writer waits for readers of a class, those of all classes above come and go.
#[test]
fn a_writer_shuts_out_one_class_after_the_other() {
    macro_rules! check {
        ($($configuration:ty),+) => {$(
            with("one after the other", PsRwLockWith::<u32, $configuration>::new(0), |lock| {
                let mut inside = vec![lock.read(), lock.read_in::<Urgent>(), lock.read_in::<Nested>()];
                inside.reverse();
                thread::scope(|scope| {
                    let writer = scope.spawn(|| *lock.write() += 1);
                    for level in 1..=3 {
                        until(|| lock.state().level() == level);
                        let open = [
                            lock.try_read().is_some(),
                            lock.try_read_in::<Urgent>().is_some(),
                            lock.try_read_in::<Nested>().is_some(),
                        ];
                        assert_eq!(open, [false, level < 2, level < 3]);
                        assert!(!writer.is_finished());
                        inside.pop();
                    }
                    writer.join().unwrap();
                });
                assert_eq!(*lock.read(), 1);
            });
        )+};
    }
    check!(Private, Private<NoSpin>, Sifted<{ THREE | HANDLER }>, Sifted<THREE, Private, PhaseFair, Eager>);
}

#[test]
fn a_deadline_that_has_passed_tries_once() {
    with("passed deadline", PsRwLock::new(0), |lock| {
        let past = Instant::now();
        assert!(lock.try_read_until(past).is_some() && lock.try_read_in_until::<Nested>(past).is_some());
        assert!(lock.try_write_until(past).is_some() && lock.try_upgradable_read_until(past).is_some());
        assert!(lock.try_write_for(Duration::ZERO).is_some());
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

/// Four classes share 56 bits, and half of what 14 of them can count may be inside.
const ROOM: usize = 1 << 13;

type Lock<R = Central> =
    PsRwLockWith<u32, Sifted<{ THREE | HANDLER }, Private, PhaseFair, R, Soft, Unchecked>>;

fn message<R>(acquire: impl FnOnce() -> R) -> String {
    let panic = catch_unwind(AssertUnwindSafe(|| drop(acquire()))).expect_err("there are too many");
    *panic.downcast::<String>().expect("a message with numbers in it")
}

/// Readers of class `C`, until there is no room for one more.
fn fill<C: ThreadClass, D: Configuration>(lock: &PsRwLockWith<u32, D>) -> Vec<PsRwLockReadGuard<'_, u32, D>> {
    std::iter::from_fn(|| lock.try_read_in::<C>()).take(1 << 20).collect()
}

/// A guard that lets others in between stays in its class.
#[test]
fn a_bump_stays_in_its_class() {
    macro_rules! check {
        ($($configuration:ty),+) => {$(
            with("bumped", PsRwLockWith::<u32, $configuration>::new(0), |lock| {
                let mut upgradable = lock.upgradable_read();
                let mut urgent = lock.read_in::<Urgent>();
                ReadGuard::bump(&mut urgent);
                assert!(Partial::try_exclude::<Bulk>(&mut upgradable), "it has become a Bulk reader");
                assert!(!Partial::try_exclude::<Urgent>(&mut upgradable), "it is no Urgent reader any more");
                // Its class is open still.
                ReadGuard::bump(&mut urgent);
                drop((urgent, upgradable));
                let mut bulk = lock.read();
                ReadGuard::bump(&mut bulk);
                drop(bulk);
                *lock.write() += 1;
            });
        )+};
    }
    check!(Private, Private<NoSpin>, Sifted<{ THREE | HANDLER }>, Sifted<THREE, Private, PhaseFair, Eager>);
}

/// The writer waits for this thread, and so a bump in another class would wait for the writer.
#[test]
fn a_nested_guard_is_bumped_beside_a_writer() {
    with("bumped beside a writer", PsRwLock::<u32>::new(0), |lock| {
        let outer = lock.read();
        let mut nested = lock.read_in::<Nested>();
        thread::scope(|scope| {
            let writer = asleep(scope, || *lock.write() += 1);
            until(|| lock.state().level() == 1);
            ReadGuard::bump(&mut nested);
            assert!(!writer.is_finished());
            drop((nested, outer));
            writer.join().unwrap();
        });
        assert_eq!(*lock.read(), 1);
    });
}

/// A handler must not wait, and so it does not let others in between.
#[test]
fn a_bump_of_a_handler_s_guard_does_nothing() {
    with("bumped by a handler", PsRwLockWith::<u32, Sifted<{ THREE | HANDLER }>>::new(0), |lock| {
        // SAFETY: what is acquired here is released here.
        let raw = unsafe { lock.raw() }.inner();
        let token = raw.read_in_handler_looking(1).expect("free");
        let before = lock.state();
        // SAFETY: the token is of the acquisition above.
        let token = unsafe { raw.bump_read(token) };
        assert_eq!(lock.state(), before, "it is a reader of another class");
        // SAFETY: as above.
        unsafe { raw.unlock_read(token) };
    });
}

#[test]
fn a_class_that_is_full_admits_nobody_and_leaves_the_others_alone() {
    fn check<C: ThreadClass>(lock: &Lock, name: &str) {
        let mut inside = fill::<C, _>(lock);
        assert_eq!(inside.len(), ROOM);
        let before = lock.state();
        assert!(lock.try_read_in::<C>().is_none());
        for message in [message(|| lock.read_in::<C>()), message(|| lock.try_read_in_for::<C>(LONG))] {
            assert!(
                message.contains(&format!("too many {name} readers")) && message.contains("8192"),
                "{message}"
            );
        }
        assert_eq!(lock.state(), before, "who came in vain is not counted");
        let others = [lock.try_read(), lock.try_read_in::<Urgent>(), lock.try_read_in::<Nested>()];
        assert_eq!(others.iter().flatten().count(), 2);
        drop(others);
        assert!(lock.try_write().is_none() && lock.try_write_for(SHORT).is_none());
        inside.pop();
        drop(lock.read_in::<C>());
        drop(inside);
        assert_eq!(*lock.write(), 0);
    }
    with("full", Lock::<Central>::new(0), |lock| {
        check::<Bulk>(lock, "Bulk");
        check::<Urgent>(lock, "Urgent");
        check::<Nested>(lock, "Nested");
        // Full to the last place, one class beside the other.
        let all = (fill::<Bulk, _>(lock), fill::<Urgent, _>(lock), fill::<Nested, _>(lock));
        assert_eq!((all.0.len(), all.1.len(), all.2.len()), (ROOM, ROOM, ROOM));
    });
}

#[test]
fn three_classes_have_more_room_than_four() {
    type Three = Sifted<THREE, Private, PhaseFair, Central, Soft, Unchecked>;
    with("full with three classes", PsRwLockWith::<u32, Three>::new(0), |lock| {
        let inside = fill::<Urgent, _>(lock);
        assert_eq!(inside.len(), 1 << 17);
        assert!(message(|| lock.read_in::<Urgent>()).contains("131072"));
        assert!(lock.try_read().is_some() && lock.try_read_in::<Nested>().is_some());
    });
}

/// At slots there is room for more; a thread that finds its slot full is counted in the state.
#[test]
fn a_class_that_is_full_at_slots_too() {
    /// So many are counted at one slot, of which there are 64.
    const SLOT: usize = 1 << 16;
    with("full at slots", Lock::<Eager>::new(0), |lock| {
        drop(lock.read()); // gets the row
        let inside = fill::<Bulk, _>(lock);
        assert!((ROOM + SLOT..=ROOM + SLOT * 64).contains(&inside.len()), "{}", inside.len());
        assert!(message(|| lock.read()).contains("too many Bulk readers"));
        assert_eq!(lock.state().0 >> 8, ROOM as u64, "the others are at the slots");
        assert!(lock.try_write().is_none());
        drop(inside);
        assert!(lock.try_write().is_some());
    });
}

#[test]
fn an_upgradable_reader_finds_no_room_as_a_plain_one() {
    with("no room", Lock::<Central>::new(0), |lock| {
        let upgradable = lock.upgradable_read();
        let inside = fill::<Bulk, _>(lock);
        assert!(message(|| UpgradableGuard::downgrade(upgradable)).contains("too many Bulk readers"));
        assert!(!lock.state().is_owned(), "what is consumed by a panic is released");
        drop(inside);
        // A writer becomes one in any case: there are no readers.
        drop(WriteGuard::downgrade(lock.write()));
    });
}

/// So many waiters would take a while; the word that counts them says there are.
#[test]
fn a_line_that_is_full_admits_nobody() {
    const ROOM: u32 = 12_000;
    const TOP_ROOM: u32 = 6_000;
    with("full line", Lock::<Central>::new(0), |lock| {
        // SAFETY: the lock is not used but for its address.
        let raw = std::ptr::from_ref(unsafe { lock.raw() }).cast::<AtomicU32>();
        // SAFETY: the lock has four words of this size at least, and the last of these is that of
        // the lines.
        let lines = unsafe { &*raw.add(3) };
        let held = lock.write();
        for (waiting, room, message_of) in [
            (ROOM, "12000", &(|| message(|| lock.read())) as &dyn Fn() -> String),
            (ROOM, "12000", &|| message(|| lock.try_read_in_for::<Urgent>(LONG))),
            (TOP_ROOM << 14, "6000", &|| message(|| lock.read_in::<Nested>())),
        ] {
            lines.store(waiting, Relaxed);
            let message = message_of();
            assert!(message.contains("too many readers wait") && message.contains(room), "{message}");
            assert_eq!(lines.swap(0, Relaxed), waiting, "who came in vain is not counted");
        }
        drop(held);
        assert!(lock.try_read().is_some() && lock.try_write().is_some());
    });
}
