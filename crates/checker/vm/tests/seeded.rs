//! Every seeded bug is found, and nothing is found where there is no bug.
//!
//! Each bug is looked for by chance, by priorities (PCT), by both in turn, and in all executions;
//! the execution that finds it is printed: `cargo test --profile model -p ulocks-vm --test seeded
//! -- --nocapture`. Both in turn, which is the default, has to find it, and so has the exhaustive
//! exploration if it comes to its end. What is found is shrunk and replayed.
//!
//! `ULOCKS_VM_EXECUTIONS` sets how often each sound form runs (2,000 by default).

/// The programs that `examples/compare` gives to other checkers, in this machine's world.
#[path = "../../../../examples/compare/src/worlds/vm.rs"]
mod compared;
mod locks;

use compared::families::idioms::{Second, sequence};
use compared::families::locks::{Draw, ticket};
use compared::families::queues::chase_lev;
use compared::families::{self, Clients, THREE, TWO};
use compared::programs::{self, Program};
use locks::psrwlock::Does::{Read, Write};
use locks::{Exclusive, counting, dekker, mcs, mcs_on_stack, psrwlock, ring, three_state};
use std::rc::Rc;
use std::sync::Arc;
use ulocks_vm::explore::{Config, Strategy, explore, run};
use ulocks_vm::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_vm::sync::{UnsafeCell, spin_until};

/// A bug counts as found if it takes no more executions than this.
const EXECUTIONS: u64 = 10_000;

/// No execution of a model with a bug has more steps, unless it goes round and round in a bare
/// loop, waiting.
const MAX_STEPS: u64 = 900;

fn config(strategy: Strategy) -> Config {
    let kind = if strategy == Strategy::Exhaustive { Config::exhaustive() } else { Config::default() };
    Config { strategy, executions: EXECUTIONS, max_steps: MAX_STEPS, shrink: 0, ..kind }
}

/// `model` goes wrong in one of the ways `kinds`.
#[track_caller]
fn found(name: &str, kinds: &[&str], model: impl Fn() + 'static) {
    let model = Rc::new(model);
    let search = |config: &Config| {
        let model = Rc::clone(&model);
        run(config, move || model())
    };
    let mut line = format!("{name}:");
    for strategy in [Strategy::Random, Strategy::Pct { depth: 3 }, Strategy::Mixed, Strategy::Exhaustive] {
        line += &format!(" {strategy:?} ");
        match search(&config(strategy.clone())) {
            Err(failure) => {
                let kind = failure.verdict.kind();
                assert!(kinds.contains(&kind), "{name}: not one of {kinds:?}: {failure}");
                line += &format!("{} ({kind}),", failure.execution);
            }
            Ok(report) => {
                assert_ne!(strategy, Strategy::Mixed, "{name} is not found: {report}");
                assert!(!report.finished, "{name} is not found in all executions: {report}");
                line += "-,";
            }
        }
    }
    let failure =
        search(&Config { shrink: 1_000, ..config(Strategy::Mixed) }).expect_err("it was found before");
    let again = search(&config(Strategy::Mixed).replaying(&failure.replay)).expect_err("a replay fails too");
    assert_eq!(again.verdict, failure.verdict, "the replay of {name} ends otherwise");
    println!("{line} replay {}", failure.replay);
}

#[track_caller]
fn sound(model: impl Fn() + 'static) {
    explore(Config::sampled(2_000), model);
}

/// Every execution of `model`.
#[track_caller]
fn sound_in_all(model: impl Fn() + 'static) {
    explore(Config::exhaustive(), model);
}

const RACE: &[&str] = &["data race"];
const STUCK: &[&str] = &["lost wake-up", "deadlock"];

#[test]
fn three_state_mutex() {
    use three_state::Bug::{self, *};
    let model = |threads, rounds, bug| counting(threads, rounds, move || three_state::ThreeState::new(bug));
    let two = |bug: Bug, kinds| found(&format!("three-state mutex, {bug:?}"), kinds, model(2, 2, Some(bug)));
    two(RelaxedUnlock, RACE);
    two(RelaxedLock, RACE);
    two(RelaxedSlowLock, RACE);
    two(NoWake, &["lost wake-up"]);
    two(WakeBeforeUnlock, &["lost wake-up"]);
    two(WaitOnOne, &["livelock", "lost wake-up"]);
    two(LoadThenStore, &["lost wake-up"]);
    found("three-state mutex, OneAfterWakeUp", &["lost wake-up"], model(3, 1, Some(OneAfterWakeUp)));
}

#[test]
fn three_state_mutex_that_is_sound() {
    let model = |threads, rounds, bug| counting(threads, rounds, move || three_state::ThreeState::new(bug));
    for (threads, rounds) in [(2, 2), (3, 2), (4, 4), (16, 2)] {
        sound(model(threads, rounds, None));
    }
    // Two threads are not enough for this one: the woken waiter is the last.
    sound(model(2, 2, Some(three_state::Bug::OneAfterWakeUp)));
    sound_in_all(model(2, 1, None));
}

