//! Busy-waits: what lets a spinner go, what it sees then, and what no spinner is let go by.

use crate::locks::{Lock, Tas, ThreeStates, Ticket, Ttas, counting};
use crate::{all_outcomes, all_outcomes_of, failure, outcomes, shared, verdict, with};
use std::sync::Arc;
use std::time::Duration;
use ulocks_vm::clock::{Clock, Time, now};
use ulocks_vm::explore::{Config, Report, Strategy, Verdict, choose, explore, skip, stop};
use ulocks_vm::futex;
use ulocks_vm::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_vm::sync::{AtomicU32, Mutex, mpsc, spin_until};

#[test]
fn a_lock_that_spins_is_explored_to_its_end() {
    fn exhaustively<L: Lock>(threads: usize, rounds: usize) {
        assert!(explore(Config::exhaustive(), counting::<L>(threads, rounds)).finished);
    }
    exhaustively::<Ticket>(2, 2);
    exhaustively::<Ticket>(3, 1);
    exhaustively::<Ticket>(4, 1);
    exhaustively::<Ttas>(2, 2);
    exhaustively::<Tas>(2, 2);
    let newest = Config { stale: 0, ..Config::exhaustive() };
    explore(newest.clone(), counting::<Ttas>(3, 1));
    explore(newest, counting::<Tas>(3, 1));
}

/// There is one execution for each order of the owners. Those in which a thread has looked too
/// early are counted as redundant.
#[test]
fn a_fruitless_look_makes_no_execution_of_its_own() {
    let executions = |report: Report| {
        println!("{report}");
        report.executions
    };
    for (threads, orders) in [(2, 2), (3, 6), (4, 24)] {
        assert_eq!(executions(explore(Config::exhaustive(), counting::<Ticket>(threads, 1))), orders);
    }
    for (threads, orders) in [(2, 2), (3, 6)] {
        assert_eq!(executions(explore(Config::exhaustive(), counting::<Tas>(threads, 1))), orders);
    }
}

/// The first thread lets the second go, waits for it by looking, and may go wrong then.
fn wrong_after_a_wait() {
    let (go, gone) = mpsc::channel();
    let word = Arc::new(AtomicU32::new(0));
    let second = with(&word, move |word| {
        gone.recv().unwrap();
        word.store(1, Release);
    });
    go.send(()).unwrap();
    spin_until(|| word.load(Acquire) == 1);
    assert_eq!(choose(2), 0, "it came that far");
    second.join().unwrap();
}

#[test]
fn one_that_looked_too_early_goes_on_where_the_limit_leaves_nothing_else() {
    for preemptions in 0..2 {
        let config = Config { preemptions: Some(preemptions), ..Config::exhaustive() };
        assert_eq!(failure(&config, wrong_after_a_wait).verdict.kind(), "panic");
    }
}

#[test]
fn one_that_looked_too_early_goes_on_where_the_model_varies_nothing() {
    for steer in [skip, stop] {
        let report = explore(Config::exhaustive(), move || {
            steer();
            wrong_after_a_wait();
        });
        assert_eq!((report.executions, report.redundant), (1, 0));
    }
}

#[test]
fn no_false_alarm_with_many_threads() {
    for (threads, rounds) in [(2, 3), (3, 2), (5, 2), (16, 1)] {
        let config = || Config::sampled(4_000 / threads as u64);
        explore(config(), counting::<ThreeStates>(threads, rounds));
        explore(config(), counting::<Ticket>(threads, rounds));
        explore(config(), counting::<Ttas>(threads, rounds));
        explore(config(), counting::<Tas>(threads, rounds));
    }
}

/// A word goes from 0 to 1 and back; a spinner waits for what `until` says, if it waits that long.
fn for_a_moment() -> bool {
    let [seen, _] = shared((AtomicU32::new(0), AtomicU32::new(0))).threads([
        |(word, over)| {
            let mut seen = false;
            spin_until(|| {
                seen = word.load(Relaxed) == 1;
                seen || over.load(Relaxed) == 1
            });
            seen
        },
        |(word, over)| {
            word.store(1, Relaxed);
            word.store(0, Relaxed);
            over.store(1, Relaxed);
            false
        },
    ]);
    seen
}

