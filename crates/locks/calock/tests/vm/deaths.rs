//! Threads that die while they use the lock.

use crate::advice::{RarelyWakes, Short, Strictly};
use crate::sampled;
use core::time::Duration;
use ulocks_calock::advice::Advised;
use ulocks_calock::{Every, Interval, RawCalock, State};
use ulocks_core::futex::{self, Futex};
use ulocks_core::model::{Config, Deaths, Strategy, Survivors, explore};
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::time::Deadline;
use ulocks_core::{Private, Shared};
use ulocks_testkit::model;
use ulocks_testkit::model::deaths::{Face, Holder, Scene, each_step_of_a_waiter_may_be_its_last};
use ulocks_testkit::new_lock;
use ulocks_testkit::thread::{Arc, spawn};

/// As the longest sleep of a waiter between processes.
type Long = Every<1_000_000_000>;
type BetweenProcesses = RawCalock<Shared<NoSpin>, Long>;
type Rare = RawCalock<Shared<NoSpin>, Advised<Long, RarelyWakes>>;

/// Up to two die, somewhere.
fn mortal(threads: usize, seed: u64) -> Config {
    Config { deaths: Deaths::Threads(2), strategy: Strategy::Random, ..sampled(threads, seed) }
}

fn death<L: RawMutex + Send + Sync + 'static>(seed: u64, timeouts: bool) {
    for threads in [3, 4, 8] {
        let config = Config { survivors: Survivors::MayBlock, timeouts, ..mortal(threads, seed) };
        explore(config, move || model::exclusion_despite_deaths::<L>(threads));
    }
}

/// A dead holder holds up the others. Between processes they look now and then whether a thread is
/// dead, for ever, and so the model lets no time pass.
#[test]
fn a_death_lets_nobody_in() {
    death::<RawCalock<Private<NoSpin>, Strictly>>(1, false);
    death::<RawCalock<Shared<NoSpin>, Strictly>>(2, false);
}

/// Waiters that die, or give up, while the lock is held, and one that waits for it.
fn dead_waiters_hold_up_nobody<L: RawMutex + Send + Sync + 'static>(waiters: usize) {
    let lock = Arc::new(new_lock::<L>());
    let held = lock.lock();
    let patient = {
        let lock = Arc::clone(&lock);
        spawn(move || {
            let token = lock.lock();
            // SAFETY: locked the line before.
            unsafe { lock.unlock(token) };
        })
    };
    let doomed: Vec<_> = (0..waiters)
        .map(|_| {
            let lock = Arc::clone(&lock);
            spawn(move || lock.lock_until(Deadline::after(Duration::from_secs(4))).is_some())
        })
        .collect();
    for doomed in doomed {
        assert_ne!(doomed.join().ok(), Some(true), "two hold the lock");
    }
    // SAFETY: locked above.
    unsafe { lock.unlock(held) };
    _ = patient.join();
}

#[test]
fn a_dead_waiter_holds_up_nobody() {
    for waiters in [1, 2, 4] {
        explore(mortal(waiters + 1, 1), move || dead_waiters_hold_up_nobody::<BetweenProcesses>(waiters));
        explore(mortal(waiters + 1, 2), move || dead_waiters_hold_up_nobody::<Rare>(waiters));
    }
}

type Watched<I> = RawCalock<Shared<NoSpin, Holder>, I>;

/// Advances the sequence, as a holder does before it wakes a waiter. Here the wake-up is for
/// another waiter, which it does not meet.
fn advance<I: Interval>(lock: &Watched<I>) {
    // SAFETY: the lock is `repr(C)` and begins with two words of four bytes, of which the sequence
    // is the second.
    let seq = unsafe { &*std::ptr::from_ref(lock).cast::<Futex<futex::Global>>().add(1) };
    seq.fetch_add(1, Relaxed);
}

/// The bound holds again: a survivor is promoted, although the lock is never free and its sequence
/// never silent for long.
fn survivors_are_promoted<I: Interval>(seed: u64) {
    let face = Face::<Watched<I>> {
        is_held: |lock| lock.state().0 & (State::LOCKED | State::GRANTED) == State::LOCKED,
        until_asked: |lock, nobody_waits| {
            while lock.state().0 & State::PROMOTED == 0 && !nobody_waits() {
                advance(lock);
                Futex::<futex::Local>::new(0).wait(0, Some(Deadline::after(Duration::from_millis(100))));
            }
        },
    };
    for (survivors, barges, keeps) in [(1, 1, true), (2, 3, true), (2, 3, false)] {
        let scene = Scene { survivors, barges, keeps };
        let config = Config { seed, spurious: 2, max_steps: 100_000, ..Config::sampled(200) };
        each_step_of_a_waiter_may_be_its_last(face, scene, 60, &config);
    }
}

#[test]
fn a_waiter_that_dies_strands_nobody_on_a_lock_that_is_never_free() {
    survivors_are_promoted::<Long>(1);
    survivors_are_promoted::<Every<100_000_000>>(2);
}

/// A waiter that is promoted while the lock is held, if it lives so long, and then threads that
/// give up sooner than a death is noticed, one after the other, until one acquires the lock.
fn waiters_that_give_up_are_served() {
    let lock = Arc::new(new_lock::<RawCalock<Shared<NoSpin>, Short>>());
    // SAFETY: each caller holds the lock, or acts for a dead thread that does; the token is
    // nothing.
    let unlock = |lock: &RawCalock<_, _>| unsafe { lock.unlock(()) };
    lock.lock();
    let doomed = {
        let lock = Arc::clone(&lock);
        spawn(move || {
            lock.lock();
            unlock(&lock);
        })
    };
    Futex::<futex::Local>::new(0).wait(0, Some(Deadline::after(Duration::from_millis(1))));
    unlock(&lock);
    let died = doomed.join().is_err();
    // An old value may be read a few times in a row.
    let state = (0..64).fold(State::UNLOCKED, |_, _| lock.state());
    if died && state.0 & (State::LOCKED | State::GRANTED) == State::LOCKED {
        unlock(&lock);
    }
    while lock.lock_until(Deadline::after(Duration::from_millis(50))).is_none() {}
    unlock(&lock);
}

#[test]
fn a_lock_that_is_kept_for_the_dead_is_freed_for_waiters_that_give_up() {
    let deaths = |step| {
        let deaths = Deaths::At { thread: 1, step };
        let config = Config { seed: step.into(), max_steps: 100_000, ..Config::sampled(200) };
        explore(Config { deaths, strategy: Strategy::Random, ..config }, waiters_that_give_up_are_served)
            .deaths
    };
    assert!((0..60).map(deaths).sum::<u64>() > 0, "nobody died");
}
