//! The mutex, in both protocols.

use ulocks_core::model::{Config, explore};
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};
use ulocks_fair::RawFairMutex;
use ulocks_testkit::model;
use ulocks_testkit::order::Recorder;
use ulocks_testkit::suite::{exact, timed, unordered};

/// Runs `check` on the mutex in its variants, with so many preemptions for three threads: loads of
/// a word that others change multiply the executions of the shared protocol. The virtual machine
/// explores it with many threads.
macro_rules! on_each {
    ($check:ident) => {
        $check::<RawFairMutex<Private>>(2);
        $check::<RawFairMutex<Private<NoSpin>>>(2);
        $check::<RawFairMutex<Shared<NoSpin>>>(1);
    };
}

fn exclusion<L: RawMutex + Send + Sync + 'static>(preemptions: usize) {
    explore(exact(3), || model::exclusion::<L>(2));
    explore(exact(preemptions), || model::exclusion::<L>(3));
    explore(Config { spurious: 2, ..exact(2) }, || model::exclusion::<L>(2));
}

#[test]
fn at_most_one_is_inside() {
    on_each!(exclusion);
}

#[test]
fn try_lock_tells_the_truth() {
    explore(exact(2), || model::try_lock_coherence::<RawFairMutex<Private>>(3));
    explore(exact(2), || model::try_lock_coherence::<RawFairMutex<Shared>>(3));
}

type Recorded = RawFairMutex<Private<NoSpin, Recorder>>;
type RecordedShared = RawFairMutex<Shared<NoSpin, Recorder>>;

#[test]
fn who_came_first_is_served_first() {
    explore(exact(2), || model::in_order::<Recorded>(3, false));
    explore(exact(1), || model::in_order::<RecordedShared>(3, false));
    explore(Config { timeouts: 2, ..exact(2) }, || model::in_order::<Recorded>(3, true));
    explore(Config { timeouts: 2, ..exact(1) }, || model::in_order::<RecordedShared>(3, true));
}

fn no_lost_wake<L: RawMutex + Send + Sync + 'static>(preemptions: usize) {
    explore(exact(2), || model::no_lost_wake::<L>(2, 2));
    explore(exact(preemptions), || model::no_lost_wake::<L>(3, 1));
    explore(unordered(1), || model::no_lost_wake::<L>(2, 2));
    explore(Config { spurious: 1, ..exact(1) }, || model::no_lost_wake::<L>(2, 2));
}

#[test]
fn nobody_sleeps_for_ever() {
    on_each!(no_lost_wake);
    // A waiter that is not woken ahead takes one preemption more.
    explore(exact(2), || model::no_lost_wake::<RawFairMutex<Shared<NoSpin>>>(3, 1));
}

fn timeout_vs_unlock<L: RawMutex + Send + Sync + 'static>(preemptions: usize) {
    explore(timed(2, 3), || model::timeout_vs_unlock::<L>(2));
    explore(timed(preemptions, 1 + preemptions as u32), || model::timeout_vs_unlock::<L>(3));
    explore(Config { timeouts: 3, ..unordered(1) }, || model::timeout_vs_unlock::<L>(2));
}

#[test]
fn a_timeout_strands_nobody() {
    on_each!(timeout_vs_unlock);
}

fn last_unlocker_frees<L: RawMutex + Send + Sync + 'static>(preemptions: usize) {
    explore(exact(3), || model::last_unlocker_frees::<L>(2));
    explore(exact(preemptions), || model::last_unlocker_frees::<L>(3));
}

#[test]
fn the_release_is_the_last_access() {
    on_each!(last_unlocker_frees);
}
