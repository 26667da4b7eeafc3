//! The mutex.

use crate::clients::{asks_again, opposite_orders, owner_ends, release};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use ulocks_core::futex::PiError;
use ulocks_core::model::{Config, Deaths, explore, set_priority};
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_core::sync::{AtomicU32, Ordering::Relaxed};
use ulocks_core::time::Deadline;
use ulocks_core::{Private, Shared};
use ulocks_pi::{RawPiMutex, Taken};
use ulocks_testkit::model;
use ulocks_testkit::thread::spawn;

type Mutex = RawPiMutex<Private>;
/// Fewer steps, hence more executions of what is left.
type Sleeper = RawPiMutex<Private<NoSpin>>;

/// Runs `check` on the mutex in its variants, each with a chance of its own.
macro_rules! on_each {
    ($check:ident) => {
        $check::<Mutex>(1);
        $check::<Sleeper>(2);
        $check::<RawPiMutex<Shared>>(3);
    };
}

/// How many executions of a model of so many threads: about as many steps for each number.
pub(crate) fn sampled(threads: usize, seed: u64) -> Config {
    Config { spurious: 2, seed, ..Config::sampled(12_000 / threads as u64) }
}

const MANY: [usize; 4] = [3, 4, 8, 16];

fn exclusion<L: RawMutex + Send + Sync + 'static>(seed: u64) {
    explore(Config::exhaustive(), || model::exclusion::<L>(2));
    for threads in MANY {
        explore(sampled(threads, seed), move || model::exclusion::<L>(threads));
    }
}

#[test]
fn at_most_one_is_inside() {
    on_each!(exclusion);
}

#[test]
fn try_lock_tells_the_truth() {
    explore(Config::exhaustive(), || model::try_lock_coherence::<Mutex>(2));
    for threads in MANY {
        explore(sampled(threads, 1), move || model::try_lock_coherence::<Mutex>(threads));
    }
}

fn no_lost_wake<L: RawMutex + Send + Sync + 'static>(seed: u64) {
    explore(Config::exhaustive(), || model::no_lost_wake::<L>(2, 1));
    for threads in MANY {
        explore(sampled(threads, seed), move || model::no_lost_wake::<L>(threads, 2));
    }
}

#[test]
fn nobody_sleeps_for_ever() {
    on_each!(no_lost_wake);
}

fn timeout_vs_unlock<L: RawMutex + Send + Sync + 'static>(seed: u64) {
    explore(Config::exhaustive(), || model::timeout_vs_unlock::<L>(2));
    for threads in MANY {
        explore(sampled(threads, seed), move || model::timeout_vs_unlock::<L>(threads));
    }
}

#[test]
fn a_timeout_strands_nobody() {
    on_each!(timeout_vs_unlock);
}

fn last_unlocker_frees<L: RawMutex + Send + Sync + 'static>(seed: u64) {
    explore(Config::exhaustive(), || model::last_unlocker_frees::<L>(2));
    for threads in MANY {
        explore(sampled(threads, seed), move || model::last_unlocker_frees::<L>(threads));
    }
}

#[test]
fn the_release_is_the_last_access() {
    on_each!(last_unlocker_frees);
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
                    // Whoever finds another's name finds it of one who died, and was told.
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
