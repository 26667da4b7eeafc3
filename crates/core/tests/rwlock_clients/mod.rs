//! Bodies of models of the typed reader-writer lock, for every model world. They run on the machine
//! too.

#![allow(dead_code)] // Each world uses its own part.

use std::fmt::Debug;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use ulocks_core::api;
use ulocks_core::interrupt::{InterruptibleRwLock as _, InterruptibleUpgrade as _, WaitError};
use ulocks_core::raw::RawRwLock as _;
use ulocks_core::time::Deadline;
use ulocks_testkit::open::Open;
use ulocks_testkit::plain::rw::PlainRw;
use ulocks_testkit::thread::with;

pub type RwLock<T> = api::RwLock<PlainRw, T>;
pub type RwLockReadGuard<'a, T> = api::RwLockReadGuard<'a, PlainRw, T>;
pub type RwLockWriteGuard<'a, T> = api::RwLockWriteGuard<'a, PlainRw, T>;
pub type RwLockUpgradableReadGuard<'a, T> = api::RwLockUpgradableReadGuard<'a, PlainRw, T>;
pub type MappedRwLockReadGuard<'a, T> = api::MappedRwLockReadGuard<'a, PlainRw, T>;
pub type MappedRwLockWriteGuard<'a, T> = api::MappedRwLockWriteGuard<'a, PlainRw, T>;

const LATER: Duration = Duration::from_secs(1);

pub fn readers_and_a_writer(readers: usize) {
    let lock = Arc::new(RwLock::new([0; 2]));
    let others: Vec<_> = (0..readers)
        .map(|_| {
            with(&lock, |lock| {
                let [first, second] = *lock.read();
                assert_eq!(first, second);
            })
        })
        .collect();
    for half in &mut *lock.write() {
        *half += 1;
    }
    others.into_iter().for_each(|other| other.join().unwrap());
    assert_eq!(*lock.read(), [1, 1]);
}

/// Two readers that nothing excludes: no race, and their accesses overlap.
pub fn unlocked_readers() {
    let lock = Arc::new(api::RwLock::<Open, u32>::new(7));
    let guard = lock.read();
    let other = with(&lock, |lock| *lock.read());
    assert_eq!((*guard, other.join().unwrap()), (7, 7));
    drop(guard);
}

/// A reader and a writer that nothing excludes.
pub fn unlocked_reader_and_writer() {
    let lock = Arc::new(api::RwLock::<Open, u32>::new(0));
    let other = with(&lock, |lock| *lock.write() += 1);
    let _ = *lock.read();
    other.join().unwrap();
}

/// A writer beside a guard of a reader, or of one of a part.
pub fn write_beside_a_read_guard(mapped: bool) {
    let lock = Arc::new(api::RwLock::<Open, (u32, u32)>::new((0, 0)));
    let guard = lock.read();
    let second = lock.read();
    drop(second);
    // Of two readers one is left.
    if mapped {
        let _guard = api::RwLockReadGuard::map(guard, |pair| &pair.0);
        with(&lock, |lock| drop(lock.write())).join().unwrap();
    } else {
        with(&lock, |lock| drop(lock.write())).join().unwrap();
        drop(guard);
    }
}

/// Upgradable holders upgrade, beside readers and in every way.
pub fn upgrades() {
    let lock = Arc::new(RwLock::new(0));
    let other = with(&lock, |lock| {
        let guard = lock.upgradable_read();
        let seen = *guard;
        let mut guard = match api::RwLockUpgradableReadGuard::try_upgrade(guard) {
            Ok(guard) => guard,
            Err(guard) => api::RwLockUpgradableReadGuard::upgrade(guard),
        };
        assert_eq!(*guard, seen);
        *guard += 1;
    });
    let seen = *lock.read();
    assert!(seen <= 1);
    lock.upgradable_read().with_upgraded(|count| *count += 1);
    other.join().unwrap();
    assert_eq!(*lock.read(), 2);
}

/// Writers become readers beside a writer.
pub fn downgrades() {
    let lock = Arc::new(RwLock::new(0));
    let other = with(&lock, |lock| *lock.write() += 1);
    let mut guard = lock.write();
    *guard += 1;
    let written = *guard;
    let guard = api::RwLockWriteGuard::downgrade(guard);
    assert_eq!(*guard, written);
    drop(guard);
    other.join().unwrap();
    assert_eq!(*lock.read(), 2);
}