#[test]
fn a_value_that_was_there_for_a_moment_is_seen_or_not() {
    all_outcomes(for_a_moment, [false, true]);
    all_outcomes_of(Config { stale: 0, ..Config::exhaustive() }, for_a_moment, [false, true]);
}

#[test]
fn a_spinner_that_saw_a_stale_value_is_not_stuck_with_it() {
    // The value is newer than the one it saw, but no store is to come.
    let model = || {
        let [seen, _] = shared((AtomicU32::new(0), AtomicU32::new(0))).threads([
            |(word, other)| {
                spin_until(|| word.load(Acquire) == 1);
                other.load(Relaxed)
            },
            |(word, other)| {
                other.store(5, Relaxed);
                word.store(1, Release);
                0
            },
        ]);
        seen
    };
    all_outcomes(model, [5]);
}

#[test]
fn what_a_spinner_waits_for_may_be_its_own_change() {
    all_outcomes(
        || {
            let word = AtomicU32::new(0);
            spin_until(|| word.fetch_add(1, Relaxed) == 3);
            word.load(Relaxed)
        },
        [4],
    );
}

#[test]
fn a_weak_exchange_that_fails_for_no_reason_is_tried_again() {
    let model = || {
        let word = AtomicU32::new(0);
        let mut looks = 0;
        spin_until(|| {
            looks += 1;
            word.compare_exchange_weak(0, 1, Relaxed, Relaxed).is_ok()
        });
        looks
    };
    all_outcomes(model, [1, 2]);
}

#[test]
fn a_round_that_saw_a_word_change_is_repeated() {
    // The reader of a sequence lock: what it read is good if no thread wrote meanwhile.
    let model = || {
        let [seen, _] = shared((AtomicU32::new(0), AtomicU32::new(0))).threads([
            |(sequence, data)| {
                let mut seen = 0;
                spin_until(|| {
                    let before = sequence.load(Acquire);
                    seen = data.load(Acquire);
                    before == sequence.load(Relaxed)
                });
                seen
            },
            |(sequence, data)| {
                data.store(1, Release);
                sequence.store(1, Release);
                0
            },
        ]);
        seen
    };
    all_outcomes(model, [0, 1]);
}

#[test]
fn a_spin_on_two_words_ends_when_either_changes() {
    for which in 0..2 {
        let model = move || {
            shared((which, [AtomicU32::new(0), AtomicU32::new(0)])).threads([
                |(_, words)| spin_until(|| words.iter().any(|word| word.load(Relaxed) == 1)),
                |(which, words)| words[*which].store(1, Relaxed),
            ]);
        };
        all_outcomes(model, [()]);
    }
}

