//! The clients of the models on the real kernel, many times, and threads that never stop.

mod clients;

use clients::condvar::Shipped;
use clients::rwlock::{DEEP, ONCE, PLAIN, TWICE, readers_beside_writers, readers_meet_inside};
use clients::{condvar, once};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use ulocks_parking_lot::{Condvar, Mutex, RecursiveRwLock};
use ulocks_testkit as _;
use ulocks_testkit::thread::with;

#[test]
fn notifications_count_those_that_say_they_were_notified() {
    for round in 0..300 {
        condvar::counts_agree::<Shipped>(round % 5, round % 7);
        condvar::all_at_once::<Shipped>(1 + round % 9);
        condvar::one_by_one::<Shipped>(1 + round % 9);
    }
}

#[test]
fn one_closure_runs_and_all_see_it() {
    (0..300).for_each(|round| once::one_of_several_runs(1 + round % 4, round % 5));
}

#[test]
fn readers_come_in_again_beside_writers() {
    for _ in 0..300 {
        readers_beside_writers(&[DEEP, TWICE, ONCE, PLAIN], 2);
    }
}

#[test]
fn readers_inside_do_not_wait_for_a_reader_behind_a_writer() {
    (0..300).for_each(|round| readers_meet_inside(2 + round % 3, 1 + round % 2));
}

/// Four threads pass a token round. One wait for each turn: a spurious end or a lost notification
/// would break the round.
#[test]
fn a_round_of_waits_without_a_loop() {
    const TURNS: usize = 5_000;
    let place = Arc::new((Mutex::new(0), [Condvar::new(), Condvar::new(), Condvar::new(), Condvar::new()]));
    let threads: Vec<_> = (0..4)
        .map(|me| {
            with(&place, move |place| {
                let (turn, condvars) = place;
                let mut turn = turn.lock();
                for round in 0..TURNS {
                    if *turn != 4 * round + me {
                        condvars[me].wait(&mut turn);
                    }
                    assert_eq!(*turn, 4 * round + me, "a wait ended without a notification");
                    *turn += 1;
                    condvars[(me + 1) % 4].notify_one();
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(*place.0.lock(), 4 * TURNS);
}

/// Guards of one thread are dropped in any order, beside a writer.
#[test]
fn nested_guards_end_in_any_order() {
    const READERS: usize = 3;
    const STEPS: usize = 30_000;
    let lock = RecursiveRwLock::new((0u64, 0u64));
    let (steps, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for seed in 1..=READERS {
            let (lock, steps, ended) = (&lock, &steps, &ended);
            scope.spawn(move || {
                let mut random = seed as u64;
                let mut guards = Vec::new();
                for _ in 0..STEPS {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    if random >> 63 == 1 && guards.len() < 9 {
                        guards.push(lock.read());
                    } else if !guards.is_empty() {
                        let guard = guards.swap_remove((random >> 40) as usize % guards.len());
                        assert_eq!(guard.0, guard.1, "a reader is beside a writer");
                        drop(guard);
                    }
                    steps.fetch_add(1, Relaxed);
                }
                drop(guards);
                ended.fetch_add(1, Relaxed);
            });
        }
        let mut writes = 0;
        while ended.load(Relaxed) < READERS || writes == 0 {
            let mut both = lock.write();
            both.0 += 1;
            thread::yield_now();
            both.1 += 1;
            writes += 1;
        }
        assert_eq!(lock.read().0, writes);
    });
    assert_eq!(steps.load(Relaxed), READERS * STEPS);
    assert!(!lock.is_locked());
}
