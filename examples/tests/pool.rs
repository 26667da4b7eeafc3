//! The pool on the machine.
#![cfg(not(any(ulocks_loom, ulocks_vm)))]

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use ulocks::semarray::{Builder, Fairness};
use ulocks_examples::{JobPool, PoolError};
use ulocks_testkit as _;

const SHORT: Duration = Duration::from_millis(5);

/// Jobs of all kinds, and one that needs everything, under both kinds of fairness; and pauses.
#[test]
fn nobody_has_what_another_has() {
    const SIZES: [u32; 3] = [3, 2, 1];
    for fairness in [Fairness::Barging, Fairness::Strict { after: Duration::from_micros(100) }] {
        let pool = JobPool::with_fairness(&SIZES, fairness);
        let used = [const { AtomicU32::new(0) }; 3];
        let run = |needs: &[(usize, u32)]| {
            let _job = pool.take(needs).unwrap();
            for &(kind, count) in needs {
                assert!(used[kind].fetch_add(count, Relaxed) + count <= SIZES[kind]);
            }
            needs.iter().for_each(|&(kind, count)| _ = used[kind].fetch_sub(count, Relaxed));
        };
        let needs: [&[(usize, u32)]; 5] = [
            &[(0, 1), (1, 1)],
            &[(1, 2), (0, 2)],
            &[(2, 1), (0, 1)],
            &[(0, 1), (2, 1), (1, 1)],
            &[(0, 3), (1, 2), (2, 1)],
        ];
        thread::scope(|scope| {
            for needs in needs {
                scope.spawn(move || (0..500).for_each(|_| run(needs)));
            }
            for _ in 0..20 {
                let _pause = pool.pause();
                assert_eq!(pool.free(), SIZES);
                assert!(used.iter().all(|used| used.load(Relaxed) == 0));
            }
        });
        assert_eq!(pool.free(), SIZES);
    }
}

#[test]
fn what_is_not_free_is_waited_for_or_not() {
    let pool = JobPool::new(&[2, 1]);
    let one = pool.take(&[(0, 1), (1, 1)]).unwrap();
    assert_eq!(pool.try_take(&[(0, 1), (1, 1)]).err(), Some(PoolError::Busy));
    assert_eq!(pool.take_timeout(&[(0, 2)], SHORT).err(), Some(PoolError::Busy));
    assert_eq!(pool.free(), [1, 0]);
    drop(one);
    let pause = pool.pause();
    assert_eq!(pool.take_timeout(&[], SHORT).err(), Some(PoolError::Busy));
    drop(pause);
    drop(pool.try_take(&[(0, 1), (1, 1), (0, 1)]).unwrap());
    assert_eq!(format!("{pool:?}"), "JobPool { sizes: [2, 1], .. }");
}

#[test]
fn what_there_is_not_is_refused() {
    let pool = JobPool::new(&[2, 1]);
    assert_eq!(pool.take(&[(1, 2)]).err(), Some(PoolError::TooMuch { kind: 1, size: 1 }));
    assert_eq!(pool.take(&[(0, 2), (0, u32::MAX)]).err(), Some(PoolError::TooMuch { kind: 0, size: 2 }));
    let error = pool.take(&[(7, 0)]).expect_err("there is no such kind");
    assert_eq!(error.to_string(), "the job needs more of kind 7 than the 0 there are");
}

#[test]
#[should_panic = "cannot go beyond"]
fn a_pool_of_too_much_is_refused() {
    JobPool::new(&[1, Builder::GREATEST_LIMIT + 1]);
}
