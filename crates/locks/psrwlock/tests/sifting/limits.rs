//! As many readers as there is room for, and one more.

use crate::threads::with;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use ulocks_core::Private;
use ulocks_psrwlock::signal::Soft;
use ulocks_psrwlock::{
    BULK, Bulk, ByClass, Central, Configuration, Distributed, HANDLER, NESTED, Nested, PhaseFair,
    PsRwLockReadGuard, PsRwLockUpgradableReadGuard as UpgradableGuard, PsRwLockWith,
    PsRwLockWriteGuard as WriteGuard, Readers, Sifted, Stage, ThreadClass, URGENT, Unchecked, Urgent,
};

/// Four classes share 56 bits, and half of what 14 of them can count may be inside.
const ROOM: usize = 1 << 13;
const SHORT: Duration = Duration::from_millis(1);
/// Longer than any machine takes to find out that there is no room.
const LONG: Duration = Duration::from_secs(60);

type Lock<R = Central> =
    PsRwLockWith<u32, Sifted<{ BULK | URGENT | NESTED | HANDLER }, Private, PhaseFair, R, Soft, Unchecked>>;

fn message<R>(acquire: impl FnOnce() -> R) -> String {
    let panic = catch_unwind(AssertUnwindSafe(|| drop(acquire()))).expect_err("there are too many");
    *panic.downcast::<String>().expect("a message with numbers in it")
}

/// Readers of class `C`, until there is no room for one more.
fn fill<C: ThreadClass, D: Configuration>(lock: &PsRwLockWith<u32, D>) -> Vec<PsRwLockReadGuard<'_, u32, D>> {
    std::iter::from_fn(|| lock.try_read_in::<C>()).take(1 << 20).collect()
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
    type Three = Sifted<{ BULK | URGENT | NESTED }, Private, PhaseFair, Central, Soft, Unchecked>;
    with("full with three classes", PsRwLockWith::<u32, Three>::new(0), |lock| {
        let inside = fill::<Urgent, _>(lock);
        assert_eq!(inside.len(), 1 << 17);
        assert!(message(|| lock.read_in::<Urgent>()).contains("131072"));
        assert!(lock.try_read().is_some() && lock.try_read_in::<Nested>().is_some());
    });
}

/// At slots there is room for more, on any number of classes; a thread that finds its slot full is
/// counted in the state.
#[test]
fn a_class_that_is_full_at_slots_too() {
    /// So many are counted at one slot.
    const SLOT: usize = 1 << 16;
    fn check<R: Readers>(slots: usize) {
        with("full at slots", Lock::<R>::new(0), |lock| {
            let inside = fill::<Bulk, _>(lock);
            assert!((ROOM + SLOT..=ROOM + SLOT * slots).contains(&inside.len()), "{}", inside.len());
            assert!(message(|| lock.read()).contains("too many Bulk readers"));
            let urgent = lock.read_in::<Urgent>();
            let mut write = lock.write_begin();
            assert_eq!(write.poll(), Stage::Readers("Bulk"));
            assert_eq!((lock.state().0 >> 8) as usize & 0x3fff, ROOM, "the others are at the slots");
            drop(inside);
            assert_eq!(write.poll(), Stage::Readers("Urgent"), "none has spilled into the next class");
            drop(urgent);
            assert_eq!(write.poll(), Stage::Ready);
        });
    }
    check::<Distributed<1>>(1);
    check::<Distributed<2>>(2);
    check::<Distributed<255>>(255);
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