#[test]
fn a_spin_that_nobody_ends_is_a_deadlock_that_names_the_word() {
    let model = || {
        let words = [AtomicU32::new(3), AtomicU32::new(4)];
        shared(words).threads([
            |words| spin_until(|| words[1].load(Relaxed) == 5),
            |words| words[0].store(5, Relaxed),
        ]);
    };
    match verdict(model) {
        Verdict::Deadlock(stuck) => {
            let text = stuck.to_string();
            assert!(text.contains("spins at ") && text.contains("spin.rs:"), "{text}");
            assert!(text.contains("having seen words[1] = 0x4"), "{text}");
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_spinner_is_not_let_go_by_the_same_value() {
    let model = || {
        shared(AtomicU32::new(0))
            .threads([|word| spin_until(|| word.load(Relaxed) == 1), |word| word.store(0, Relaxed)]);
    };
    assert!(matches!(verdict(model), Verdict::Deadlock(_)));
}

#[test]
fn a_spinner_that_reads_nothing_lets_others_go_first() {
    let model = || {
        let [seen, _] = shared(AtomicU32::new(0)).threads([
            |word| {
                let mut rounds = 0;
                spin_until(|| {
                    rounds += 1;
                    rounds == 3
                });
                word.load(Relaxed)
            },
            |word| {
                word.store(1, Relaxed);
                0
            },
        ]);
        seen
    };
    all_outcomes(model, [0, 1]);
}

/// What one thread waits for, two flags, and whether the other found the lock taken, saw the first
/// flag, and was seen by the second.
fn seen_of_a_wait_that_locks(wait: fn(&mut dyn FnMut() -> bool) -> bool) -> [bool; 3] {
    let state = Arc::new((Mutex::new(false), AtomicU32::new(0), AtomicU32::new(0)));
    let waiter = with(&state, move |state| {
        if !wait(&mut || *state.0.lock().unwrap()) {
            return 1;
        }
        state.1.store(1, Relaxed);
        state.2.load(Relaxed)
    });
    let is_taken = state.0.try_lock().is_err();
    *state.0.lock().unwrap() = true;
    state.2.store(1, Relaxed);
    let sees = state.1.load(Relaxed) == 1;
    [is_taken, sees, waiter.join().unwrap() == 1]
}

/// A round of the wait takes the lock for a moment, which the other thread may find.
#[test]
fn a_round_that_changes_something_for_a_moment_is_no_mere_look() {
    for stale in [0, 3] {
        let config = Config { stale, ..Config::exhaustive() };
        let spinning = outcomes(config.clone(), || {
            seen_of_a_wait_that_locks(|ready| {
                spin_until(ready);
                true
            })
        });
        let in_a_loop =
            outcomes(config.clone(), || seen_of_a_wait_that_locks(|ready| (0..3).any(|_| ready())));
        assert!(spinning.contains(&[true, true, true]) && in_a_loop.is_superset(&spinning), "{spinning:?}");
    }
}

/// Two threads that spin for a lock whose owner is dead look in turn, and in one order.
#[cfg(feature = "linux")]
#[test]
fn last_looks_are_not_tried_in_all_orders() {
    use ulocks_vm::explore::{Deaths, Survivors};

    let (deaths, survivors) = (Deaths::At { thread: 1, step: 1 }, Survivors::MayBlock);
    let report = explore(Config { deaths, survivors, ..Config::exhaustive() }, || {
        let word = Arc::new(AtomicU32::new(0));
        let all: Vec<_> = (0..3)
            .map(|_| {
                with(&word, |word| {
                    while word.swap(1, Acquire) == 1 {}
                    word.store(0, Release);
                })
            })
            .collect();
        all.into_iter().for_each(|thread| drop(thread.join()));
    });
    assert!(report.finished && report.executions < 2_000, "{report}");
}

/// A spin lock inside of a round: the wait around it still knows what it has looked at.
#[test]
fn a_wait_inside_of_a_round_of_another_ends() {
    let model = |is_set: bool| {
        move || {
            let words = Arc::new((AtomicU32::new(0), AtomicU32::new(0)));
            let with_lock = |words: &(AtomicU32, AtomicU32), body: &dyn Fn(&AtomicU32) -> bool| {
                spin_until(|| words.0.swap(1, Acquire) == 0);
                let answer = body(&words.1);
                words.0.store(0, Release);
                answer
            };
            let other = with(&words, move |words| {
                with_lock(words, &|flag| {
                    flag.store(u32::from(is_set), Relaxed);
                    true
                })
            });
            spin_until(|| with_lock(&words, &|flag| flag.load(Relaxed) == 1));
            other.join().unwrap();
        }
    };
    assert!(explore(Config::exhaustive(), model(true)).finished);
    assert_eq!(verdict(model(false)).kind(), "deadlock");
}

/// Threads poll with timers, by turns. None of them is long in a row, and together they must not
/// keep another one from what they wait for.
#[test]
fn threads_that_poll_by_turns_let_another_one_go() {
    fn poll(flag: &AtomicU32) {
        while flag.load(Relaxed) == 0 {
            let since_zero = now(Clock::Monotonic) + Duration::from_millis(1);
            futex::wait(flag, 0, u32::MAX, Some(Time { clock: Clock::Monotonic, since_zero }), true);
        }
    }
    let set = |flag: &AtomicU32| flag.store(1, Relaxed);
    let model = move || {
        shared(AtomicU32::new(0)).threads([set, poll, poll, poll, poll, poll, poll, poll]);
    };
    for seed in 0..100 {
        explore(Config { strategy: Strategy::Pct { depth: 3 }, seed, ..Config::sampled(10) }, model);
    }
}
