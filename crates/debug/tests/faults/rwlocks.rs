//! Faults in the use of one reader-writer lock.

use crate::executor::run;
use crate::harness::{breaks, fault};
use crate::misuse::forks;
use crate::{Fault, dropped, ends, twice};
use std::mem::{self, ManuallyDrop};
use std::sync::Arc;
use ulocks_core::api::Token;
use ulocks_core::raw::RawRwLock;
use ulocks_core::task::AsyncRwLock;
use ulocks_debug::*;
use ulocks_psrwlock::{Bulk, Nested, RawPsRwLock, Urgent};
use ulocks_testkit::open::Open;

pub const TABLE: &[Fault] = &[
    ("write while reading", || {
        let lock = RwLock::new(());
        let (held, before) = (lock.read(), line!());
        breaks(|| drop(lock.write()));
        let here = line!() - 1;
        drop(held);
        is_free(&lock);
        vec![fault(Rule::NoRecursion, here, before)]
    }),
    twice! { "write while reading in a higher class", NoRecursion [lock = PsRwLock::new(())]
    lock.read_in::<Urgent>();
    lock.write() },
    ("read while writing", || {
        let lock = RwLock::new(());
        let (held, before) = (lock.write(), line!());
        breaks(|| drop(lock.read()));
        let here = line!() - 1;
        breaks(|| drop(lock.read_in::<Nested>()));
        drop(held);
        is_free(&lock);
        vec![fault(Rule::NoRecursion, here, before), fault(Rule::NoRecursion, here + 2, before)]
    }),
    twice! { "write while writing", NoRecursion [lock = RwLock::new(())]
    lock.try_write().unwrap();
    lock.write() },
    ("read again", || {
        let lock = RwLock::new(());
        let (held, before) = (lock.read(), line!());
        // No writer is there. With one between the two it would deadlock.
        breaks(|| drop(lock.read()));
        let here = line!() - 1;
        drop(held);
        is_free(&lock);
        vec![fault(Rule::NoReadAgain, here, before)]
    }),
    ("read again, below", || {
        let lock = RwLock::new(());
        let (_held, before) = (lock.read_in::<Nested>(), line!());
        breaks(|| drop(lock.read_in::<Urgent>()));
        let here = line!() - 1;
        breaks(|| drop(lock.read()));
        vec![fault(Rule::NoReadAgain, here, before), fault(Rule::NoReadAgain, here + 2, before)]
    }),
    ("read again, beside two others", || {
        let lock = RwLock::new(());
        let _bulk = lock.read();
        let (urgent, before) = (lock.read_in::<Urgent>(), line!());
        let nested = lock.read_in::<Nested>();
        drop(nested);
        // The read of the lowest class does not keep it waiting, and that of the same class does.
        breaks(|| drop(lock.read_in::<Urgent>()));
        let here = line!() - 1;
        drop(urgent);
        drop(lock.read_in::<Urgent>());
        vec![fault(Rule::NoReadAgain, here, before)]
    }),
    twice! { "read again after the release of the first of two", NoReadAgain [lock = RwLock::new(()), bulk = lock.read()]
    (lock.read_in::<Urgent>(), drop(bulk));
    lock.read() },
    twice! { "read again after a try", NoReadAgain [lock = RwLock::new(())]
    [(); 2].map(|()| lock.try_read().unwrap());
    lock.read() },
    ("read again after a forgotten guard", || {
        let lock = ManuallyDrop::new(RwLock::new(()));
        let before = line!() + 1;
        mem::forget(lock.read());
        breaks(|| drop(lock.read()));
        let here = line!() - 1;
        // SAFETY: this thread has forgotten a guard.
        unsafe { lock.force_unlock_read(read_token()) };
        is_free(&lock);
        vec![fault(Rule::NoReadAgain, here, before)]
    }),
    twice! { "upgradable while reading", NoRecursion [lock = RwLock::new(())]
    lock.read();
    lock.upgradable_read() },
    twice! { "upgradable twice", NoRecursion [lock = RwLock::new(())]
    lock.upgradable_read();
    lock.upgradable_read() },
    twice! { "write while upgradable", NoRecursion [lock = RwLock::new(())]
    lock.upgradable_read();
    lock.write() },
    ("an upgrade beside a read of its own", || {
        let lock = RwLock::new(());
        let upgradable = lock.upgradable_read();
        let (held, before) = (lock.read_in::<Urgent>(), line!());
        breaks(|| drop(RwLockUpgradableReadGuard::upgrade(upgradable)));
        let here = line!() - 1;
        assert!(!lock.is_locked_exclusive());
        assert_eq!(crate::deadlocks::held_by_me(), 1, "the upgradable access is released");
        drop(held);
        is_free(&lock);
        vec![fault(Rule::NoRecursion, here, before)]
    }),
    twice! { "write after a downgrade", NoRecursion [lock = RwLock::new(())]
    RwLockWriteGuard::downgrade(lock.write());
    lock.write() },
    ("read after an upgrade", || {
        let lock = RwLock::new(());
        let upgradable = lock.upgradable_read();
        drop(lock.read());
        let (_held, before) = (RwLockUpgradableReadGuard::upgrade(upgradable), line!());
        breaks(|| drop(lock.read()));
        let here = line!() - 1;
        vec![fault(Rule::NoRecursion, here, before)]
    }),
    ("a read is released twice", || {
        let lock = RwLock::new(());
        drop(lock.read());
        // SAFETY: a planted fault; the checker does not pass it on.
        breaks(|| unsafe { lock.force_unlock_read(read_token()) });
        let here = line!() - 1;
        is_free(&lock);
        vec![fault(Rule::ReleasedOnce, here, None)]
    }),
    ("a thread releases what a task reads", || {
        let lock = RwLock::new(());
        let mut reads = None;
        run(vec![Box::pin(async { reads = Some(lock.read_async().await) })]);
        // SAFETY: a planted fault; the checker does not pass it on.
        breaks(|| unsafe { lock.force_unlock_read(read_token()) });
        let here = line!() - 1;
        assert!(lock.is_locked() && reads.is_some(), "the task reads still");
        drop(reads);
        is_free(&lock);
        vec![fault(Rule::ReleasedOnce, here, None)]
    }),
    ("a thread reads again after the release of what a task reads", || {
        let lock = RwLock::new(());
        let mut reads = None;
        run(vec![Box::pin(async { reads = Some(lock.read_async().await) })]);
        let (mine, before) = (lock.read(), line!());
        drop(reads);
        breaks(|| drop(lock.read()));
        let here = line!() - 1;
        drop(mine);
        is_free(&lock);
        vec![fault(Rule::NoReadAgain, here, before)]
    }),
    ("a write is released twice", || {
        let lock = RwLock::new(());
        drop(lock.write());
        // SAFETY: a planted fault; the checker does not pass it on.
        breaks(|| unsafe { lock.force_unlock_write(Token::new(())) });
        let here = line!() - 1;
        is_free(&lock);
        vec![fault(Rule::ReleasedOnce, here, None)]
    }),
    ("a read is released by another thread", || {
        let lock = RwLock::new(());
        let (held, before) = (lock.read(), line!());
        let here = line!() + 3;
        std::thread::scope(|scope| {
            // SAFETY: a planted fault; the panic of the report keeps it from happening.
            let other = scope.spawn(|| _ = breaks(|| unsafe { lock.force_unlock_read(read_token()) }));
            other.join().unwrap();
        });
        assert!(lock.is_locked());
        drop(held);
        vec![fault(Rule::OwnerReleases, here, before)]
    }),
    ("a write is released by another thread", || {
        let lock = RwLock::new(());
        let (held, before) = (lock.write(), line!());
        let here = line!() + 3;
        std::thread::scope(|scope| {
            // SAFETY: a planted fault; the panic of the report keeps it from happening.
            let other = scope.spawn(|| _ = breaks(|| unsafe { lock.force_unlock_write(Token::new(())) }));
            other.join().unwrap();
        });
        assert!(lock.is_locked_exclusive());
        drop(held);
        vec![fault(Rule::OwnerReleases, here, before)]
    }),
    ("moved while it is read, then released", || {
        let lock = RwLock::new(());
        let before = line!() + 1;
        mem::forget(lock.read());
        let moved = ManuallyDrop::new(Box::new(lock));
        // SAFETY: the lock is held by this thread, at another address.
        breaks(|| unsafe { moved.force_unlock_read(read_token()) });
        let here = line!() - 1;
        vec![fault(Rule::NotMoved, here, before), fault(Rule::NoExit, None, before)]
    }),
    ("moved while it is read, then written", || {
        let lock = RwLock::new(());
        let before = line!() + 1;
        mem::forget(lock.read());
        let moved = ManuallyDrop::new(Box::new(lock));
        breaks(|| drop(moved.write()));
        let here = line!() - 1;
        vec![fault(Rule::NotMoved, here, before), fault(Rule::NoExit, None, before)]
    }),
    ends! { "a thread ends as a reader", [a = RwLock::new(())]
    a.read() },
    ("a thread ends as a writer, and upgradable", || {
        static LOCKS: [RwLock<u32>; 2] = [RwLock::new(0), RwLock::new(0)];
        let before = line!() + 1;
        mem::forget(LOCKS[0].write());
        mem::forget(LOCKS[1].upgradable_read());
        vec![fault(Rule::NoExit, None, before), fault(Rule::NoExit, None, before + 1)]
    }),
    dropped! { "dropped while it is read", [lock = RwLock::new(())]
    lock.read();
    drop(lock) },
    ("dropped while two other threads read it", || {
        let lock = Arc::new(RwLock::new(()));
        let (one, other) = (Arc::clone(&lock), Arc::clone(&lock));
        let before = line!() + 1;
        mem::forget(lock.read());
        // The first one is named. The clock of the lists steps every few milliseconds.
        std::thread::sleep(std::time::Duration::from_millis(20));
        let (say, hear) = std::sync::mpsc::channel();
        let (done, over) = std::sync::mpsc::channel::<()>();
        let reader = std::thread::spawn(move || {
            mem::forget(other.read_in::<Urgent>());
            drop(other);
            say.send(()).unwrap();
            _ = over.recv();
        });
        hear.recv().unwrap();
        drop(lock);
        std::thread::spawn(move || breaks(|| drop(one))).join().unwrap();
        // The lock is gone, and is in no list: the end of the other reader is no fault.
        drop(done);
        reader.join().unwrap();
        vec![fault(Rule::NotDropped, None, before)]
    }),
    ("dropped after its writer has ended", || {
        let lock = Arc::new(RwLock::new(()));
        let other = Arc::clone(&lock);
        let before = line!() + 1;
        std::thread::spawn(move || mem::forget(other.write())).join().unwrap();
        breaks(|| drop(lock));
        vec![fault(Rule::NoExit, None, before)]
    }),
    dropped! { "unwrapped while it is written", [lock = RwLock::new(3)]
    lock.write();
    lock.into_inner() },
    ("a writer beside a reader", || {
        let lock = CheckedRwLock::<Open, ()>::new(());
        let (held, before) = (lock.write(), line!());
        let here = line!() + 2;
        std::thread::scope(|scope| {
            let other = scope.spawn(|| breaks(|| drop(lock.read())));
            other.join().unwrap();
        });
        drop(held);
        vec![fault(Rule::OneHolder, here, before)]
    }),
    ("fork while reading", || {
        let lock = RwLock::new(());
        forks((lock.read(), line!()))
    }),
    ("a wait while reading", || {
        let (mutex, lock, changed) = (Mutex::new(()), RwLock::new(()), Condvar::new());
        let (_reads, before) = (lock.read(), line!());
        let (mut held, here) = (mutex.lock(), line!());
        changed.wait_for(&mut held, std::time::Duration::from_millis(1));
        vec![fault(Rule::NoLockInWait, here, before)]
    }),
    ("the sixty-fifth read lock", || {
        let locks: Vec<RwLock<()>> = (0..65).map(|_| RwLock::new(())).collect();
        let here = line!() + 1;
        let guards: Vec<_> = locks.iter().map(|lock| lock.read()).collect();
        assert_eq!(crate::deadlocks::held_by_me(), 64);
        drop(guards);
        assert_eq!(crate::deadlocks::held_by_me(), 0);
        locks.iter().for_each(|lock| assert!(!lock.is_locked()));
        vec![fault(Rule::AtMost64, here, None)]
    }),
];

/// The token of a reader, for a release by hand.
fn read_token() -> Token<CheckedReadToken<<RawPsRwLock as RawRwLock>::ReadToken>> {
    Token::new(CheckedReadToken::new(RawPsRwLock::<ulocks_psrwlock::Sifted>::token::<Bulk>()))
}

/// The lock is free, with no trace of what panicked.
fn is_free<T>(lock: &RwLock<T>) {
    assert!(!lock.is_locked());
    drop(lock.write());
}
