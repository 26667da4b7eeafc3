//! Parking, scopes, and variables of a thread.

use crate::{Plain, all_outcomes};
use std::cell::{Cell, RefCell};
use std::time::Duration;
use ulocks_vm::explore::{Config, explore, finds_bug_saying};
use ulocks_vm::sync::{Arc, AtomicU32, Ordering::Relaxed};
use ulocks_vm::thread;

#[test]
fn a_token_is_kept_and_orders() {
    explore(Config::exhaustive(), || {
        let data = Arc::new(Plain::default());
        let me = thread::current();
        let other = {
            let data = Arc::clone(&data);
            thread::spawn(move || {
                data.add(1);
                thread::unpark(me);
            })
        };
        thread::park();
        assert_eq!(data.get(), 1);
        other.join().unwrap();
    });
}

#[test]
fn a_second_park_needs_a_second_token() {
    finds_bug_saying("deadlock", Config::exhaustive(), || {
        thread::unpark(0);
        thread::unpark(0);
        thread::park();
        thread::park();
    });
    explore(Config::exhaustive(), || thread::park_timeout(Duration::from_millis(1)));
}

#[test]
fn threads_of_a_scope_borrow_and_are_joined() {
    let model = || {
        let (data, word) = (Plain::default(), AtomicU32::new(0));
        let seen = thread::scope(|scope| {
            scope.spawn(|| data.add(1));
            let other = scope.spawn(|| word.swap(1, Relaxed));
            (word.swap(2, Relaxed), other.join().unwrap())
        });
        assert_eq!(data.get(), 1);
        seen
    };
    all_outcomes(model, [(0, 2), (1, 0)]);
}

ulocks_vm::thread_local! {
    static NUMBER: Cell<u32> = Cell::new(7);
    static KEPT: RefCell<Option<Noted>> = const { RefCell::new(None) };
}

/// Counts its drops in a word of the execution.
struct Noted(Arc<AtomicU32>);

impl Drop for Noted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
        assert!(KEPT.try_with(|_| ()).is_err(), "the variable is gone by now");
    }
}

#[test]
fn each_thread_has_its_own_variables_and_drops_them() {
    explore(Config::exhaustive(), || {
        let drops = Arc::new(AtomicU32::new(0));
        NUMBER.set_to(1);
        let other = {
            let drops = Arc::clone(&drops);
            thread::spawn(move || {
                assert_eq!(NUMBER.with(Cell::get), 7);
                KEPT.with_borrow_mut(|kept| *kept = Some(Noted(drops)));
            })
        };
        other.join().unwrap();
        assert_eq!(drops.load(Relaxed), 1);
        assert_eq!(NUMBER.with(Cell::get), 1);
    });
}

/// A value that notes in which order its like go, and may use another one as it goes.
struct Goes(&'static str, Option<&'static thread::LocalKey<Goes>>);

std::thread_local! {
    /// The variables that have gone, in this execution.
    static GONE: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) };
}

impl Drop for Goes {
    fn drop(&mut self) {
        GONE.with_borrow_mut(|gone| gone.push(self.0));
        if let Some(other) = self.1 {
            other.with(|_| ());
        }
    }
}

ulocks_vm::thread_local! {
    static FIRST: Goes = Goes("first", None);
    static SECOND: Goes = Goes("second", Some(&LATE));
    static THIRD: Goes = Goes("third", None);
    static LATE: Goes = Goes("late", None);
}

/// The order in which std destroys them on Linux.
#[test]
fn variables_that_were_made_last_go_first() {
    explore(Config::exhaustive(), || {
        GONE.take();
        let made = || [&FIRST, &SECOND, &THIRD].map(|key| key.with(|_| ()));
        thread::spawn(made).join().unwrap();
        assert_eq!(GONE.take(), ["third", "second", "late", "first"]);
    });
}

