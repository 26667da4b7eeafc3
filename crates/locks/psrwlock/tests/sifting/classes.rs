//! A reader of a higher class is never delayed by a writer that waits for readers of a lower one.

use crate::threads::{until, with};
use std::thread;
use ulocks_core::Private;
use ulocks_core::spin::NoSpin;
use ulocks_psrwlock::{
    BULK, ByClass, Distributed, HANDLER, NESTED, Nested, PhaseFair, PsRwLock, PsRwLockWith, Sifted, URGENT,
    Urgent,
};

/// What `test` says for each of the disciplines that have all classes of threads.
macro_rules! with_each {
    ($name:literal, $test:ident) => {
        with($name, PsRwLock::new(0), |lock| $test!(lock));
        with(
            $name,
            PsRwLockWith::<u32, Sifted<{ BULK | URGENT | NESTED }, Private<NoSpin>>>::new(0),
            |lock| $test!(lock),
        );
        with($name, PsRwLockWith::<u32, Sifted<{ BULK | URGENT | NESTED | HANDLER }>>::new(0), |lock| {
            $test!(lock)
        });
        type AtSlots = Sifted<{ BULK | URGENT | NESTED }, Private, PhaseFair, Distributed<2>>;
        with($name, PsRwLockWith::<u32, AtSlots>::new(0), |lock| $test!(lock));
    };
}

#[test]
fn a_writer_that_waits_for_slow_readers_lets_the_others_in() {
    macro_rules! test {
        ($lock:ident) => {
            thread::scope(|scope| {
                let slow = $lock.read();
                let writer = scope.spawn(|| *$lock.write() += 1);
                until(|| $lock.state().level() == 1);
                for _ in 0..3 {
                    assert!($lock.try_read().is_none(), "shut out");
                    // On a thread that holds nothing, and so that it would wait.
                    scope
                        .spawn(|| assert_eq!(*$lock.read_in::<Urgent>() + *$lock.read_in::<Nested>(), 0))
                        .join()
                        .unwrap();
                    assert!(
                        $lock.try_read_in::<Urgent>().is_some() && $lock.try_read_in::<Nested>().is_some()
                    );
                }
                assert_eq!($lock.state().level(), 1, "the others do not bring the writer on");
                drop(slow);
                writer.join().unwrap();
                assert_eq!(*$lock.read(), 1);
            })
        };
    }
    with_each!("slow readers", test);
}

#[test]
fn a_writer_shuts_out_one_class_after_the_other() {
    macro_rules! test {
        ($lock:ident) => {
            thread::scope(|scope| {
                let (slow, urgent, nested) =
                    ($lock.read(), $lock.read_in::<Urgent>(), $lock.read_in::<Nested>());
                let writer = scope.spawn(|| *$lock.write() += 1);
                let open = || {
                    let urgent = $lock.try_read_in::<Urgent>().is_some();
                    [$lock.try_read().is_some(), urgent, $lock.try_read_in::<Nested>().is_some()]
                };
                until(|| $lock.state().level() == 1);
                assert_eq!(open(), [false, true, true]);
                drop(slow);
                until(|| $lock.state().level() == 2);
                assert_eq!(open(), [false, false, true]);
                drop(urgent);
                until(|| $lock.state().level() == 3);
                assert_eq!(open(), [false, false, false]);
                assert!(!writer.is_finished() && *nested == 0);
                drop(nested);
                writer.join().unwrap();
            })
        };
    }
    with_each!("one after the other", test);
}

#[test]
fn who_is_inside_gets_in_again_upwards() {
    macro_rules! test {
        ($lock:ident) => {
            thread::scope(|scope| {
                let lowest = $lock.read();
                let writer = scope.spawn(|| *$lock.write() += 1);
                until(|| $lock.state().level() == 1);
                let higher = $lock.read_in::<Urgent>();
                let highest = $lock.read_in::<Nested>();
                drop(lowest);
                until(|| $lock.state().level() == 2);
                assert_eq!(*$lock.try_read_in::<Nested>().unwrap() + *higher + *highest, 0);
                drop(higher);
                drop(highest);
                writer.join().unwrap();
            })
        };
    }
    with_each!("upwards", test);
}

/// The classes are counted apart: a crowd of one neither fills nor empties another.
#[test]
fn readers_of_all_classes_are_inside_together() {
    macro_rules! test {
        ($lock:ident) => {{
            let low: Vec<_> = (0..1_000).map(|_| $lock.try_read().expect("open")).collect();
            let high: Vec<_> = (0..1_000).map(|_| $lock.try_read_in::<Nested>().expect("open")).collect();
            assert!($lock.try_write().is_none());
            drop(low);
            assert!($lock.try_write().is_none());
            drop(high);
            *$lock.try_write().expect("empty") += 1;
        }};
    }
    with_each!("together", test);
}
