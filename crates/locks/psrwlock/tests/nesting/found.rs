//! What is found: it panics every time, whether a writer comes or not, and names both places.

use crate::{AtSlots, Lock, new};
use std::panic::{AssertUnwindSafe, catch_unwind};
use ulocks_psrwlock::{
    Bulk, ByClass, Central, Nested, Partial, PsRwLockUpgradableReadGuard as UpgradableGuard,
    PsRwLockWriteGuard as WriteGuard, Readers, Stage, State, Urgent,
};

/// The message of the panic that `acquire` ends with.
fn message<R>(acquire: impl FnOnce() -> R) -> String {
    let panic = catch_unwind(AssertUnwindSafe(|| drop(acquire()))).expect_err("a thread waits for itself");
    *panic.downcast::<String>().expect("a message with places in it")
}

/// Checks that `asked` on this very line panics, with this line and that of `held` in the message,
/// and what both are called.
macro_rules! finds {
    ($lock:ident, $held_at:expr, $held:literal, $asked:expr, $called:literal) => {{
        let message = message(|| $asked);
        let place = |line: u32| format!("{}:{line}:", file!());
        let asked = format!("asks for the {} lock at {}", $called, place(line!()));
        let held = format!("holds the {} lock since {}", $held, place($held_at));
        assert!(message.contains(&asked) && message.contains(&held), "{message}\nlacks\n{asked}\nor\n{held}");
    }};
}

/// Runs `test` for each way to count readers.
macro_rules! with_each {
    ($test:ident) => {
        $test::<Central>();
        $test::<AtSlots>();
    };
}

#[test]
fn a_second_read_lock_of_the_same_class() {
    fn test<R: Readers>() {
        let lock = new::<R>();
        let (held, at) = (lock.read(), line!());
        finds!(lock, at, "Bulk", lock.read(), "Bulk");
        finds!(lock, at, "Bulk", lock.read_in::<Bulk>(), "Bulk");
        drop(held);
        let (held, at) = (lock.read_in::<Nested>(), line!());
        finds!(lock, at, "Nested", lock.read_in::<Nested>(), "Nested");
        drop(held);
        assert_eq!(lock.state(), State::UNLOCKED, "what panicked has left nothing");
        drop(lock.read());
        drop(lock.write());
    }
    with_each!(test);
}

#[test]
fn a_read_lock_of_a_lower_class() {
    fn test<R: Readers>() {
        let lock = new::<R>();
        let (_held, at) = (lock.read_in::<Nested>(), line!());
        finds!(lock, at, "Nested", lock.read(), "Bulk");
        finds!(lock, at, "Nested", lock.read_in::<Urgent>(), "Urgent");
    }
    with_each!(test);
}

#[test]
fn a_write_lock_after_a_read_lock() {
    fn test<R: Readers>() {
        let lock = new::<R>();
        let (held, at) = (lock.read(), line!());
        finds!(lock, at, "Bulk", lock.write(), "write");
        finds!(lock, at, "Bulk", lock.upgradable_read(), "upgradable");
        drop(held);
        let (held, at) = (lock.read_in::<Urgent>(), line!());
        finds!(lock, at, "Urgent", lock.write(), "write");
        finds!(lock, at, "Urgent", lock.write_begin().wait(), "write");
        drop(held);
        *lock.write() += 1;
    }
    with_each!(test);
}

#[test]
fn any_lock_after_a_write_lock() {
    fn test<R: Readers>() {
        let lock = new::<R>();
        let (held, at) = (lock.write(), line!());
        finds!(lock, at, "write", lock.read(), "Bulk");
        finds!(lock, at, "write", lock.read_in::<Nested>(), "Nested");
        finds!(lock, at, "write", lock.write(), "write");
        finds!(lock, at, "write", lock.upgradable_read(), "upgradable");
        drop(held);
        let (held, at) = (lock.try_write().expect("free"), line!());
        finds!(lock, at, "write", lock.read(), "Bulk");
        drop(held);
        drop(lock.read());
    }
    with_each!(test);
}

#[test]
fn a_second_upgradable_lock() {
    fn test<R: Readers>() {
        let lock = new::<R>();
        let (held, at) = (lock.upgradable_read(), line!());
        finds!(lock, at, "upgradable", lock.upgradable_read(), "upgradable");
        finds!(lock, at, "upgradable", lock.write(), "write");
        drop(held);
        drop(lock.write());
    }
    with_each!(test);
}

/// The upgradable access is gone with the panic, as lock_api has it; the read lock is held still.
#[test]
fn an_exclusion_of_the_class_of_an_own_read_lock() {
    fn test<R: Readers>() {
        let lock = new::<R>();
        let mut upgradable = lock.upgradable_read();
        let (held, at) = (lock.read(), line!());
        finds!(lock, at, "Bulk", Partial::exclude::<Bulk>(&mut upgradable), "write");
        finds!(lock, at, "Bulk", Partial::exclude::<Urgent>(&mut upgradable), "write");
        assert_eq!((lock.state().level(), *upgradable), (0, 0), "it is as it was");
        drop(held);
        Partial::exclude::<Urgent>(&mut upgradable);
        assert_eq!(lock.state().level(), 2);
    }
    with_each!(test);
}

