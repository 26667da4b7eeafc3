//! The mutex, in both protocols.

use ulocks_core::model::{Config, Grade, explore, finds_bug, finds_bug_saying};
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::NoSpin;
use ulocks_core::{Private, Shared};
use ulocks_fair::RawFairMutex;
use ulocks_fair::private::{self, seeded as p};
use ulocks_fair::shared::{self, seeded as s};
use ulocks_testkit::model;
use ulocks_testkit::order::Recorder;

/// The private protocol with a seeded bug. It never spins: fewer steps, hence more executions of what is left.
type Queue<const BUG: u8> = private::Protocol<Private<NoSpin>, BUG>;
/// The shared one.
type Tickets<const BUG: u8> = shared::Protocol<Shared<NoSpin>, BUG>;

/// Runs `check` on the mutex in its variants, with so many preemptions for three threads: loads of a word that others
/// change multiply the executions of the shared protocol. The virtual machine explores it with many threads.
macro_rules! on_sound_locks {
    ($check:ident) => {
        $check::<RawFairMutex<Private>>(2);
        $check::<RawFairMutex<Private<NoSpin>>>(2);
        $check::<Queue<{ p::TWO_CPUS }>>(2);
        $check::<RawFairMutex<Shared<NoSpin>>>(1);
    };
}

fn exact(preemptions: usize) -> Config {
    Config::bounded(preemptions)
}

/// A wake-up orders nothing, as on the machine: what a woken waiter sees it has from the word.
fn unordered(preemptions: usize) -> Config {
    Config { grade: Grade::Unordered, ..Config::bounded(preemptions) }
}

/// The first look at the deadline is `lock_until`'s own, the next ones decide how the waits end.
fn timed(preemptions: usize) -> Config {
    Config { timeouts: 3, ..exact(preemptions) }
}

fn exclusion<L: RawMutex + Send + Sync + 'static>(preemptions: usize) {
    explore(exact(3), || model::exclusion::<L>(2));
    explore(exact(preemptions), || model::exclusion::<L>(3));
    explore(Config { spurious: 2, ..exact(2) }, || model::exclusion::<L>(2));
}

#[test]
fn at_most_one_is_inside() {
    on_sound_locks!(exclusion);
}

#[test]
fn try_lock_tells_the_truth() {
    explore(exact(2), || model::try_lock_coherence::<RawFairMutex<Private>>(3));
    explore(exact(2), || model::try_lock_coherence::<RawFairMutex<Shared>>(3));
}

#[test]
fn exclusion_finds_each_missing_ordering() {
    finds_bug(exact(2), || model::exclusion::<Queue<{ p::RELAXED_TAKE }>>(2));
    finds_bug(exact(2), || model::exclusion::<Queue<{ p::RELAXED_RELEASE }>>(2));
    finds_bug(exact(2), || model::exclusion::<Queue<{ p::RELAXED_HAND_OVER }>>(2));
    finds_bug(exact(2), || model::exclusion::<Queue<{ p::RELAXED_GRANT }>>(2));
    finds_bug(exact(2), || model::exclusion::<Queue<{ p::RELAXED_PUSH }>>(2));
    finds_bug(exact(2), || model::exclusion::<Tickets<{ s::RELAXED_RELEASE }>>(2));
    finds_bug(exact(2), || model::exclusion::<Tickets<{ s::RELAXED_TURN }>>(2));
}

#[test]
fn exclusion_finds_a_ticket_drawn_twice() {
    finds_bug(exact(2), || model::exclusion::<Tickets<{ s::DRAWS_IN_TWO }>>(2));
}

#[test]
fn exclusion_finds_a_node_touched_after_its_grant() {
    finds_bug(exact(2), || model::exclusion::<Queue<{ p::TOUCHES_NODE }>>(2));
}

type Recorded = RawFairMutex<Private<NoSpin, Recorder>>;
type RecordedShared = RawFairMutex<Shared<NoSpin, Recorder>>;
type RecordedQueue<const BUG: u8> = private::Protocol<Private<NoSpin, Recorder>, BUG>;

