//! Loops that end by themselves. Their rounds look the same, and must not be cut.

use crate::{completes, each, fails, outcomes};
use std::collections::BTreeSet;
use std::hint::black_box;
use ulocks_vm::explore::{Config, Strategy, run};
use ulocks_vm::sync::AtomicU32;
use ulocks_vm::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_vm::sync::{pause, yield_now};

/// What a thread comes to that looks at a flag as `body` says, while another sets it.
fn seen(body: fn(&AtomicU32) -> u32) -> BTreeSet<u32> {
    outcomes(move || {
        let (seen, _) = each(2, (AtomicU32::new(0), body), |(flag, body), me| {
            if me == 0 {
                flag.store(1, Release);
                return 0;
            }
            body(flag)
        });
        seen[1]
    })
}

/// So many fruitless rounds, and so many as are allowed.
fn up_to<const N: u32>() -> BTreeSet<u32> {
    (0..=N).collect()
}

#[test]
fn a_count_in_the_head_of_the_loop() {
    let seen = seen(|flag| (0..3).take_while(|_| flag.load(Acquire) == 0).count() as u32);
    assert_eq!(seen, up_to::<3>());
}

#[test]
fn a_count_that_is_a_local() {
    let seen = seen(|flag| {
        let mut rounds = 0;
        while flag.load(Acquire) == 0 {
            rounds += 1;
            if rounds == 3 {
                break;
            }
            yield_now();
        }
        rounds
    });
    assert_eq!(seen, up_to::<3>());
}

#[test]
fn a_count_that_a_closure_has_captured() {
    let seen = outcomes(|| {
        let flag = std::sync::Arc::new(AtomicU32::new(0));
        let (theirs, mut left) = (std::sync::Arc::clone(&flag), 3);
        let waiter = ulocks_vm::thread::spawn(move || {
            while theirs.load(Acquire) == 0 && left > 0 {
                left -= 1;
                pause();
            }
            3 - left
        });
        flag.store(1, Release);
        waiter.join().unwrap()
    });
    assert_eq!(seen, up_to::<3>());
}

#[test]
fn rounds_that_grow() {
    // Exponential backoff that gives up: 1, 2, 4 pauses.
    let seen = seen(|flag| {
        let (mut pauses, mut rounds) = (1, 0);
        while flag.load(Acquire) == 0 && pauses < 8 {
            (0..pauses).for_each(|_| pause());
            pauses *= 2;
            rounds += 1;
        }
        rounds
    });
    assert_eq!(seen, up_to::<3>());
}

#[test]
fn two_loops_with_a_bound_one_in_the_other() {
    let seen = seen(|flag| {
        let mut rounds = 0;
        for _ in 0..2 {
            for _ in 0..2 {
                if flag.load(Acquire) == 1 {
                    return rounds;
                }
                rounds += 1;
            }
        }
        rounds
    });
    // Three reads of one old value are as many as there may be.
    assert!(seen.is_superset(&BTreeSet::from([0, 1, 2, 3])), "{seen:?}");
}

#[test]
fn a_loop_that_gives_up_after_a_loop_that_does_not() {
    // The bound is over, and the await after it has no bound.
    let seen = seen(|flag| {
        let polls = (0..2).take_while(|_| flag.load(Relaxed) == 0).count() as u32;
        while flag.load(Acquire) == 0 {}
        polls
    });
    assert_eq!(seen, up_to::<2>());
}

/// What a round puts back was there for a moment, and the next round shows it again.
#[test]
fn a_round_that_shows_something_for_a_moment_is_repeated() {
    let model = || {
        each(2, [0; 2].map(AtomicU32::new), |[word, over], me| {
            if me == 0 {
                while over.load(Acquire) == 0 {
                    word.fetch_add(1, Relaxed);
                    word.fetch_sub(1, Relaxed);
                    yield_now();
                }
                return;
            }
            for _ in 0..3 {
                while word.load(Relaxed) == 0 {}
                while word.load(Relaxed) == 1 {}
            }
            over.store(1, Release);
        });
    };
    // All executions are without end: the thread may show it again and again.
    let config = Config { strategy: Strategy::Random, ..Config::sampled(300) };
    let report = run(&config, model).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(report.executions, 300);
}

#[test]
fn swaps_that_are_counted() {
    let seen = outcomes(|| {
        let (seen, _) = each(2, AtomicU32::new(1), |lock, me| {
            if me == 0 {
                lock.store(0, Release);
                return 0;
            }
            (0..4).take_while(|_| lock.swap(1, Acquire) == 1).count() as u32
        });
        seen[1]
    });
    assert_eq!(seen, up_to::<4>());
}

/// What ends the loop lies in a `Box`, and the loop changes it in each round.
#[test]
fn a_wait_that_ends_by_what_the_machine_does_not_see_is_no_deadlock() {
    let model = |rounds: u32| {
        move || {
            let flag = AtomicU32::new(0);
            let mut done = Box::new(0);
            while flag.load(Relaxed) == 0 && *done < rounds {
                *done += 1;
                black_box(&mut done);
            }
        }
    };
    completes(model(20));
    fails("deadlock", model(u32::MAX));
}