/// Whatever was had by whichever way is given back.
pub fn every_way_of_release_releases() {
    let lock = RwLock::new([0; 2]);
    let is_free = || assert!(lock.try_write().is_some() && !lock.is_locked());
    let mut read = lock.read();
    assert!(lock.is_locked() && !lock.is_locked_exclusive());
    RwLockReadGuard::unlocked(&mut read, || lock.write()[0] += 1);
    RwLockReadGuard::bump(&mut read);
    RwLockReadGuard::unlock_fair(read);
    is_free();
    let mut write = lock.write();
    assert!(lock.is_locked_exclusive());
    RwLockWriteGuard::unlocked_fair(&mut write, || assert_eq!(lock.read()[0], 1));
    let second = RwLockWriteGuard::map(write, |pair| &mut pair[..]);
    let mut second = MappedRwLockWriteGuard::map(second, |pair| &mut pair[1]);
    *second += 1;
    drop(second);
    is_free();
    let read = RwLockReadGuard::try_map(lock.read(), |_| None::<&i32>).unwrap_err();
    let part = MappedRwLockReadGuard::map(RwLockReadGuard::map(read, |pair| &pair[..]), |pair| &pair[1]);
    assert_eq!(*part, 1);
    let (part, error) = MappedRwLockReadGuard::try_map_or_err(part, |_| Err::<&i32, _>('x')).unwrap_err();
    assert_eq!(error, 'x');
    MappedRwLockReadGuard::unlock_fair(part);
    is_free();
    let write = RwLockWriteGuard::downgrade_to_upgradable(lock.write());
    let write = RwLockUpgradableReadGuard::try_upgrade(write).unwrap();
    let mut upgradable = RwLockWriteGuard::downgrade_to_upgradable(write);
    RwLockUpgradableReadGuard::unlocked(&mut upgradable, is_free);
    let reader = lock.read();
    assert!(upgradable.try_with_upgraded(|_| ()).is_none());
    drop(reader);
    assert_eq!(upgradable.try_with_upgraded_for(LATER, mem::take), Some([1, 1]));
    let read = RwLockUpgradableReadGuard::downgrade(upgradable);
    assert!(lock.try_upgradable_read().is_some());
    drop(read);
    is_free();
    RwLockUpgradableReadGuard::unlock_fair(lock.upgradable_read());
    is_free();
}

/// Timed acquisitions, beside a writer that may stay too long.
pub fn timed() {
    let lock = Arc::new(RwLock::new(0));
    let other = with(&lock, |lock| {
        lock.try_write_for(LATER).map_or(0, |mut guard| {
            *guard += 1;
            1
        })
    });
    let read = lock.try_read_for(LATER).map(|guard| *guard);
    assert!(read.is_none_or(|seen| seen <= 1));
    let upgraded = lock.try_upgradable_read_for(LATER).and_then(|guard| {
        let mut guard = RwLockUpgradableReadGuard::try_upgrade_for(guard, LATER).ok()?;
        *guard += 1;
        Some(())
    });
    let expected = other.join().unwrap() + usize::from(upgraded.is_some());
    assert_eq!(*lock.read() as usize, expected);
}

/// As [`timed`], by the acquisitions that a signal handler would end, too.
pub fn interruptible() {
    let lock = Arc::new(RwLock::new(0));
    let soon = || Deadline::after(LATER);
    let other = with(&lock, move |lock| {
        lock.write_interruptible_until(soon()).map_or(0, |mut guard| {
            *guard += 1;
            1
        })
    });
    let read = lock.read_interruptible_until(soon()).map(|guard| *guard);
    assert!(read.is_ok_and(|seen| seen <= 1) || read == Err(WaitError::TimedOut), "{read:?}");
    let upgraded = lock.upgradable_read_interruptible_until(soon()).ok().map(|guard| {
        *RwLockUpgradableReadGuard::upgrade(guard) += 1;
    });
    let expected = other.join().unwrap() + usize::from(upgraded.is_some());
    // No signal comes.
    assert_eq!(*lock.read_interruptible().unwrap() as usize, expected);
    *lock.write_interruptible().unwrap() += 1;
    assert_eq!(*lock.upgradable_read_interruptible().unwrap() as usize, expected + 1);
}

