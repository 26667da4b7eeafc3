//! What the futex has on the virtual machine only: signals, several words, other processes.
//!
//! Where a model is explored exhaustively, the outcomes that are listed are all there are, and all
//! of them come about.
#![cfg(world = "vm")]

mod outcomes;

use outcomes::Outcomes;
use std::sync::Arc;
use std::time::Duration;

use ulocks_core::futex::{Futex, Global, Local, Scope, Waited, Waiter, WaitvError, WaitvOutcome, waitv};
use ulocks_core::model::process::{self, Region};
use ulocks_core::model::signal::{self, Signal};
use ulocks_core::model::thread::spawn;
use ulocks_core::model::{Config, explore, finds_bug_saying};
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::time::Deadline;
use ulocks_testkit::thread::with;

type Word = Futex<Local>;

fn word(value: u32) -> Arc<Word> {
    Arc::new(Word::new(value))
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_millis(1))
}

#[test]
fn a_signal_ends_a_timed_wait_and_restarts_another() {
    let usr1 = Signal::new(10);
    explore(Config::exhaustive(), move || {
        let word = word(0);
        let (handled, me) = (Arc::clone(&word), 0);
        signal::install(usr1, 0, move || handled.store(1, Relaxed));
        let other = with(&word, move |word| {
            if word.load(Relaxed) == 0 {
                signal::send(me, usr1);
            }
        });
        // The handler comes before the sleep, or ends it.
        let waited = word.wait(0, Some(Deadline::NEVER));
        assert!(matches!(waited, Waited::Interrupted | Waited::Mismatch), "{waited:?}");
        other.join().unwrap();

        // Without a deadline the wait begins again after the handler, and finds the word changed.
        let again = {
            let (handled, me) = (Arc::clone(&word), 0);
            signal::install(usr1, 0, move || handled.store(2, Relaxed));
            spawn(move || signal::send(me, usr1))
        };
        assert_eq!(word.wait(1, None), Waited::Mismatch);
        again.join().unwrap();
    });
}

#[test]
fn a_wait_on_several_ends_by_any_of_them() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    explore(Config::exhaustive(), move || {
        let words = Arc::new((Word::new(0), Futex::<Global>::new(5)));
        let waker = with(&words, |words| {
            words.1.store(6, Relaxed);
            words.1.key().wake(1)
        });
        let entries = [Waiter::new(&words.0, 0), Waiter::new(&words.1, 5)];
        let outcome = waitv(&entries, Some(soon())).unwrap();
        assert_eq!(waker.join().unwrap() == 1, outcome == WaitvOutcome::Woken(1));
        seen.add(outcome);
    });
    outcomes.are([WaitvOutcome::Woken(1), WaitvOutcome::Mismatch, WaitvOutcome::TimedOut]);
}

#[test]
fn a_wait_on_none_or_on_too_many_is_refused() {
    explore(Config::exhaustive(), || {
        let word = word(0);
        assert_eq!(waitv(&[], None), Err(WaitvError::Empty));
        assert_eq!(waitv(&vec![Waiter::new(&word, 0); 129], None), Err(WaitvError::TooMany(129)));
        assert_eq!(waitv(&vec![Waiter::new(&word, 1); 128], None), Ok(WaitvOutcome::Mismatch));
        let shown = format!("{:?}", Waiter::new(&word, 3));
        assert_eq!(shown, format!("Waiter({:#x} while 3)", word.key().address()));
    });
}

/// Sleeps in one process on a zeroed word of a region, and wakes from another, which has it at
/// another address.
fn across_processes<S: Scope>() {
    let region = Region::new(64);
    let (mine, theirs) = (region.map(), region.map());
    let sleeper = process::spawn(move || {
        // SAFETY: all-zero memory is a futex, and nothing else is there.
        let word = unsafe { theirs.at::<Futex<S>>(8) };
        word.wait(0, None)
    });
    // SAFETY: as above.
    let word = unsafe { mine.at::<Futex<S>>(8) };
    word.store(1, Relaxed);
    word.key().wake(1);
    sleeper.join().unwrap();
}

#[test]
fn a_shared_futex_is_the_same_at_all_its_addresses_and_a_private_one_is_not() {
    explore(Config::exhaustive(), across_processes::<Global>);
    finds_bug_saying("lost wake-up", Config::exhaustive(), across_processes::<Local>);
}
