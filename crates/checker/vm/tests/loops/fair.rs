//! Loops that change something in each round and yield: their threads make way.

use crate::{completes, each, exhaustive, fails};
use core::future::poll_fn;
use core::task::Poll;
use std::sync::Arc;
use ulocks_vm::explore::{Config, run};
use ulocks_vm::future::block_on;
use ulocks_vm::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_vm::sync::{AtomicU32, Mutex, spin_until, yield_now};
use ulocks_vm::thread;

/// A flag, and a second word that each round of a wait for it changes.
#[derive(Default)]
struct Flag {
    is_set: AtomicU32,
    other: AtomicU32,
}

impl Flag {
    /// Looks under a try-lock.
    fn poll(&self) {
        loop {
            if self.other.compare_exchange(0, 1, AcqRel, Acquire).is_ok() {
                let is_set = self.is_set.load(Acquire);
                self.other.store(0, Release);
                if is_set == 1 {
                    return;
                }
            }
            yield_now();
        }
    }

    /// Counts its rounds.
    fn count(&self) {
        while self.is_set.load(Acquire) == 0 {
            self.other.fetch_add(1, Relaxed);
            yield_now();
        }
    }

    /// Looks once in so many yields.
    fn back_off(&self, yields: u32) {
        while self.is_set.load(Acquire) == 0 {
            for _ in 0..yields {
                yield_now();
            }
        }
    }
}

/// One thread sets the flag; `waiters` wait for it.
fn waiting(waiters: usize, wait: fn(&Flag)) -> impl Fn() + Clone + 'static {
    move || {
        each(
            waiters + 1,
            Flag::default(),
            move |flag: &Flag, me| {
                if me == 0 { flag.is_set.store(1, Release) } else { wait(flag) }
            },
        );
    }
}

#[test]
fn a_loop_that_stores_and_yields_ends() {
    for wait in [Flag::poll, Flag::count, |flag: &Flag| flag.back_off(64), |flag: &Flag| flag.back_off(257)] {
        let executions = completes(waiting(1, wait));
        assert!(executions < 20, "{executions}");
        for preemptions in [0, 1, 2] {
            let config = Config { preemptions: Some(preemptions), ..exhaustive() };
            let report = run(&config, waiting(1, wait)).unwrap_or_else(|failure| panic!("{failure}"));
            assert!(report.finished && report.executions < 20, "{report}");
        }
    }
}

#[test]
fn two_loops_that_store_and_yield_make_way_for_each_other_and_for_a_third() {
    for wait in [Flag::poll, Flag::count] {
        let config = Config { preemptions: Some(2), ..exhaustive() };
        let report = run(&config, waiting(2, wait)).unwrap_or_else(|failure| panic!("{failure}"));
        println!("{report}");
        assert!(report.finished, "{report}");
    }
}

#[test]
fn what_was_left_out_for_a_yield_is_reported() {
    let report = run(&exhaustive(), waiting(1, Flag::count)).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(report.bounds.yields.is_some_and(|hit| hit.at.file().ends_with("fair.rs")), "{report}");
    assert!(report.finished && !report.complete, "{report}");
}

/// As many rounds as there are free yields may come before another thread takes a step.
#[test]
fn the_first_yields_are_free() {
    let model = |rounds: u32| {
        move || {
            each(2, Flag::default(), move |flag: &Flag, me| {
                if me == 0 {
                    let before = flag.other.load(Relaxed);
                    assert_ne!(before, rounds, "it came that far");
                } else {
                    for _ in 0..rounds {
                        flag.other.fetch_add(1, Relaxed);
                        yield_now();
                    }
                }
            });
        }
    };
    for rounds in [1, 2] {
        fails("panic", model(rounds));
    }
    // The third round is that of a thread that has yielded twice, and made way the second time.
    assert!(run(&exhaustive(), model(3)).is_ok());
}

/// A loop that gives up after some looks changes nothing: none of its yields makes way.
#[test]
fn looks_that_are_counted_make_no_way() {
    fails("panic", || {
        each(2, Flag::default(), |flag: &Flag, me| {
            if me == 0 {
                flag.is_set.store(1, Release);
                return;
            }
            let found = (0..10).any(|_| {
                yield_now();
                flag.is_set.load(Acquire) == 1
            });
            assert!(found, "it gave up");
        });
    });
}

/// A thread makes way for one that can go then, and that another keeps from going before it has.
#[test]
fn one_that_gets_stuck_is_not_waited_for() {
    completes(|| {
        let state = (Flag::default(), Mutex::new(()));
        each(3, state, |(flag, mutex): &(Flag, Mutex<()>), me| match me {
            0 => drop(mutex.lock()),
            1 => {
                let _held = mutex.lock();
                while flag.is_set.load(Acquire) == 0 {
                    yield_now();
                }
            }
            _ => {
                for _ in 0..3 {
                    flag.other.fetch_add(1, Relaxed);
                    yield_now();
                }
                flag.is_set.store(1, Release);
            }
        });
    });
}

/// Nobody sets the flag: the loop has no end, and is told so.
#[test]
fn a_loop_that_nothing_ends_is_a_livelock() {
    let model = || {
        each(2, Flag::default(), |flag: &Flag, me| {
            if me == 1 {
                flag.count()
            }
        })
    };
    let failure = run(&exhaustive(), move || drop(model())).expect_err("it has no end");
    assert_eq!(failure.verdict.kind(), "livelock");
}

/// A task that wakes itself while another thread holds what it needs.
#[test]
fn a_task_that_wakes_itself_makes_way() {
    let report = run(&exhaustive(), || {
        let flag = Arc::new(Flag::default());
        let holder = {
            let flag = Arc::clone(&flag);
            thread::spawn(move || {
                flag.other.store(1, Relaxed);
                flag.is_set.store(1, Release);
            })
        };
        block_on(poll_fn(|context| {
            if flag.is_set.load(Acquire) == 1 {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        }));
        holder.join().unwrap();
    });
    let report = report.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(report.finished, "{report}");
}

/// A waiter looks once so that a fair yield may go on. It looks too early, and its execution counts
/// all the same: without the look the yield would not be fair.
#[test]
fn a_look_that_a_fair_yield_waits_for_leaves_nothing_out() {
    fails("panic", || {
        let words = Arc::new((AtomicU32::new(3), AtomicU32::new(0)));
        let counter = {
            let words = Arc::clone(&words);
            thread::spawn(move || {
                while words.0.load(Relaxed) > 0 {
                    words.0.fetch_sub(1, Relaxed);
                    yield_now();
                }
                words.1.store(1, Release);
                words.0.load(Relaxed)
            })
        };
        spin_until(|| words.1.load(Acquire) == 1);
        words.0.store(100, Relaxed);
        assert_eq!(counter.join().unwrap(), 0, "it saw what came after");
    });
}
