//! Histories that runs of the machine write, checked for linearizability.

#[allow(dead_code, reason = "other tests use the rest of them")]
mod locks;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use ulocks_vm::explore::{Config, Deaths, explore, finds_bug_saying};
use ulocks_vm::futex;
use ulocks_vm::linear::specs::{
    Queue, QueueCall, Register, RegisterCall, RwLock, RwLockCall, Semaphore, SemaphoreCall,
};
use ulocks_vm::linear::{Operation, Recorder};
use ulocks_vm::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_vm::sync::{AtomicU32, spin_until};

const NOT: &str = "not linearizable";

/// Memory as the specification has it: no load reads an old value.
fn newest(config: Config) -> Config {
    Config { stale: 0, ..config }
}

/// What a read returned, and how many writes had returned when it was called.
type Read = (u32, usize);

/// One thread writes 1 and 2, another reads twice; `told` is told of both reads.
fn register(told: impl Fn([Read; 2]) + 'static) -> impl Fn() + 'static {
    move || {
        let word = Arc::new(AtomicU32::new(0));
        let recorder = Recorder::new();
        let shared = recorder.clone();
        locks::together(2, move |thread| {
            for value in 1..=2 {
                if thread == 0 {
                    shared.record(RegisterCall::Write(value), || {
                        word.store(value, Relaxed);
                        None
                    });
                } else {
                    shared.record(RegisterCall::Read, || Some(word.load(Relaxed)));
                }
            }
        });
        let history = recorder.history().clone();
        let (reads, writes): (Vec<_>, Vec<_>) =
            history.operations().iter().partition(|operation| operation.call == RegisterCall::Read);
        let told_of = |read: &Operation<RegisterCall<u32>, Option<u32>>| {
            let value = read.returned.and_then(|(_, value)| value).expect("every read returned");
            let before =
                |write: &&&Operation<_, _>| write.returned.is_some_and(|(number, _)| number < read.called);
            (value, writes.iter().filter(before).count())
        };
        told([told_of(reads[0]), told_of(reads[1])]);
        recorder.check(&Register(0)).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Also under a strategy that leaves out orders of steps that make no difference to the machine:
/// when an operation begins makes one to the history.
#[test]
fn every_history_of_a_register_is_seen_and_explained() {
    let seen = Rc::new(RefCell::new(BTreeSet::new()));
    let told = Rc::clone(&seen);
    let model = register(move |reads| {
        told.borrow_mut().insert(reads);
    });
    explore(newest(Config::exhaustive()), model);
    // A write returns with its one step. So a read returns the number of writes that were made when
    // it was made, which is any number from that at its call to that at the next one's.
    let mut expected = BTreeSet::new();
    for first_called in 0..=2 {
        for first in first_called..=2 {
            for second_called in first..=2 {
                for second in second_called..=2 {
                    expected.insert([(first as u32, first_called), (second as u32, second_called)]);
                }
            }
        }
    }
    assert_eq!(*seen.borrow(), expected);
}

#[test]
fn a_stale_read_is_not_linearizable() {
    finds_bug_saying(NOT, Config::exhaustive(), register(|_| ()));
}

/// A bounded queue between two threads; the consumer waits.
fn queue(bug: Option<locks::ring::Bug>) -> impl Fn() + 'static {
    move || {
        let ring = Arc::new(locks::ring::Ring::new(2, bug));
        let recorder = Recorder::new();
        let shared = recorder.clone();
        locks::together(2, move |thread| {
            for value in 1..=3 {
                if thread == 0 {
                    shared.record(QueueCall::Push(value), || {
                        spin_until(|| ring.push(value));
                        None
                    });
                } else {
                    shared.record(QueueCall::Take, || {
                        let mut taken = None;
                        spin_until(|| {
                            taken = ring.pop();
                            taken.is_some()
                        });
                        taken
                    });
                }
            }
        });
        recorder.check(&Queue::new()).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn a_ring_is_a_queue() {
    explore(Config::sampled(2_000), queue(None));
}

/// A queue whose consumers look and then take: two of them may take the same value.
fn careless_queue() {
    let popped = Arc::new(AtomicU32::new(0));
    let recorder = Recorder::new();
    for value in 1..=2 {
        recorder.record(QueueCall::Push(value), || None);
    }
    let shared = recorder.clone();
    locks::together(2, move |_| {
        shared.record(QueueCall::Pop, || {
            let before = popped.load(Acquire);
            popped.store(before + 1, Release);
            Some(before + 1)
        });
    });
    recorder.check(&Queue::new()).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_value_that_leaves_twice_is_found() {
    let failure = finds_bug_saying(NOT, newest(Config::exhaustive()), careless_queue);
    assert!(failure.verdict.to_string().contains("Pop = Some(1)  <- cannot be explained"), "{failure}");
}

/// A semaphore of which several permits can be taken at once, or one by one, which is wrong.
struct Permits {
    word: AtomicU32,
    one_by_one: bool,
}

impl Permits {
    fn try_acquire(&self, count: u32) -> bool {
        self.word.fetch_update(AcqRel, Relaxed, |permits| permits.checked_sub(count)).is_ok()
    }

    fn acquire(&self, count: u32) {
        if self.one_by_one && count > 1 {
            return (0..count).for_each(|_| self.acquire(1));
        }
        while !self.try_acquire(count) {
            let permits = self.word.load(Relaxed);
            if permits < count {
                futex::wait(&self.word, permits, u32::MAX, None, true);
            }
        }
    }

    fn release(&self, count: u32) {
        self.word.fetch_add(count, Release);
        futex::wake((&raw const self.word).addr(), u32::MAX, u32::MAX, true);
    }
}

/// One thread wants two permits at once, of which one is there; another wants one, and gives one.
fn semaphore(one_by_one: bool) -> impl Fn() + 'static {
    move || {
        let permits = Arc::new(Permits { word: AtomicU32::new(1), one_by_one });
        let recorder = Recorder::new();
        let shared = recorder.clone();
        locks::together(2, move |thread| {
            if thread == 0 {
                shared.record(SemaphoreCall::Acquire(2), || {
                    permits.acquire(2);
                    true
                });
            } else {
                shared.record(SemaphoreCall::TryAcquire(1), || permits.try_acquire(1));
                shared.record(SemaphoreCall::Release(2), || {
                    permits.release(2);
                    true
                });
            }
        });
        recorder.check(&Semaphore(1)).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn permits_are_taken_all_at_once() {
    explore(newest(Config::exhaustive()), semaphore(false));
    explore(newest(Config::sampled(2_000)), semaphore(false));
}

#[test]
fn permits_that_are_taken_one_by_one_are_found() {
    finds_bug_saying(NOT, newest(Config::exhaustive()), semaphore(true));
}

/// A reader-writer lock is linearizable whatever memory does: nothing in it may fail.
#[test]
fn a_reader_writer_lock_is_one() {
    let model = || {
        let lock = Arc::new(locks::psrwlock::PsRwLock::new(3, None));
        let recorder = Recorder::new();
        let shared = recorder.clone();
        locks::together(3, move |me| {
            let done = |call: RwLockCall, does: &dyn Fn()| {
                shared.record(call, || {
                    does();
                    true
                });
            };
            if me == 0 {
                done(RwLockCall::Write, &|| lock.write_lock(me));
                done(RwLockCall::WriteUnlock, &|| lock.write_unlock());
            } else {
                done(RwLockCall::Read, &|| lock.read_lock(me));
                done(RwLockCall::ReadUnlock, &|| lock.read_unlock());
            }
        });
        recorder.check(&RwLock).unwrap_or_else(|error| panic!("{error}"));
    };
    explore(Config::sampled(2_000), model);
}

/// A thread that dies leaves its operation open: it took effect or did not.
#[test]
fn an_operation_of_a_thread_that_died_is_open() {
    let open = Rc::new(RefCell::new([0_u32; 3]));
    let told = Rc::clone(&open);
    let model = move || {
        let permits = Arc::new(Permits { word: AtomicU32::new(0), one_by_one: false });
        let recorder = Recorder::new();
        let mortal = {
            let (permits, recorder) = (Arc::clone(&permits), recorder.clone());
            ulocks_vm::thread::spawn(move || {
                recorder.record(SemaphoreCall::Release(1), || {
                    permits.release(1);
                    true
                })
            })
        };
        let died = mortal.join().is_err();
        let got = recorder.record(SemaphoreCall::TryAcquire(1), || permits.try_acquire(1));
        let order = recorder.check(&Semaphore(0)).unwrap_or_else(|error| panic!("{error}"));
        let history = recorder.history().clone();
        let is_open = history.operations().iter().any(|operation| operation.returned.is_none());
        assert!(died || !is_open, "who lives returns");
        if is_open {
            told.borrow_mut()[usize::from(got)] += 1;
            assert_eq!(
                order.sequence().len(),
                1 + usize::from(got),
                "it took effect if and only if it was felt"
            );
        } else if died {
            told.borrow_mut()[2] += 1;
        }
    };
    explore(newest(Config { deaths: Deaths::Threads(1), ..Config::exhaustive() }), model);
    let [without, with, before_or_after] = *open.borrow();
    assert!(without > 0 && with > 0 && before_or_after > 0, "{without}, {with}, {before_or_after}");
}
