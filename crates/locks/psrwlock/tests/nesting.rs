//! The detector of acquisitions that would wait for their own thread. What it finds panics, whether
//! a writer comes or not, and names both places. What is no deadlock, or ends by itself, is let be.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::mem::{ManuallyDrop, MaybeUninit, forget};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use ulocks_core::Private;
use ulocks_core::signal::Soft;
use ulocks_core::task::{AsyncRwLock as _, AsyncRwLockWriteGuard};
use ulocks_psrwlock::{
    BULK, Bulk, ByClass, Central, Checked, Eager, NESTED, Nested, Partial, PhaseFair,
    PsRwLockReadGuard as ReadGuard, PsRwLockUpgradableReadGuard as UpgradableGuard, PsRwLockWith,
    PsRwLockWriteGuard as WriteGuard, Readers, Sifted, State, URGENT, Unchecked, Urgent,
};
use ulocks_testkit as _;

const SHORT: Duration = Duration::from_millis(1);

/// A lock whose discipline checks, also without debug assertions.
type Lock<R = Central> =
    PsRwLockWith<u32, Sifted<{ BULK | URGENT | NESTED }, Private, PhaseFair, R, Soft, Checked>>;
/// One whose discipline does not, also with them.
type Careless =
    PsRwLockWith<u32, Sifted<{ BULK | URGENT | NESTED }, Private, PhaseFair, Central, Soft, Unchecked>>;

/// A lock with the slots of `R`.
fn new<R: Readers>() -> Lock<R> {
    Lock::new(0)
}

type AtSlots = Eager;

/// The message of the panic that `acquire` ends with.
fn message<R>(acquire: impl FnOnce() -> R) -> String {
    let panic = catch_unwind(AssertUnwindSafe(|| drop(acquire()))).expect_err("a thread waits for itself");
    *panic.downcast::<String>().expect("a message with places in it")
}

/// What the future of a task that need not wait returns.
fn ready<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(guard) => guard,
        Poll::Pending => panic!("it waits"),
    }
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
fn a_second_read_lock_of_the_same_class_or_a_lower_one() {
    fn test<R: Readers>() {
        let lock = new::<R>();
        let (held, at) = (lock.read(), line!());
        finds!(lock, at, "read", lock.read(), "read");
        finds!(lock, at, "read", lock.read_in::<Bulk>(), "read");
        drop(held);
        let (held, at) = (lock.read_in::<Nested>(), line!());
        finds!(lock, at, "Nested", lock.read_in::<Nested>(), "Nested");
        drop(held);
        assert_eq!(lock.state(), State::UNLOCKED, "what panicked has left nothing");
        // Nor one of a lower class.
        let (_held, at) = (lock.read_in::<Nested>(), line!());
        finds!(lock, at, "Nested", lock.read(), "read");
        finds!(lock, at, "Nested", lock.read_in::<Urgent>(), "Urgent");
    }
    with_each!(test);
}

#[test]
fn a_write_lock_after_a_read_lock() {
    fn test<R: Readers>() {
        let lock = new::<R>();
        let (held, at) = (lock.read(), line!());
        finds!(lock, at, "read", lock.write(), "write");
        finds!(lock, at, "read", lock.upgradable_read(), "upgradable");
        drop(held);
        let (held, at) = (lock.read_in::<Urgent>(), line!());
        finds!(lock, at, "Urgent", lock.write(), "write");
        drop(held);
        // What an attempt has acquired is entered like the rest.
        let (held, at) = (lock.try_read_for(SHORT).expect("free"), line!());
        finds!(lock, at, "read", lock.write(), "write");
        drop(held);
        *lock.write() += 1;
    }
    with_each!(test);
}

#[test]
fn a_read_lock_after_the_release_of_what_a_task_reads() {
    fn test<R: Readers>() {
        let lock = new::<R>();
        let turned = AsyncRwLockWriteGuard::downgrade(ready(lock.write_async()));
        let (held, at) = (lock.read(), line!());
        drop((ready(lock.read_async()), turned));
        finds!(lock, at, "read", lock.read(), "read");
        drop(held);
        let (held, at) = (lock.read_in::<Nested>(), line!());
        drop(ready(lock.read_in_async::<Nested>()));
        finds!(lock, at, "Nested", lock.read_in::<Nested>(), "Nested");
        drop(held);
        assert_eq!(lock.state(), State::UNLOCKED);
        drop(lock.write());
    }
    with_each!(test);
}

