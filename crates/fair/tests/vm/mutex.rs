//! The mutex, in both protocols.

use ulocks_core::model::{Config, Deaths, Failure, Survivors, explore, finds_bug_saying};
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

/// Runs `check` on the mutex in its variants, and on those of the protocols that get into rare corners, each with a
/// chance of its own.
macro_rules! on_sound_locks {
    ($check:ident) => {
        $check::<RawFairMutex<Private>>(1);
        $check::<RawFairMutex<Private<NoSpin>>>(2);
        $check::<RawFairMutex<Shared>>(3);
        $check::<RawFairMutex<Shared<NoSpin>>>(4);
        $check::<Tickets<{ s::SHORT_LINE }>>(5);
        $check::<Tickets<{ s::SMALL_GROUPS }>>(6);
        $check::<Queue<{ p::TWO_CPUS }>>(7);
        $check::<private::Protocol<Private, { p::TWO_CPUS }>>(8);
    };
}

/// How many executions of a model of so many threads: about as many steps for each number.
pub(crate) fn sampled(threads: usize, seed: u64) -> Config {
    Config { spurious: 2, seed, ..Config::sampled(6_000 / threads as u64) }
}

/// What a seeded bug may take.
fn hunt() -> Config {
    Config::sampled(20_000)
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
    on_sound_locks!(exclusion);
}

#[test]
fn try_lock_tells_the_truth() {
    for threads in MANY {
        explore(sampled(threads, 1), move || model::try_lock_coherence::<RawFairMutex<Private>>(threads));
        explore(sampled(threads, 1), move || model::try_lock_coherence::<RawFairMutex<Shared>>(threads));
    }
}

type Recorded = RawFairMutex<Private<NoSpin, Recorder>>;
type RecordedShared = RawFairMutex<Shared<NoSpin, Recorder>>;
type RecordedQueue<const BUG: u8> = private::Protocol<Private<NoSpin, Recorder>, BUG>;

#[test]
fn who_came_first_is_served_first() {
    for threads in MANY {
        for timed in [false, true] {
            explore(sampled(threads, 1), move || model::in_order::<Recorded>(threads, timed));
            explore(sampled(threads, 2), move || model::in_order::<RecordedShared>(threads, timed));
            explore(sampled(threads, 3), move || {
                model::in_order::<RecordedQueue<{ p::TWO_CPUS }>>(threads, timed);
            });
        }
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
    on_sound_locks!(no_lost_wake);
}

fn timeout_vs_unlock<L: RawMutex + Send + Sync + 'static>(seed: u64) {
    for threads in [2, 3, 4, 8, 16] {
        explore(sampled(threads, seed), move || model::timeout_vs_unlock::<L>(threads));
        explore(sampled(threads, seed), move || model::give_up_while_held::<L>(threads));
    }
}

#[test]
fn a_timeout_strands_nobody() {
    on_sound_locks!(timeout_vs_unlock);
    explore(Config::exhaustive(), || model::timeout_vs_unlock::<RawFairMutex<Private<NoSpin>>>(2));
}

fn last_unlocker_frees<L: RawMutex + Send + Sync + 'static>(seed: u64) {
    explore(Config::exhaustive(), || model::last_unlocker_frees::<L>(2));
    for threads in MANY {
        explore(sampled(threads, seed), move || model::last_unlocker_frees::<L>(threads));
    }
}

#[test]
fn the_release_is_the_last_access() {
    on_sound_locks!(last_unlocker_frees);
}

/// What a bug is called, by whom it is found, and what is said of it.
fn found(name: &str, says: &str, client: impl Fn() + 'static) {
    let Failure { execution, .. } = finds_bug_saying(says, hunt(), client);
    println!("{name}: found at execution {execution}");
}

#[test]
fn exclusion_finds_each_missing_ordering() {
    found("RELAXED_TAKE", "data race", || model::exclusion::<Queue<{ p::RELAXED_TAKE }>>(2));
    found("RELAXED_RELEASE", "data race", || model::exclusion::<Queue<{ p::RELAXED_RELEASE }>>(2));
    found("RELAXED_HAND_OVER", "", || model::exclusion::<Queue<{ p::RELAXED_HAND_OVER }>>(2));
    found("RELAXED_GRANT", "data race", || model::exclusion::<Queue<{ p::RELAXED_GRANT }>>(2));
    found("RELAXED_PUSH", "", || model::exclusion::<Queue<{ p::RELAXED_PUSH }>>(2));
    found("RELAXED_RELEASE", "data race", || model::exclusion::<Tickets<{ s::RELAXED_RELEASE }>>(2));
    found("RELAXED_TURN", "data race", || model::exclusion::<Tickets<{ s::RELAXED_TURN }>>(2));
}

#[test]
fn exclusion_finds_a_ticket_drawn_twice() {
    found("DRAWS_IN_TWO", "", || model::exclusion::<Tickets<{ s::DRAWS_IN_TWO }>>(2));
}

#[test]
fn exclusion_finds_a_node_touched_after_its_grant() {
    found("TOUCHES_NODE", "", || model::exclusion::<Queue<{ p::TOUCHES_NODE }>>(2));
}