#[test]
fn mcs_lock() {
    use mcs::Bug::{self, *};
    let model = |threads, rounds, bug| counting(threads, rounds, move || mcs::Mcs::new(threads, Some(bug)));
    let three = |bug: Bug, kinds| found(&format!("MCS, {bug:?}"), kinds, model(3, 1, bug));
    three(RelaxedSwap, &["data race", "lost wake-up", "deadlock", "livelock"]);
    three(SwapWithoutRelease, STUCK);
    // Its own link is not ordered after what its predecessor did before it entered the queue,
    // either.
    three(SwapWithoutAcquire, &["data race", "lost wake-up", "deadlock"]);
    three(RelaxedLink, STUCK);
    three(RelaxedGrant, RACE);
    three(NoWake, &["lost wake-up"]);
}

#[test]
fn mcs_lock_that_is_sound() {
    let model = |threads, rounds, bug| counting(threads, rounds, move || mcs::Mcs::new(threads, bug));
    for (threads, rounds) in [(2, 2), (3, 2), (4, 4), (16, 2)] {
        sound(model(threads, rounds, None));
    }
    // The nodes of the array never end.
    sound(model(3, 2, Some(mcs::Bug::TouchAfterGrant)));
    sound_in_all(model(2, 1, None));
}

#[test]
fn mcs_lock_with_nodes_on_the_stack() {
    use mcs::Bug::{self, *};
    let three = |bug: Bug, kinds| {
        let model = counting(3, 1, move || mcs_on_stack::McsOnStack::new(Some(bug)));
        found(&format!("MCS on the stack, {bug:?}"), kinds, model);
    };
    three(RelaxedSwap, &["data race", "unordered initialisation"]);
    three(SwapWithoutRelease, &["unordered initialisation"]);
    three(SwapWithoutAcquire, &["data race", "unordered initialisation"]);
    three(RelaxedLink, &["unordered initialisation"]);
    three(RelaxedGrant, &["data race", "use after the end"]);
    three(NoWake, &["lost wake-up"]);
    three(TouchAfterGrant, &["data race", "use after the end"]);
}

#[test]
fn mcs_lock_with_nodes_on_the_stack_that_is_sound() {
    let model = |threads, rounds| counting(threads, rounds, move || mcs_on_stack::McsOnStack::new(None));
    for (threads, rounds) in [(2, 2), (3, 2), (4, 4), (16, 2)] {
        sound(model(threads, rounds));
    }
    sound_in_all(model(2, 1));
}

#[test]
fn ticket_lock() {
    let stuck = ["data race", "deadlock"];
    for (name, kinds, look, unlock, draw) in [
        ("relaxed wait", RACE, Relaxed, Release, Draw::AtOnce),
        ("relaxed unlock", RACE, Acquire, Relaxed, Draw::AtOnce),
        ("drawn in two steps", &stuck, Acquire, Release, Draw::InTwoSteps),
        ("served by a waiter", &stuck, Acquire, Release, Draw::Impatient),
    ] {
        found(&format!("ticket lock, {name}"), kinds, move || ticket(THREE, look, unlock, draw));
    }
}

#[test]
fn ticket_lock_that_is_sound() {
    let model =
        |threads, rounds| move || ticket(Clients { threads, rounds, ..TWO }, Acquire, Release, Draw::AtOnce);
    for (threads, rounds) in [(2, 2), (3, 2), (4, 4), (16, 2)] {
        sound(model(threads, rounds));
    }
    sound_in_all(model(2, 2));
    sound_in_all(model(3, 1));
}

#[test]
fn lost_wake_up_of_2008() {
    use psrwlock::Bug::{ReadersInTheWrongOrder, StaleUnlock, UnfencedUnlock, WakesOne};
    let two = |bug| psrwlock::guarding([&[Read, Read], &[Write]], Some(bug));
    found("psrwlock, StaleUnlock", STUCK, two(StaleUnlock));
    let writers = psrwlock::guarding([&[Write], &[Write], &[Write]], Some(UnfencedUnlock));
    found("psrwlock, UnfencedUnlock", STUCK, writers);
    let three = |bug| psrwlock::guarding([&[Write], &[Read], &[Write]], Some(bug));
    found("psrwlock, WakesOne", STUCK, three(WakesOne));
    let crossing = psrwlock::guarding([&[Write], &[Read], &[Write]], Some(ReadersInTheWrongOrder));
    found("psrwlock, ReadersInTheWrongOrder", RACE, crossing);
}

#[test]
fn psrwlock_that_is_sound() {
    sound(psrwlock::guarding([&[Read, Read], &[Write]], None));
    sound(psrwlock::guarding([&[Write], &[Read], &[Write]], None));
    sound(psrwlock::guarding([&[Write, Read], &[Read, Write], &[Read, Read]], None));
    sound(psrwlock::guarding([&[Write, Read], &[Read, Write], &[Read, Read], &[Write, Write]], None));
}

struct Guarded(dekker::Handshake, UnsafeCell<u32>);