/// Guards may be forgotten, several of readers too, and made up for.
pub fn forgotten_guards() {
    let lock = RwLock::new(5);
    mem::forget(lock.read());
    mem::forget(lock.read());
    assert!(lock.try_write().is_none());
    assert_eq!(*lock.read(), 5);
    // SAFETY: the forgotten guards held the lock, and no guard or reference is left.
    unsafe {
        lock.force_unlock_read(api::Token::new(()));
        lock.force_unlock_read_fair(api::Token::new(()));
    }
    mem::forget(lock.write());
    shows(&lock, "RwLock { data: <locked> }");
    // SAFETY: as above.
    unsafe { lock.force_unlock_write(api::Token::new(())) };
    shows(&lock, "RwLock { data: 5 }");
    // One is left open at the end.
    mem::forget(lock.read());
}

fn shows(value: &impl Debug, text: &str) {
    assert_eq!(format!("{value:?}"), text);
}

/// Guards made by acquisitions that no trait knows.
pub fn by_hand() {
    let lock = RwLock::new(1);
    // SAFETY: the closures acquire the lock that they get, or fail.
    unsafe {
        let read = api::read_with(&lock, |raw| raw.try_read().ok_or("taken")).unwrap();
        assert_eq!(*read, 1);
        drop(read);
        let _writer = lock.write();
        let failed = api::read_with(&lock, |raw| raw.try_read().ok_or("taken"));
        assert_eq!(failed.err(), Some("taken"));
    }
    assert!(!lock.is_locked());
}

#[cfg(feature = "arc_lock")]
pub fn shares() {
    let lock = Arc::new(RwLock::new(0));
    let other = {
        let lock = Arc::clone(&lock);
        ulocks_testkit::thread::spawn(move || *lock.write_arc() += 1)
    };
    let mut guard = lock.upgradable_read_arc();
    guard.with_upgraded(|count| *count += 1);
    let guard = api::ArcRwLockUpgradableReadGuard::upgrade(guard);
    let guard = api::ArcRwLockWriteGuard::downgrade(guard);
    assert!(api::ArcRwLockReadGuard::rwlock(&guard).try_read_arc().is_some());
    drop(api::ArcRwLockReadGuard::into_arc(guard));
    other.join().unwrap();
    assert_eq!(*lock.read(), 2);
}

/// Has two implementations for a type that is `Send`, so that naming neither of them does not
/// compile.
trait AmbiguousIfSend<A> {
    const NOT_SEND: () = ();
}
enum Sendable {}
impl<T: ?Sized> AmbiguousIfSend<()> for T {}
impl<T: ?Sized + Send> AmbiguousIfSend<Sendable> for T {}

/// What can be sent and shared is the same in every world.
#[test]
fn guards_are_sync_and_not_send() {
    fn is_sync<T: Sync + ?Sized>() {}
    fn is_send<T: Send + ?Sized>() {}
    is_sync::<RwLock<u8>>();
    is_send::<RwLock<std::cell::Cell<u8>>>();
    is_sync::<RwLockReadGuard<'_, u8>>();
    is_sync::<RwLockWriteGuard<'_, u8>>();
    is_sync::<RwLockUpgradableReadGuard<'_, u8>>();
    is_sync::<MappedRwLockReadGuard<'_, str>>();
    is_sync::<MappedRwLockWriteGuard<'_, str>>();
    let () = <RwLockReadGuard<'_, u8> as AmbiguousIfSend<_>>::NOT_SEND;
    let () = <RwLockWriteGuard<'_, u8> as AmbiguousIfSend<_>>::NOT_SEND;
    let () = <RwLockUpgradableReadGuard<'_, u8> as AmbiguousIfSend<_>>::NOT_SEND;
    let () = <MappedRwLockReadGuard<'_, u8> as AmbiguousIfSend<_>>::NOT_SEND;
    let () = <MappedRwLockWriteGuard<'_, u8> as AmbiguousIfSend<_>>::NOT_SEND;
    #[cfg(feature = "arc_lock")]
    {
        let () = <api::ArcRwLockReadGuard<PlainRw, u8> as AmbiguousIfSend<_>>::NOT_SEND;
        let () = <api::ArcRwLockWriteGuard<PlainRw, u8> as AmbiguousIfSend<_>>::NOT_SEND;
    }
}

#[test]
fn guards_pass_for_those_of_a_shorter_life() {
    fn shortened<'short, 'long: 'short>(guard: RwLockReadGuard<'long, u8>) -> RwLockReadGuard<'short, u8> {
        guard
    }
    // Only that it compiles.
    let _ = shortened;
}
