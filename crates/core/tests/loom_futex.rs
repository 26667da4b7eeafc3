//! The modelled futex itself: what a sleeper and a waker may rely on, and that a mutex with a bug
//! is caught.
//!
//! `RUSTFLAGS="--cfg ulocks_loom" cargo test --profile model --features loom -p ulocks-core --test
//! loom_futex`
#![cfg(world = "loom")]

mod outcomes;

use outcomes::Outcomes;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use loom::thread;
use ulocks_core::futex::{Futex, Local, Waited};
use ulocks_core::model::{self, Config, Grade};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicU32, UnsafeCell, interruption_point, spin_until};
use ulocks_core::time::Deadline;
use ulocks_testkit::thread::with;

type Word = Futex<Local>;

/// A number behind a word that is meant to keep others out.
struct Guarded {
    word: AtomicU32,
    data: UnsafeCell<u32>,
}

// SAFETY: nothing makes it so; whether two threads meet at `data` is for the model to find out, and
// it reports where.
unsafe impl Sync for Guarded {}
// SAFETY: both parts may be sent.
unsafe impl Send for Guarded {}

/// A bug that only shows if another thread comes between a spinner's fruitless look and what it
/// does afterwards.
#[test]
fn what_follows_a_fruitless_look_is_explored() {
    model::finds_bug_saying("Concurrent write", Config::bounded(3), || {
        let lock = Arc::new(Guarded { word: AtomicU32::new(0), data: UnsafeCell::new(0) });
        let round = |Guarded { word, data }: &Guarded| {
            while word.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
                let mut in_vain = false;
                spin_until(|| {
                    let free = word.load(Relaxed) == 0;
                    in_vain |= !free;
                    free
                });
                if in_vain {
                    word.swap(1, Acquire); // without a look at what it replaces
                    break;
                }
            }
            // SAFETY: an increment of a number; the model refutes that no other thread is here.
            data.with_mut(|data| unsafe { *data += 1 });
            word.swap(0, Release);
        };
        let threads: Vec<_> = (0..2).map(|_| with(&lock, move |lock| round(lock))).collect();
        round(&lock);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// A woken thread runs beside its waker, in every grade.
#[test]
fn the_woken_may_overtake_the_waker() {
    for grade in [Grade::Cheap, Grade::Exact, Grade::Unordered] {
        let outcomes = Outcomes::new();
        let seen = outcomes.clone();
        model::explore(Config { grade, ..Config::default() }, move || {
            let (word, ran) = (Arc::new(Word::new(0)), Arc::new(AtomicU32::new(0)));
            let sleeper = {
                let (word, ran) = (Arc::clone(&word), Arc::clone(&ran));
                thread::spawn(move || {
                    let waited = word.wait(0, None);
                    ran.swap(1, Relaxed);
                    waited
                })
            };
            word.swap(1, Relaxed);
            word.key().wake(1);
            let overtaken = ran.swap(2, Relaxed) == 1;
            seen.add((sleeper.join().unwrap() == Waited::Woken, overtaken));
        });
        outcomes.are([(true, true), (true, false), (false, true), (false, false)]);
    }
}

#[test]
fn a_wait_compares_with_the_newest_value() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::explore(Config::unbounded(), move || {
        let word = Arc::new(Word::new(0));
        let done = Arc::new(AtomicU32::new(0));
        let writer = {
            let (word, done) = (Arc::clone(&word), Arc::clone(&done));
            thread::spawn(move || {
                word.swap(1, Relaxed);
                done.swap(1, Relaxed);
            })
        };
        // A relaxed load could still read 0 here; the kernel does not.
        if done.load(Relaxed) == 1 {
            seen.add(word.load(Relaxed));
            assert_eq!(word.wait(0, None), Waited::Mismatch);
        }
        writer.join().unwrap();
    });
    outcomes.are([0, 1]);
}

#[test]
fn the_exact_grade_leaves_the_second_sleeper_asleep_and_the_cheap_one_wakes_everybody() {
    let one_of_two = || {
        let word = Arc::new(Word::new(0));
        let sleepers: Vec<_> = (0..2).map(|_| with(&word, |word| word.wait(0, None))).collect();
        word.swap(1, Relaxed);
        assert!(word.key().wake(1) <= 1);
        for sleeper in sleepers {
            sleeper.join().unwrap();
        }
    };
    model::finds_bug_saying("deadlock", Config::default(), one_of_two);
    model::explore(Config { grade: Grade::Cheap, ..Config::default() }, one_of_two);
}

#[test]
fn a_timed_wait_sleeps_or_expires_as_configured_when_nobody_wakes() {
    let nobody_wakes = || {
        let word = Word::new(0);
        let waited = word.wait(0, Some(Deadline::after(Duration::from_secs(1))));
        assert_eq!(waited, Waited::TimedOut);
    };
    model::finds_bug_saying("deadlock", Config::default(), nobody_wakes);
    model::finds_bug_saying("deadlock", Config::default(), || {
        Word::new(0).wait(0, None);
    });
    model::explore(Config { rest_expire: true, ..Config::default() }, nobody_wakes);
}

#[test]
fn masks_that_make_no_difference_are_left_out() {
    let config = Config { timeouts: 4, spurious: 4, ..Config::default() };
    let report = model::explore(config, || {
        let word = Word::new(0);
        let deadline = Deadline::after(Duration::from_secs(1));
        if !deadline.has_passed() {
            let _ = deadline.has_passed();
        }
        assert_eq!(word.wait(1, None), Waited::Mismatch);
    });
    // Passed at the first look, at the second, or at none.
    assert_eq!(report.masks, 3);
}

#[test]
#[should_panic = "the exploration was cut short: more than the 1 executions allowed"]
fn a_cut_exploration_has_failed() {
    model::explore(Config { max_executions: Some(1), ..Config::unbounded() }, || {
        let word = Arc::new(Word::new(0));
        let other = with(&word, |word| word.swap(1, Relaxed));
        word.swap(2, Relaxed);
        other.join().unwrap();
    });
}

#[test]
#[should_panic = "the model found no bug: 1 executions, 1 masks"]
fn a_bug_that_is_not_there_is_not_found() {
    model::finds_bug(Config::default(), || {});
}

#[test]
fn a_handler_runs_at_the_point_it_is_due() {
    for points in 0..3 {
        model::explore(Config::default(), move || {
            let (steps, struck_at) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(None)));
            let (so_far, strike) = (Rc::clone(&steps), Rc::clone(&struck_at));
            model::interrupt_at(points, move || strike.set(Some(so_far.get())));
            for step in 0..3 {
                steps.set(step);
                interruption_point();
            }
            assert_eq!(struck_at.get(), Some(points));
        });
    }
}

#[test]
fn a_signal_ends_a_timed_wait_and_restarts_another() {
    model::explore(Config::default(), || {
        let word = Rc::new(Word::new(0));
        let handled_by = Rc::clone(&word);
        model::interrupt_at(0, move || handled_by.store(1, Relaxed));
        assert_eq!(word.wait(0, Some(Deadline::NEVER)), Waited::Interrupted);

        let handled_by = Rc::clone(&word);
        model::interrupt_at(0, move || handled_by.store(2, Relaxed));
        assert_eq!(word.wait(1, None), Waited::Mismatch);
    });
}