trait SetTo {
    fn set_to(&'static self, number: u32);
}

impl SetTo for thread::LocalKey<Cell<u32>> {
    fn set_to(&'static self, number: u32) {
        self.with(|cell| cell.set(number));
    }
}

#[test]
fn a_thread_with_a_name_runs() {
    explore(Config::exhaustive(), || {
        let builder = thread::Builder::new().name("worker".into()).stack_size(1 << 20);
        assert_eq!(builder.name_of(), Some("worker"));
        let handle = builder.spawn(|| 3).unwrap();
        assert_eq!(handle.join().unwrap(), 3);
        thread::sleep(Duration::from_millis(1));
    });
}

/// Whether a thread has returned is asked at each of its steps, and orders nothing.
#[test]
fn a_thread_is_finished_or_not_whatever_else_is_seen() {
    let model = || {
        let word = Arc::new(AtomicU32::new(0));
        let other = Arc::clone(&word);
        let other = thread::spawn(move || other.store(1, Relaxed));
        let seen = (word.load(Relaxed), other.is_finished(), word.load(Relaxed));
        other.join().unwrap();
        seen
    };
    all_outcomes(
        model,
        [(0, false, 0), (0, false, 1), (0, true, 0), (0, true, 1), (1, false, 1), (1, true, 1)],
    );
    let model = || {
        let other = thread::spawn(|| ());
        let seen = (other.is_finished(), other.is_finished());
        other.join().unwrap();
        seen
    };
    all_outcomes(model, [(false, false), (false, true), (true, true)]);
}

#[test]
fn a_thread_is_finished_after_a_step_that_nobody_else_sees() {
    let model = || {
        let other = thread::spawn(|| AtomicU32::new(0).store(1, Relaxed));
        let is_finished = other.is_finished();
        other.join().unwrap();
        is_finished
    };
    all_outcomes(model, [false, true]);
}

#[test]
fn a_loop_until_a_thread_is_finished_ends() {
    let model = |config: Config| {
        explore(config, || {
            let word = Arc::new(AtomicU32::new(0));
            let swap = |word: &Arc<AtomicU32>| {
                let word = Arc::clone(word);
                thread::spawn(move || word.swap(1, Relaxed))
            };
            let (first, second) = (swap(&word), swap(&word));
            while !first.is_finished() {
                thread::yield_now();
            }
            while !second.is_finished() {}
            let swapped = first.join().unwrap() + second.join().unwrap();
            assert_eq!((swapped, word.load(Relaxed)), (1, 1));
        });
    };
    model(Config::exhaustive());
    model(Config { stale: 0, ..Config::exhaustive() });
    (0..4).for_each(|most| model(Config { preemptions: Some(most), ..Config::exhaustive() }));
    model(Config::default());
}

#[test]
fn that_a_thread_is_finished_does_not_order_what_it_did() {
    let failure = finds_bug_saying("data race", Config::exhaustive(), || {
        let data = Arc::new(Plain::default());
        let other = Arc::clone(&data);
        let other = thread::spawn(move || other.add(1));
        if other.is_finished() {
            data.get();
        }
        other.join().unwrap();
    });
    let text = failure.verdict.to_string();
    assert!(text.contains("reads returned") && text.contains("the load is Relaxed"), "{text}");
}

/// A result that says which thread drops it, while that still has its variables.
struct Result(Arc<AtomicU32>);

impl Drop for Result {
    fn drop(&mut self) {
        self.0.store(NOTED.with(|noted| noted.0), Relaxed);
    }
}

/// What is destroyed at the end of a thread.
struct Note(u32);

impl Drop for Note {
    fn drop(&mut self) {}
}

ulocks_vm::thread_local! {
    static NOTED: Note = Note(1 + thread::current() as u32);
}

#[test]
fn what_a_thread_returns_is_dropped_by_the_thread_or_with_its_handle() {
    let model = || {
        let word = Arc::new(AtomicU32::new(0));
        let other = Arc::clone(&word);
        let other = thread::spawn(move || Result(other));
        word.load(Relaxed);
        drop(other);
        word.load(Relaxed)
    };
    all_outcomes(model, [0, 1, 2]);
}

/// The last of the two to go knows what the other did.
#[test]
fn a_result_may_be_dropped_with_its_handle() {
    explore(Config::exhaustive(), || {
        let words = || (0..2).map(AtomicU32::new).collect::<Vec<_>>();
        let other = thread::spawn(words);
        AtomicU32::new(0).store(1, Relaxed);
        drop(other);
        thread::scope(|scope| drop(scope.spawn(words)));
    });
}

/// Looks at a variable that was made after it.
struct Looks;

impl Drop for Looks {
    fn drop(&mut self) {
        NUMBER.with(|number| assert_eq!(number.get(), 8));
    }
}

ulocks_vm::thread_local! {
    static LOOKS: Looks = Looks;
}

/// As those of std, whose `Cell<u32>` has nothing to destroy.
#[test]
fn a_variable_without_a_drop_is_there_to_the_end_of_its_thread() {
    explore(Config::exhaustive(), || {
        let uses = || {
            LOOKS.with(|_| ());
            NUMBER.set_to(8);
        };
        thread::spawn(uses).join().unwrap();
        uses();
    });
}