#[test]
fn who_came_first_is_served_first() {
    explore(exact(2), || model::in_order::<Recorded>(3, false));
    explore(exact(1), || model::in_order::<RecordedShared>(3, false));
    explore(Config { timeouts: 2, ..exact(2) }, || model::in_order::<Recorded>(3, true));
    explore(Config { timeouts: 2, ..exact(1) }, || model::in_order::<RecordedShared>(3, true));
}

#[test]
fn in_order_finds_who_overtakes() {
    finds_bug(exact(3), || model::in_order::<RecordedQueue<{ p::BARGES }>>(3, false));
    finds_bug(exact(2), || model::in_order::<RecordedQueue<{ p::SERVES_SECOND }>>(3, false));
}

fn no_lost_wake<L: RawMutex + Send + Sync + 'static>(preemptions: usize) {
    explore(exact(2), || model::no_lost_wake::<L>(2, 2));
    explore(exact(preemptions), || model::no_lost_wake::<L>(3, 1));
    explore(unordered(1), || model::no_lost_wake::<L>(2, 2));
    explore(Config { spurious: 1, ..exact(1) }, || model::no_lost_wake::<L>(2, 2));
}

#[test]
fn nobody_sleeps_for_ever() {
    on_sound_locks!(no_lost_wake);
}

#[test]
fn no_lost_wake_finds_who_is_not_woken() {
    finds_bug(exact(2), || model::no_lost_wake::<Queue<{ p::NO_WAKE }>>(2, 1));
    finds_bug(exact(2), || model::no_lost_wake::<Queue<{ p::NO_WAKE_AHEAD }>>(3, 1));
    finds_bug(exact(2), || model::no_lost_wake::<Queue<{ p::PARKS_BLINDLY }>>(2, 1));
    finds_bug_saying("deadlock", exact(2), || {
        model::no_lost_wake::<Queue<{ p::CALLS_BLINDLY }>>(3, 1);
    });
    finds_bug(exact(2), || model::no_lost_wake::<Queue<{ p::OVERLOOKS_RELEASE }>>(2, 1));
    finds_bug(exact(2), || model::no_lost_wake::<Tickets<{ s::NO_WAKE }>>(2, 1));
    finds_bug(exact(2), || model::no_lost_wake::<Tickets<{ s::NO_WAKE_AHEAD }>>(3, 1));
    finds_bug(exact(3), || model::no_lost_wake::<Tickets<{ s::NEVER_LATE }>>(3, 1));
}

fn timeout_vs_unlock<L: RawMutex + Send + Sync + 'static>(preemptions: usize) {
    explore(timed(2), || model::timeout_vs_unlock::<L>(2));
    explore(Config { timeouts: 1 + preemptions as u32, ..exact(preemptions) }, || {
        model::timeout_vs_unlock::<L>(3)
    });
    explore(Config { timeouts: 3, ..unordered(1) }, || model::timeout_vs_unlock::<L>(2));
}

#[test]
fn a_timeout_strands_nobody() {
    on_sound_locks!(timeout_vs_unlock);
}

#[test]
fn timeout_vs_unlock_finds_a_turn_that_is_lost() {
    finds_bug(timed(2), || model::timeout_vs_unlock::<Queue<{ p::LEAVES_WITH_GRANT }>>(2));
    finds_bug(timed(2), || model::timeout_vs_unlock::<Tickets<{ s::GIVES_UP_ITS_TURN }>>(2));
    finds_bug(timed(2), || model::timeout_vs_unlock::<Tickets<{ s::SERVES_THE_GONE }>>(2));
    // `SKIPS_SILENTLY` takes three threads and minutes here; the virtual machine finds it.
}

fn last_unlocker_frees<L: RawMutex + Send + Sync + 'static>(preemptions: usize) {
    explore(exact(3), || model::last_unlocker_frees::<L>(2));
    explore(exact(preemptions), || model::last_unlocker_frees::<L>(3));
}

#[test]
fn the_release_is_the_last_access() {
    on_sound_locks!(last_unlocker_frees);
}

#[test]
fn last_unlocker_frees_finds_a_touch_after_the_release() {
    finds_bug(exact(2), || model::last_unlocker_frees::<Queue<{ p::LETS_GO_LATE }>>(2));
    finds_bug(exact(3), || model::last_unlocker_frees::<Tickets<{ s::TOUCHES_AFTER }>>(3));
}
