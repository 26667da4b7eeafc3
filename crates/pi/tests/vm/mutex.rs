//! The mutex.

use crate::clients::{asks_again, opposite_orders, owner_ends, release};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use ulocks_core::futex::PiError;
use ulocks_core::model::{Config, Deaths, Failure, explore, finds_bug_saying};
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_core::sync::{AtomicU32, Ordering::Relaxed};
use ulocks_core::{Private, Shared};
use ulocks_pi::model::{Mutex as Protocol, mutex as seeded};
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

/// What a seeded bug may take.
fn hunt() -> Config {
    Config::sampled(10_000)
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
        into.borrow_mut().insert(opposite_orders::<{ seeded::NOTHING }>());
    });
    assert_eq!(told.take(), BTreeSet::from([0, 1]), "they may meet, and may not");
    explore(Config::exhaustive(), asks_again::<{ seeded::NOTHING }>);
}

#[test]
fn the_end_of_an_owner_is_told() {
    explore(Config::exhaustive(), || owner_ends::<{ seeded::NOTHING }>(1));
    for others in [2, 3, 7, 15] {
        explore(sampled(others + 1, 1), move || owner_ends::<{ seeded::NOTHING }>(others));
    }
}

/// Threads of which two may die at any step: the others all come to their end, with the mutex or with an error.
fn despite_deaths<const BUG: u8>(threads: usize) {
    let lock = Arc::new(Protocol::<Private<NoSpin>, BUG>::new());
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
        explore(config, move || despite_deaths::<{ seeded::NOTHING }>(threads));
    }
}

/// What a bug is called, by whom it is found, and what is said of it.
pub(crate) fn found(name: &str, says: &str, client: impl Fn() + 'static) {
    let Failure { execution, .. } = finds_bug_saying(says, hunt(), client);
    println!("{name}: found at execution {execution}");
}

type Bug<const BUG: u8> = Protocol<Private, BUG>;

#[test]
fn exclusion_finds_each_missing_ordering() {
    found("RELAXED_L1", "data race", || model::exclusion::<Bug<{ seeded::RELAXED_L1 }>>(2));
    found("RELAXED_L2", "data race", || model::exclusion::<Bug<{ seeded::RELAXED_L2 }>>(2));
    found("RELAXED_U1", "data race", || model::exclusion::<Bug<{ seeded::RELAXED_U1 }>>(2));
}

#[test]
fn exclusion_finds_who_takes_what_is_promised_to_another() {
    found("TAKES_MARKED", "", || model::exclusion::<Bug<{ seeded::TAKES_MARKED }>>(3));
}

#[test]
fn no_lost_wake_finds_an_overwritten_mark() {
    found("STORES_ZERO", "lost wake-up", || model::no_lost_wake::<Bug<{ seeded::STORES_ZERO }>>(2, 1));
    found("RELEASES_IN_TWO", "lost wake-up", || {
        model::no_lost_wake::<Bug<{ seeded::RELEASES_IN_TWO }>>(2, 1);
    });
}

#[test]
fn timeout_vs_unlock_finds_a_waiter_that_gives_up_wrongly() {
    found("GIVES_UP_THE_MARK", "lost wake-up", || {
        model::timeout_vs_unlock::<Bug<{ seeded::GIVES_UP_THE_MARK }>>(3);
    });
    found("TIMEOUT_HOLDS", "", || model::timeout_vs_unlock::<Bug<{ seeded::TIMEOUT_HOLDS }>>(2));
}

#[test]
fn last_unlocker_frees_finds_a_touch_after_the_release() {
    found("TOUCHES_AFTER", "the atomic", || model::last_unlocker_frees::<Bug<{ seeded::TOUCHES_AFTER }>>(2));
}

#[test]
fn eternal_sleep_and_hidden_deaths_are_found() {
    found("SLEEPS_ON_ERRORS, a circle", "deadlock", || {
        opposite_orders::<{ seeded::SLEEPS_ON_ERRORS }>();
    });
    found("SLEEPS_ON_ERRORS, a death", "deadlock", || owner_ends::<{ seeded::SLEEPS_ON_ERRORS }>(1));
    found("HIDES_DEATHS", "panic", || owner_ends::<{ seeded::HIDES_DEATHS }>(1));
}