#[test]
fn an_upgrade_beside_an_own_read_lock() {
    fn test<R: Readers>() {
        let lock = new::<R>();
        let upgradable = lock.upgradable_read();
        let (held, at) = (lock.read_in::<Urgent>(), line!());
        finds!(lock, at, "Urgent", UpgradableGuard::upgrade(upgradable), "write");
        assert!(!lock.state().is_owned(), "the upgradable access is released: {:?}", lock.state());
        assert!(lock.try_write().is_none() && *held == 0);
        drop(held);
        assert_eq!(lock.state(), State::UNLOCKED);

        let mut upgradable = lock.upgradable_read();
        let (held, at) = (lock.read_in::<Nested>(), line!());
        Partial::exclude::<Bulk>(&mut upgradable);
        finds!(lock, at, "Nested", UpgradableGuard::upgrade(upgradable), "write");
        drop(held);
        assert_eq!(lock.state(), State::UNLOCKED, "what was shut is open");
    }
    with_each!(test);
}

/// It would wait for itself: it has shut the class out.
#[test]
fn a_read_lock_after_an_exclusion_of_its_own() {
    fn test<R: Readers>() {
        let lock = new::<R>();
        let (mut upgradable, at) = (lock.upgradable_read(), line!());
        drop(lock.read());
        Partial::exclude::<Urgent>(&mut upgradable);
        finds!(lock, at, "upgradable", lock.read(), "Bulk");
        finds!(lock, at, "upgradable", lock.read_in::<Urgent>(), "Urgent");
        drop(lock.read_in::<Nested>());
        Partial::admit(&mut upgradable);
        drop(lock.read());
    }
    with_each!(test);
}

#[test]
fn any_lock_after_a_write_in_steps() {
    fn test<R: Readers>() {
        let lock = new::<R>();
        let mut write = lock.write_begin();
        drop(lock.read());
        let (stage, at) = (write.poll(), line!());
        assert_eq!(stage, Stage::Ready);
        finds!(lock, at, "upgradable", lock.write(), "write");
        finds!(lock, at, "upgradable", lock.read_in::<Nested>(), "Nested");
        let (write, at) = (write.finish().expect("it is ready"), line!());
        finds!(lock, at, "write", lock.read(), "Bulk");
        drop(write);
        let (write, at) = (lock.write_begin().wait(), line!());
        finds!(lock, at, "write", lock.read(), "Bulk");
        drop(write);
        drop(lock.read());
    }
    with_each!(test);
}

/// A turn from one access into another is entered with the line where it happened.
#[test]
fn what_was_turned_into_another_access() {
    fn test<R: Readers>() {
        let lock = new::<R>();
        let write = lock.write();
        let (read, at) = (WriteGuard::downgrade(write), line!());
        finds!(lock, at, "Bulk", lock.read(), "Bulk");
        assert!(lock.try_read_in::<Urgent>().is_some());
        drop(read);
        let write = lock.write();
        let (upgradable, at) = (WriteGuard::downgrade_to_upgradable(write), line!());
        finds!(lock, at, "upgradable", lock.write(), "write");
        let (write, at) = (UpgradableGuard::upgrade(upgradable), line!());
        finds!(lock, at, "write", lock.read(), "Bulk");
        let upgradable = WriteGuard::downgrade_to_upgradable(write);
        let (write, at) = (UpgradableGuard::try_upgrade(upgradable).expect("alone"), line!());
        finds!(lock, at, "write", lock.read(), "Bulk");
        let upgradable = WriteGuard::downgrade_to_upgradable(write);
        let (read, at) = (UpgradableGuard::downgrade(upgradable), line!());
        finds!(lock, at, "Bulk", lock.write(), "write");
        drop(read);
        drop(lock.write());
    }
    with_each!(test);
}

/// One found may be deep in the list of what a thread holds, below other locks.
#[test]
fn one_lock_among_others() {
    let locks: [Lock; 8] = std::array::from_fn(|_| Lock::new(0));
    let held: Vec<_> = locks.iter().map(|lock| lock.read()).collect();
    let message = message(|| locks[3].write());
    assert!(message.contains("Bulk lock since"), "{message}");
    drop(held);
    locks.iter().for_each(|lock| drop(lock.write()));
}

#[test]
fn debug_builds_check_by_default() {
    let lock = ulocks_psrwlock::PsRwLock::new(0);
    let held = lock.read();
    let second = catch_unwind(AssertUnwindSafe(|| drop(lock.read())));
    assert_eq!(second.is_err(), cfg!(debug_assertions));
    drop(held);
    drop(lock.write());
}
