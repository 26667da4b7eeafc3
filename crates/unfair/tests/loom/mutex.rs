//! The mutex.

use crate::mutant::{Mutant, bug};
use ulocks_core::model::{Config, Grade, explore, finds_bug};
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};
use ulocks_testkit::model;

type Mutex = ulocks_unfair::RawMutex<Private>;
/// Fewer steps, hence more executions of what is left.
type Sleeper = ulocks_unfair::RawMutex<Private<NoSpin>>;

/// Runs `check` on the mutex in its variants, and on the unbroken mutant.
macro_rules! on_sound_locks {
    ($check:ident) => {
        $check::<Mutex>();
        $check::<Sleeper>();
        $check::<ulocks_unfair::RawMutex<Shared>>();
        $check::<Mutant<{ bug::SOUND }>>();
    };
}

fn exact(preemptions: usize) -> Config {
    Config::bounded(preemptions)
}

fn cheap(preemptions: usize) -> Config {
    Config { grade: Grade::Cheap, ..Config::bounded(preemptions) }
}

/// A wake-up orders nothing, as on the machine: what a woken waiter sees it has from the word.
fn unordered(preemptions: usize) -> Config {
    Config { grade: Grade::Unordered, ..Config::bounded(preemptions) }
}

/// The first look at the deadline is `lock_until`'s own, the next ones decide how the waits end.
fn timed() -> Config {
    Config { timeouts: 3, ..Config::bounded(3) }
}

fn exclusion<L: RawMutex + Send + Sync + 'static>() {
    explore(exact(3), || model::exclusion::<L>(2));
    explore(exact(2), || model::exclusion::<L>(3));
    explore(cheap(2), || model::exclusion::<L>(3));
    explore(unordered(2), || model::exclusion::<L>(3));
    explore(Config { spurious: 2, ..exact(2) }, || model::exclusion::<L>(2));
}

#[test]
fn at_most_one_is_inside() {
    on_sound_locks!(exclusion);
    explore(exact(2), || model::try_lock_coherence::<Mutex>(3));
}

#[test]
fn exclusion_finds_each_missing_ordering() {
    finds_bug(exact(2), || model::exclusion::<Mutant<{ bug::RELAXED_L1 }>>(2));
    finds_bug(exact(2), || model::exclusion::<Mutant<{ bug::RELAXED_L2 }>>(2));
    finds_bug(exact(2), || model::exclusion::<Mutant<{ bug::RELAXED_L3 }>>(2));
    finds_bug(exact(2), || model::exclusion::<Mutant<{ bug::RELAXED_RELEASE }>>(2));
}

#[test]
fn exclusion_finds_an_acquisition_in_two_steps() {
    finds_bug(exact(2), || model::exclusion::<Mutant<{ bug::LOAD_THEN_STORE }>>(2));
    finds_bug(exact(2), || model::try_lock_coherence::<Mutant<{ bug::LOAD_THEN_STORE }>>(2));
}

fn no_lost_wake<L: RawMutex + Send + Sync + 'static>() {
    explore(exact(3), || model::no_lost_wake::<L>(2, 2));
    explore(exact(3), || model::no_lost_wake::<L>(3, 1));
    explore(exact(1), || model::no_lost_wake::<L>(3, 2));
    explore(unordered(2), || model::no_lost_wake::<L>(2, 2));
    explore(unordered(2), || model::no_lost_wake::<L>(3, 1));
    explore(Config { spurious: 2, ..exact(2) }, || model::no_lost_wake::<L>(3, 1));
}

#[test]
fn nobody_sleeps_for_ever() {
    on_sound_locks!(no_lost_wake);
}

#[test]
fn no_lost_wake_finds_a_release_that_does_not_wake_in_time() {
    finds_bug(exact(2), || model::no_lost_wake::<Mutant<{ bug::NO_WAKE }>>(2, 1));
    finds_bug(exact(2), || model::no_lost_wake::<Mutant<{ bug::WAKES_FIRST }>>(2, 1));
    finds_bug(exact(2), || model::no_lost_wake::<Mutant<{ bug::RELEASES_IN_TWO }>>(2, 1));
}

#[test]
fn no_lost_wake_finds_a_lost_mark() {
    finds_bug(exact(2), || model::no_lost_wake::<Mutant<{ bug::SLEEPS_UNMARKED }>>(2, 1));
    finds_bug(exact(3), || model::no_lost_wake::<Mutant<{ bug::L3_FORGETS }>>(3, 1));
}

fn timeout_vs_unlock<L: RawMutex + Send + Sync + 'static>() {
    explore(timed(), || model::timeout_vs_unlock::<L>(2));
    explore(timed(), || model::timeout_vs_unlock::<L>(3));
    explore(Config { timeouts: 3, ..unordered(2) }, || model::timeout_vs_unlock::<L>(3));
}

#[test]
fn a_timeout_strands_nobody() {
    on_sound_locks!(timeout_vs_unlock);
}

#[test]
fn timeout_vs_unlock_finds_a_waiter_that_leaves_with_what_is_owed_to_others() {
    finds_bug(timed(), || model::timeout_vs_unlock::<Mutant<{ bug::LEAVES_UNMARKED }>>(3));
    finds_bug(timed(), || model::timeout_vs_unlock::<Mutant<{ bug::LEAVES_WITH_THE_WAKE_UP }>>(3));
}

fn last_unlocker_frees<L: RawMutex + Send + Sync + 'static>() {
    explore(exact(3), || model::last_unlocker_frees::<L>(2));
    explore(exact(2), || model::last_unlocker_frees::<L>(3));
    explore(unordered(2), || model::last_unlocker_frees::<L>(3));
}

#[test]
fn the_release_is_the_last_access() {
    on_sound_locks!(last_unlocker_frees);
}

#[test]
fn last_unlocker_frees_finds_a_touch_after_the_release() {
    finds_bug(exact(2), || model::last_unlocker_frees::<Mutant<{ bug::TOUCHES_AFTER }>>(2));
}