#[test]
fn in_order_finds_who_overtakes() {
    found("BARGES", "not in the order", || model::in_order::<RecordedQueue<{ p::BARGES }>>(3, false));
    found("SERVES_SECOND", "not in the order", || {
        model::in_order::<RecordedQueue<{ p::SERVES_SECOND }>>(3, false);
    });
}

#[test]
fn no_lost_wake_finds_who_is_not_woken() {
    const SAYS: &str = "lost wake-up";
    found("NO_WAKE", SAYS, || model::no_lost_wake::<Queue<{ p::NO_WAKE }>>(2, 1));
    found("NO_WAKE_AHEAD", SAYS, || model::no_lost_wake::<Queue<{ p::NO_WAKE_AHEAD }>>(3, 1));
    found("PARKS_BLINDLY", "", || model::no_lost_wake::<Queue<{ p::PARKS_BLINDLY }>>(2, 1));
    found("CALLS_BLINDLY", SAYS, || model::no_lost_wake::<Queue<{ p::CALLS_BLINDLY }>>(3, 1));
    found("OVERLOOKS_RELEASE", "", || model::no_lost_wake::<Queue<{ p::OVERLOOKS_RELEASE }>>(2, 1));
    found("NO_WAKE", SAYS, || model::no_lost_wake::<Tickets<{ s::NO_WAKE }>>(2, 1));
    found("NO_WAKE_AHEAD", SAYS, || model::no_lost_wake::<Tickets<{ s::NO_WAKE_AHEAD }>>(3, 1));
    found("NEVER_LATE", SAYS, || model::no_lost_wake::<Tickets<{ s::NEVER_LATE }>>(3, 1));
    found("TRUSTS_THE_FLAG", SAYS, || model::no_lost_wake::<Tickets<{ s::TRUSTS_THE_FLAG }>>(4, 1));
    found("MOVES_SILENTLY", SAYS, || model::no_lost_wake::<Tickets<{ s::MOVES_SILENTLY }>>(4, 1));
    found("FORGETS_SECTIONS", SAYS, || model::no_lost_wake::<Tickets<{ s::FORGETS_SECTIONS }>>(8, 1));
    found("LEAVES_FAR", "far in an empty line", || model::no_lost_wake::<Tickets<{ s::LEAVES_FAR }>>(3, 2));
    found("NEVER_MOVES", "nobody can go on", || model::no_lost_wake::<Tickets<{ s::NEVER_MOVES }>>(4, 1));
}

#[test]
fn timeout_vs_unlock_finds_a_turn_that_is_lost() {
    found("LEAVES_WITH_GRANT", "", || model::timeout_vs_unlock::<Queue<{ p::LEAVES_WITH_GRANT }>>(2));
    found("GIVES_UP_ITS_TURN", "", || model::timeout_vs_unlock::<Tickets<{ s::GIVES_UP_ITS_TURN }>>(2));
    found("SERVES_THE_GONE", "", || model::timeout_vs_unlock::<Tickets<{ s::SERVES_THE_GONE }>>(2));
    found("SKIPS_SILENTLY", "", || model::timeout_vs_unlock::<Tickets<{ s::SKIPS_SILENTLY }>>(3));
    let patient = || Config { timeouts: false, ..hunt() };
    finds_bug_saying("", patient(), || model::timeout_vs_unlock::<Tickets<{ s::FORGETS_OUTSIDE }>>(5));
    finds_bug_saying("", patient(), || model::timeout_vs_unlock::<Tickets<{ s::FORGETS_OTHERS }>>(7));
}

#[test]
fn timeout_vs_unlock_finds_who_is_looked_at_after_it_has_left() {
    found("WALKS_ON", "the atomic", || model::timeout_vs_unlock::<Queue<{ p::WALKS_ON }>>(4));
}

#[test]
fn give_up_while_held_finds_who_is_not_let_go() {
    found("OVERLOOKS_LEAVERS", "", || model::give_up_while_held::<Queue<{ p::OVERLOOKS_LEAVERS }>>(3));
}

#[test]
fn last_unlocker_frees_finds_a_touch_after_the_release() {
    found("LETS_GO_LATE", "", || model::last_unlocker_frees::<Queue<{ p::LETS_GO_LATE }>>(2));
    found("TOUCHES_AFTER", "the atomic", || model::last_unlocker_frees::<Tickets<{ s::TOUCHES_AFTER }>>(2));
}

fn death<L: RawMutex + Send + Sync + 'static>(seed: u64) {
    for threads in MANY {
        let config =
            Config { deaths: Deaths::Threads(2), survivors: Survivors::MayBlock, ..sampled(threads, seed) };
        explore(config, move || model::exclusion_despite_deaths::<L>(threads));
    }
}

/// Between processes a death may hold up everybody, but it lets nobody in. In one process threads do not die alone: a
/// node in line would be gone with its stack.
#[test]
fn a_death_lets_nobody_in() {
    death::<RawFairMutex<Shared>>(1);
    death::<RawFairMutex<Shared<NoSpin>>>(2);
}
