//! The mutex.

use ulocks_core::model::{Config, Grade, explore};
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};
use ulocks_testkit::model;

type Mutex = ulocks_unfair::RawMutex<Private>;
/// Fewer steps, hence more executions of what is left.
type Sleeper = ulocks_unfair::RawMutex<Private<NoSpin>>;

/// Runs `check` on the mutex in its variants.
macro_rules! on_sound_locks {
    ($check:ident) => {
        $check::<Mutex>();
        $check::<Sleeper>();
        $check::<ulocks_unfair::RawMutex<Shared>>();
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

fn timeout_vs_unlock<L: RawMutex + Send + Sync + 'static>() {
    explore(timed(), || model::timeout_vs_unlock::<L>(2));
    explore(timed(), || model::timeout_vs_unlock::<L>(3));
    explore(Config { timeouts: 3, ..unordered(2) }, || model::timeout_vs_unlock::<L>(3));
}

#[test]
fn a_timeout_strands_nobody() {
    on_sound_locks!(timeout_vs_unlock);
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
