//! A thread that gives up leaves all as it was: those that it had shut out get in, and no thread
//! waits for it.

use crate::threads::{asleep, until, with};
use std::thread;
use std::time::{Duration, Instant};
use ulocks_core::Private;
use ulocks_core::spin::NoSpin;
use ulocks_psrwlock::{
    BULK, Bulk, ByClass, Distributed, NESTED, Nested, PhaseFair, PsRwLock, PsRwLockWith, Sifted, ThreadClass,
    URGENT, Urgent,
};

const SHORT: Duration = Duration::from_millis(2);
/// Long enough for others to fall asleep; if they are late, the test proves less and does not fail.
const LONGER: Duration = Duration::from_millis(30);

type Slots = Sifted<{ BULK | URGENT | NESTED }, Private, PhaseFair, Distributed<2>>;
type NoSpinning = Sifted<{ BULK | URGENT | NESTED }, Private<NoSpin>>;

/// A writer waits for a reader of class `C` and gives up: those that it has shut out, and threads
/// that sleep, get in beside that reader.
macro_rules! a_writer_gives_up {
    ($lock:ident, $class:ty, $level:literal) => {
        for _ in 0..3 {
            let reader = $lock.read_in::<$class>();
            thread::scope(|scope| {
                let writer = scope.spawn(|| assert!($lock.try_write_for(LONGER).is_none()));
                until(|| $lock.state().level() == $level || writer.is_finished());
                let bulk = scope.spawn(|| *$lock.read());
                let urgent = scope.spawn(|| *$lock.read_in::<Urgent>());
                let nested = scope.spawn(|| *$lock.read_in::<Nested>());
                writer.join().unwrap();
                for reader in [bulk, urgent, nested] {
                    assert_eq!(reader.join().unwrap(), 0);
                }
            });
            assert_eq!($lock.state().level(), 0);
            drop(reader);
            assert_eq!(*$lock.write(), 0);
        }
    };
}

#[test]
fn a_writer_that_gives_up_lets_in_whom_it_had_shut_out() {
    macro_rules! each_class {
        ($lock:expr) => {
            with("timed writer", $lock, |lock| {
                a_writer_gives_up!(lock, Bulk, 1);
                a_writer_gives_up!(lock, Urgent, 2);
                a_writer_gives_up!(lock, Nested, 3);
            })
        };
    }
    each_class!(PsRwLock::new(0));
    each_class!(PsRwLockWith::<u32, NoSpinning>::new(0));
    each_class!(PsRwLockWith::<u32, Slots>::new(0));
}

#[test]
fn a_writer_that_gives_up_behind_another_has_shut_nobody_out() {
    with("timed writer behind another", PsRwLock::new(0), |lock| {
        thread::scope(|scope| {
            let first = lock.write();
            let last = asleep(scope, || *lock.write() += 1);
            assert!(lock.try_write_for(SHORT).is_none() && lock.try_write_until(Instant::now()).is_none());
            assert!(lock.try_write().is_none() && lock.try_upgradable_read_for(SHORT).is_none());
            drop(first);
            last.join().unwrap();
        });
        assert_eq!(*lock.read(), 1);
    });
}

#[test]
fn a_reader_that_gives_up_is_in_nobody_s_way() {
    fn check<C: ThreadClass>(lock: &PsRwLock<u32>) {
        thread::scope(|scope| {
            let held = lock.write();
            let impatient = scope.spawn(|| assert!(lock.try_read_in_for::<C>(SHORT).is_none()));
            let patient = asleep(scope, || *lock.read_in::<C>());
            impatient.join().unwrap();
            assert!(
                lock.try_read_in_until::<C>(Instant::now()).is_none() && lock.try_read_in::<C>().is_none()
            );
            drop(held);
            assert_eq!(patient.join().unwrap(), 0);
        });
        // None is in line any more, so a writer needs no waiting, nor an attempt once the flag is
        // out.
        drop(lock.write());
        drop(lock.try_write().expect("nobody is there"));
    }
    with("timed reader", PsRwLock::new(0), |lock| {
        check::<Bulk>(lock);
        check::<Urgent>(lock);
        check::<Nested>(lock);
    });
}

/// The last of those in line gives up while the next writer waits for the line.
#[test]
fn a_line_that_gives_up_keeps_no_writer() {
    with("a line gives up", PsRwLockWith::<u32, NoSpinning>::new(0), |lock| {
        for round in 0..30_u32 {
            let held = lock.write();
            thread::scope(|scope| {
                let readers: Vec<_> = (0..3)
                    .map(|_| {
                        let patience = Duration::from_micros(u64::from(500 + 20 * round));
                        scope.spawn(move || _ = lock.try_read_for(patience).map(|value| *value))
                    })
                    .collect();
                let writer = asleep(scope, || *lock.write() += 1);
                thread::sleep(Duration::from_micros(400));
                drop(held);
                writer.join().unwrap();
                readers.into_iter().for_each(|reader| reader.join().unwrap());
            });
        }
        assert_eq!(*lock.read(), 30);
    });
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