#[test]
fn any_lock_after_a_write_lock() {
    fn test<R: Readers>() {
        let lock = new::<R>();
        let (held, at) = (lock.write(), line!());
        finds!(lock, at, "write", lock.read(), "read");
        finds!(lock, at, "write", lock.read_in::<Nested>(), "Nested");
        finds!(lock, at, "write", lock.write(), "write");
        finds!(lock, at, "write", lock.upgradable_read(), "upgradable");
        drop(held);
        let (held, at) = (lock.try_write().expect("free"), line!());
        finds!(lock, at, "write", lock.read(), "read");
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
        finds!(lock, at, "read", Partial::exclude::<Bulk>(&mut upgradable), "write");
        finds!(lock, at, "read", Partial::exclude::<Urgent>(&mut upgradable), "write");
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
        finds!(lock, at, "upgradable", lock.read(), "read");
        finds!(lock, at, "upgradable", lock.read_in::<Urgent>(), "Urgent");
        drop(lock.read_in::<Nested>());
        Partial::admit(&mut upgradable);
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
        finds!(lock, at, "read", lock.read(), "read");
        assert!(lock.try_read_in::<Urgent>().is_some());
        drop(read);
        let write = lock.write();
        let (upgradable, at) = (WriteGuard::downgrade_to_upgradable(write), line!());
        finds!(lock, at, "upgradable", lock.write(), "write");
        let (write, at) = (UpgradableGuard::upgrade(upgradable), line!());
        finds!(lock, at, "write", lock.read(), "read");
        let upgradable = WriteGuard::downgrade_to_upgradable(write);
        let (write, at) = (UpgradableGuard::try_upgrade(upgradable).expect("alone"), line!());
        finds!(lock, at, "write", lock.read(), "read");
        let upgradable = WriteGuard::downgrade_to_upgradable(write);
        let (read, at) = (UpgradableGuard::downgrade(upgradable), line!());
        finds!(lock, at, "read", lock.write(), "write");
        drop(read);
        drop(lock.write());
    }
    with_each!(test);
}

/// The text names no class to a user that has chosen none, and says what to do.
#[test]
fn the_way_out_is_named() {
    fn ends<R>(acquire: impl FnOnce() -> R, end: &str) {
        let message = message(acquire);
        assert!(message.ends_with(end) && !message.contains("Bulk"), "{message}\nlacks\n{end}");
    }
    const ITSELF: &str = "; it would wait for itself: pass the guard down, or drop it first";
    let lock = new::<Central>();
    let between = "; a writer that comes between waits for this thread, and this thread for the writer: ";
    let held = lock.read();
    let inner = "use `read_in::<Nested>()` for the inner one, or pass the guard down";
    ends(|| lock.read(), &format!("{between}{inner}"));
    ends(|| lock.write(), ITSELF);
    ends(|| lock.upgradable_read(), ITSELF);
    drop(held);
    let held = lock.read_in::<Nested>();
    ends(|| lock.read(), &format!("{between}pass the guard down, since no class is above Nested"));
    drop(held);
    let held = lock.write();
    ends(|| lock.read(), ITSELF);
    ends(|| lock.write(), ITSELF);
    drop(held);
    let held = lock.upgradable_read();
    ends(|| lock.upgradable_read(), ITSELF);
    ends(|| lock.write(), "; it would wait for itself: use `RwLockUpgradableReadGuard::upgrade`");
    drop(held);
    drop(lock.write());
}

#[test]
fn debug_builds_check_by_default() {
    let lock = PsRwLockWith::<u32, Private>::new(0);
    let held = lock.read();
    let second = catch_unwind(AssertUnwindSafe(|| drop(lock.read())));
    assert_eq!(second.is_err(), cfg!(debug_assertions));
    drop(held);
    drop(lock.write());
}

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

/// The entry of a guard that was forgotten stays, and its lock's place may become another lock's,
/// which another thread holds in the way in which the old one was held.
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

/// The entry of a guard that was forgotten does not make a thread's of what a task has acquired.
#[test]
fn a_downgrade_of_a_task_beside_a_forgotten_guard_of_a_lock_that_is_gone() {
    fn test<R: Readers>() {
        let mut place = MaybeUninit::<Lock<R>>::uninit();
        forget(place.write(new::<R>()).write());
        let lock = &*place.write(new::<R>());
        let turned = AsyncRwLockWriteGuard::downgrade(ready(lock.write_async()));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (held, at) = (lock.read(), line!());
                drop(turned);
                finds!(lock, at, "read", lock.read(), "read");
                drop(held);
            });
        });
        drop(lock.write());
        assert_eq!(lock.state(), State::UNLOCKED);
    }
    std::thread::spawn(test::<Central>).join().unwrap();
    std::thread::spawn(test::<AtSlots>).join().unwrap();
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