// SAFETY: the cell is accessed by the thread that has entered. Where the handshake is broken, the
// machine ends the run before.
unsafe impl Sync for Guarded {}

impl Guarded {
    fn try_count(&self, me: usize) -> bool {
        let Self(lock, data) = self;
        // SAFETY: the thread has entered.
        lock.try_hold(me, || data.with_mut(|data| unsafe { *data += 1 }))
    }
}

/// Two threads with data behind Dekker's handshake.
fn handshake(rounds: usize, bug: Option<dekker::Bug>) -> impl Fn() + 'static {
    move || {
        let guarded = Arc::new(Guarded(dekker::Handshake::new(bug), UnsafeCell::new(0)));
        locks::together(2, move |me| {
            for _ in 0..rounds {
                guarded.try_count(me);
            }
        });
    }
}

/// As `handshake`, but one of the two tries until it has entered. Each round of its wait raises a
/// flag and lowers it again, which changes nothing for the next one.
fn insisting_handshake() {
    let guarded = Arc::new(Guarded(dekker::Handshake::new(None), UnsafeCell::new(0)));
    locks::together(2, move |me| {
        if me == 0 {
            guarded.try_count(me);
        } else {
            spin_until(|| guarded.try_count(me));
        }
    });
}

#[test]
fn dekker_and_peterson() {
    use dekker::Bug::{self, *};
    let handshake = |bug: Bug| found(&format!("Dekker's handshake, {bug:?}"), RACE, handshake(2, Some(bug)));
    let peterson = |bug: Bug| {
        let model = counting(2, 2, move || dekker::Peterson::new(Some(bug)));
        found(&format!("Peterson's lock, {bug:?}"), RACE, model);
    };
    for bug in [NoFence, NoFenceIn(0), NoFenceIn(1), WeakFenceIn(0), WeakFenceIn(1), RelaxedExit, RelaxedLook]
    {
        handshake(bug);
        peterson(bug);
    }
    peterson(NoSecondFence);
}

#[test]
fn dekker_and_peterson_that_are_sound() {
    sound(handshake(3, None));
    sound_in_all(handshake(1, None));
    sound_in_all(insisting_handshake);
    sound(counting(2, 3, || dekker::Peterson::new(None)));
    sound_in_all(counting(2, 1, || dekker::Peterson::new(None)));
}

#[test]
fn sequence_lock() {
    for (name, first, second, fence, end) in [
        ("an acquire in place of a fence", Acquire, Second::Load(Acquire), true, Release),
        ("writer without a fence", Acquire, Second::Fence, false, Release),
        ("relaxed first look", Relaxed, Second::Fence, true, Release),
        ("relaxed end of a write", Acquire, Second::Fence, true, Relaxed),
    ] {
        let model = move || sequence(2, first, second, fence, end);
        found(&format!("sequence lock, {name}"), &["panic"], model);
    }
}

#[test]
fn sequence_lock_that_is_sound() {
    let model = || sequence(2, Acquire, Second::Fence, true, Release);
    sound(model);
    sound_in_all(model);
}

#[test]
fn ring_queue() {
    use ring::Bug::*;
    for bug in [RelaxedPush, RelaxedLook, RelaxedPop, RelaxedRoom, EarlyPush] {
        found(&format!("ring, {bug:?}"), RACE, ring::passing(1, 2, Some(bug)));
    }
    found("ring, OneTooMany", &["data race", "panic"], ring::passing(2, 3, Some(OneTooMany)));
}

#[test]
fn ring_queue_that_is_sound() {
    sound(ring::passing(1, 3, None));
    sound(ring::passing(2, 4, None));
    sound_in_all(ring::passing(1, 2, None));
}

#[test]
fn stealing_deque() {
    found("deque, no fence in take", &["panic"], || chase_lev(false, true, true, true));
    found("deque, no fence in steal", &["panic"], || chase_lev(true, false, true, true));
    found("deque, no fence in push", RACE, || chase_lev(true, true, false, true));
    found("deque, last by a store", &["panic"], || chase_lev(true, true, true, false));
}

/// What the tables of the guide say of the machine.
#[test]
fn programs_that_other_checkers_have() {
    for &Program { name, is_wrong, run: model } in programs::ALL.iter().chain(families::all()) {
        match name {
            // What no execution of this memory shows.
            "load buffering" => sound_in_all(model),
            // The exhaustive exploration leaves the second failure out, and says so.
            "weak exchange fails twice" => {
                run(&config(Strategy::Mixed), model).expect_err("by chance");
                assert!(run(&Config::exhaustive(), model).expect("within bounds").bounds.is_hit());
            }
            _ if is_wrong => found(name, &["data race", "panic", "deadlock", "livelock"], model),
            _ => {
                sound(model);
                sound_in_all(model);
            }
        }
    }
}

/// The kit itself: a lock that is none.
#[test]
fn no_lock_at_all() {
    struct None_;
    impl Exclusive for None_ {
        fn hold(&self, _: usize, section: impl FnOnce()) {
            section();
        }
    }
    found("no lock", RACE, counting(2, 1, || None_));
}
