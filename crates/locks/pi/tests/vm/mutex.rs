//! The mutex.

use crate::clients::{asks_again, opposite_orders, owner_ends, release};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use ulocks_core::futex::PiError;
use ulocks_core::model::{Config, Deaths, explore, set_priority};
use ulocks_core::spin::NoSpin;
use ulocks_core::sync::{AtomicU32, Ordering::Relaxed};
use ulocks_core::time::Deadline;
use ulocks_core::{Private, Shared};
use ulocks_pi::{RawPiMutex, Taken};
use ulocks_testkit::thread::spawn;

type Mutex = RawPiMutex<Private>;
/// Fewer steps, hence more executions of what is left.
type Sleeper = RawPiMutex<Private<NoSpin>>;
type BetweenProcesses = RawPiMutex<Shared>;

/// How many executions of a model of so many threads: about as many steps for each number.
pub(crate) fn sampled(threads: usize, seed: u64) -> Config {
    Config { spurious: 2, seed, ..Config::sampled(12_000 / threads as u64) }
}

ulocks_testkit::vm_models! {
    sampled: sampled,
    locks: [Mutex = 1, Sleeper = 2, BetweenProcesses = 3],
    exhaustive: {
        exclusion: [Mutex, Sleeper, BetweenProcesses],
        no_lost_wake: [Mutex, Sleeper, BetweenProcesses],
        timeout_vs_unlock: [Mutex, Sleeper, BetweenProcesses],
        last_unlocker_frees: [Mutex, Sleeper, BetweenProcesses],
    },
    try_lock: [Mutex],
}

#[test]
fn a_circle_is_told_to_one_of_those_in_it() {
    let told = Rc::new(RefCell::new(BTreeSet::new()));
    let into = Rc::clone(&told);
    explore(Config::exhaustive(), move || {
        let how_many = opposite_orders();
        into.borrow_mut().insert(how_many);
    });
    assert_eq!(told.take(), BTreeSet::from([0, 1]), "they may meet, and may not");
    explore(Config::exhaustive(), asks_again);
}

#[test]
fn the_end_of_an_owner_is_told() {
    explore(Config::exhaustive(), || owner_ends(1));
    for others in [2, 3, 7, 15] {
        explore(sampled(others + 1, 1), move || owner_ends(others));
    }
}

/// How often a thread tries again after it was told of a deadlock, or has timed out.
const ATTEMPTS: usize = 8;

/// Whether the thread that holds `own` waits for a mutex that the caller holds. Then the kernel
/// refuses to let the caller wait for `own`.
fn is_waiting(own: &Sleeper) -> bool {
    for _ in 0..ATTEMPTS {
        match own.acquire(Some(Deadline::after(Duration::from_millis(1)))) {
            Ok(taken) => {
                assert_eq!(taken, Taken::Sound);
                release(own);
            }
            Err(PiError::Deadlock) => return true,
            Err(error) => assert_eq!(error, PiError::TimedOut),
        }
    }
    false
}

/// Three waiters, of priorities that do not follow their arrival. Each holds a mutex of its own, by
/// which the holder learns that it waits. If all of them wait at the release, they are served by
/// priority.
#[test]
fn who_waits_is_served_by_priority() {
    let all_waited = Rc::new(Cell::new(0));
    let counted = Rc::clone(&all_waited);
    explore(Config::sampled(6_000), move || {
        let wanted = Arc::new(Sleeper::new());
        let served = Arc::new(std::sync::Mutex::new(Vec::new()));
        assert_eq!(wanted.acquire(None), Ok(Taken::Sound));
        let waiters = [1, 3, 2].map(|priority| {
            let own = Arc::new(Sleeper::new());
            let (wanted, served, mine) = (Arc::clone(&wanted), Arc::clone(&served), Arc::clone(&own));
            let waiter = spawn(move || {
                set_priority(priority);
                assert_eq!(mine.acquire(None), Ok(Taken::Sound));
                // A deadlock is told to this thread if the holder waits for `mine` at the moment.
                if (0..ATTEMPTS).any(|_| wanted.acquire(None) == Ok(Taken::Sound)) {
                    served.lock().unwrap().push(priority);
                    release(&wanted);
                }
                release(&mine);
            });
            (own, waiter)
        });
        let all_wait = waiters.iter().all(|(own, _)| is_waiting(own));
        release(&wanted);
        for (_, waiter) in waiters {
            waiter.join().unwrap();
        }
        if all_wait {
            counted.set(counted.get() + 1);
            assert_eq!(*served.lock().unwrap(), [3, 2, 1]);
        }
    });
    assert!(all_waited.get() > 100, "{} executions show anything", all_waited.get());
}

/// Threads of which two may die at any step: the others all come to their end, with the mutex or
/// with an error.
fn despite_deaths(threads: usize) {
    let lock = Arc::new(RawPiMutex::<Private<NoSpin>>::new());
    let inside = Arc::new(AtomicU32::new(0));
    let users: Vec<_> = (0..threads)
        .map(|me| {
            let (lock, inside) = (Arc::clone(&lock), Arc::clone(&inside));
            spawn(move || {
                let taken = lock.acquire(None);
                if let Ok(taken) = taken {
                    let before = inside.swap(me as u32 + 1, Relaxed);
                    // A thread that finds another's name finds that of a dead one, and was told.
                    assert!(before == 0 || taken == Taken::OwnerDied, "{before} is inside");
                    inside.swap(0, Relaxed);
                    release(&lock);
                }
                taken
            })
        })
        .collect();
    for told in users.into_iter().filter_map(|user| user.join().ok()) {
        assert!(matches!(told, Ok(_) | Err(PiError::OwnerGone)), "{told:?}");
    }
}

#[test]
fn a_death_lets_nobody_in_and_holds_up_nobody() {
    for threads in [2, 3, 4, 8] {
        let config = Config { deaths: Deaths::Threads(2), ..sampled(threads, 1) };
        explore(config, move || despite_deaths(threads));
    }
}
