//! Readers and writers in turn: by how many writes a waiter in line is passed, counted and not
//! timed.

use crate::threads::{asleep, with};
use std::thread;
use ulocks_core::spin::NoSpin;
use ulocks_core::{Policy, Private};
use ulocks_psrwlock::{
    BULK, Bulk, Central, Configuration, Distributed, Fairness, HANDLER, NESTED, Nested, PhaseFair,
    PsRwLockWith, PsRwLockWriteGuard as WriteGuard, Readers, Sifted, ThreadClass, URGENT, Urgent,
    WriterBatch,
};
use ulocks_psrwlock::{ByClass, State};

const WRITERS: u32 = 5;
const ROUNDS: u32 = 20;

type Lock<F, R, P> = PsRwLockWith<u32, Sifted<{ BULK | URGENT | NESTED }, P, F, R>>;

/// A reader of class `C` waits in line while one writer is inside and others queue. Returns by how
/// many of those it was passed, at most.
fn passed<C: ThreadClass, D: Configuration>(lock: &PsRwLockWith<u32, D>, fair: bool) -> u32 {
    let most = (0..ROUNDS).map(|_| {
        let mut first = lock.write();
        *first = 0;
        thread::scope(|scope| {
            let reader = asleep(scope, || *lock.read_in::<C>());
            assert!(lock.state().0 & (State::LOW | State::TOP) != 0, "it is in line");
            let writers: Vec<_> = (0..WRITERS).map(|_| asleep(scope, || *lock.write() += 1)).collect();
            if fair {
                WriteGuard::unlock_fair(first)
            } else {
                drop(first)
            }
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            reader.join().unwrap()
        })
    });
    most.max().unwrap()
}

fn check<F: Fairness, R: Readers, P: Policy>(name: &str) {
    with(name, Lock::<F, R, P>::new(0), |lock| {
        for fair in [false, true] {
            assert_eq!(passed::<Nested, _>(lock, fair), 0, "one write phase: the one that was on");
            for passed in [passed::<Urgent, _>(lock, fair), passed::<Bulk, _>(lock, fair)] {
                assert!(passed < F::BATCH, "{name}: passed by {passed} more");
            }
        }
    });
}

#[test]
fn a_reader_in_line_is_passed_by_one_write_phase() {
    check::<PhaseFair, Central, Private>("phase-fair");
    check::<PhaseFair, Central, Private<NoSpin>>("phase-fair, without spinning");
    check::<PhaseFair, Distributed<2>, Private>("phase-fair, at slots");
    check::<WriterBatch<1>, Central, Private>("a batch of one");
}

#[test]
fn a_reader_in_line_is_passed_by_one_batch() {
    check::<WriterBatch<3>, Central, Private<NoSpin>>("a batch of three");
    check::<WriterBatch<2>, Distributed<2>, Private>("a batch of two, at slots");
}

/// Which class is the top one depends on the lock.
#[test]
fn the_top_class_is_passed_by_one_write_phase_whichever_it_is() {
    type Four = Sifted<{ BULK | URGENT | NESTED | HANDLER }, Private, WriterBatch<3>>;
    type Two = Sifted<{ BULK | URGENT }, Private<NoSpin>, WriterBatch<3>>;
    type One = Sifted<BULK, Private<NoSpin>>;
    with("top of four", PsRwLockWith::<u32, Four>::new(0), |lock| {
        assert_eq!(passed::<Nested, _>(lock, false), 0);
        assert!(passed::<Urgent, _>(lock, false) < 3 && passed::<Bulk, _>(lock, true) < 3);
    });
    with("top of two", PsRwLockWith::<u32, Two>::new(0), |lock| {
        assert_eq!((passed::<Urgent, _>(lock, false), passed::<Urgent, _>(lock, true)), (0, 0));
        assert!(passed::<Bulk, _>(lock, false) < 3);
    });
    with("the only one", PsRwLockWith::<u32, One>::new(0), |lock| {
        assert_eq!((passed::<Bulk, _>(lock, false), passed::<Bulk, _>(lock, true)), (0, 0));
    });
}

#[test]
fn a_crowd_of_readers_in_line_goes_in_before_the_next_writer() {
    fn check<C: ThreadClass>(lock: &Lock<PhaseFair, Central, Private>) {
        for _ in 0..ROUNDS {
            let mut first = lock.write();
            *first = 0;
            thread::scope(|scope| {
                let readers: Vec<_> = (0..8).map(|_| asleep(scope, || *lock.read_in::<C>())).collect();
                let writers: Vec<_> = (0..3).map(|_| asleep(scope, || *lock.write() += 1)).collect();
                drop(first);
                assert!(readers.into_iter().all(|reader| reader.join().unwrap() == 0), "one was left behind");
                writers.into_iter().for_each(|writer| writer.join().unwrap());
            });
            assert_eq!(*lock.read(), 3);
        }
    }
    with("a crowd in line", Lock::new(0), |lock| {
        check::<Bulk>(lock);
        check::<Urgent>(lock);
        check::<Nested>(lock);
    });
}

/// While a writer waits for slow readers, those that sleep in line because of it are let in by the
/// next opening of the gate, and the line is not lost on the way.
#[test]
fn readers_of_all_classes_in_line_go_in_together() {
    with("all classes in line", Lock::<PhaseFair, Central, Private<NoSpin>>::new(0), |lock| {
        for _ in 0..ROUNDS {
            let mut first = lock.write();
            *first = 0;
            thread::scope(|scope| {
                let bulk = asleep(scope, || *lock.read());
                let urgent = asleep(scope, || *lock.read_in::<Urgent>());
                let nested = asleep(scope, || *lock.read_in::<Nested>());
                let writer = asleep(scope, || *lock.write() = 1);
                drop(first);
                for reader in [bulk, urgent, nested] {
                    assert_eq!(reader.join().unwrap(), 0);
                }
                writer.join().unwrap();
            });
        }
    });
}

/// A fair release keeps the write side for a writer that waits: a thread that comes at that very
/// moment is after it.
#[test]
fn a_fair_release_is_for_a_writer_that_waits() {
    with("fair release", Lock::<PhaseFair, Central, Private>::new(0), |lock| {
        for round in 0..ROUNDS {
            let held = lock.write();
            thread::scope(|scope| {
                let waits = asleep(scope, || *lock.write() += 1);
                WriteGuard::unlock_fair(held);
                assert_eq!(*lock.write(), round + 1, "the one that waited was first");
                waits.join().unwrap();
            });
            // As good with no thread there.
            WriteGuard::unlock_fair(lock.write());
            assert!(lock.try_write().is_some());
        }
    });
}
