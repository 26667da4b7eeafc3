//! Whole locks in both worlds: the same source, sound and with each of its bugs.

use crate::locks::{
    Exclusive, counting, dekker, deque, mcs, mcs_on_stack, ring, seqlock, three_state, ticket,
};
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{AtomicU32, spin_until};
use crate::worlds::explore_by_loom;
use machine::explore::{Config, run};
use std::sync::Arc;

/// The tool that finds a bug in a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finder {
    Nobody,
    Both,
    /// Loom passes it.
    OnlyTheMachine,
    /// There is none.
    OnlyLoom,
}
use Finder::{Both, Nobody, OnlyLoom, OnlyTheMachine};

/// Preemptions of an execution of loom's. With three, every bug here that it can see is seen.
const PREEMPTIONS: usize = 3;

/// Explores `model` in both worlds.
#[track_caller]
fn compare(name: &str, expected: Finder, model: impl Fn() + Send + Sync + 'static) {
    let model = Arc::new(model);
    let (for_loom, for_machine) = (Arc::clone(&model), model);
    let loom = explore_by_loom(Some(PREEMPTIONS), move || for_loom());
    let config = Config { shrink: 0, max_steps: 900, ..Config::default() };
    let machine = run(&config, move || for_machine());
    let found = match (&machine, &loom) {
        (Ok(_), Ok(_)) => Nobody,
        (Err(_), Err(_)) => Both,
        (Err(_), Ok(_)) => OnlyTheMachine,
        (Ok(_), Err(_)) => OnlyLoom,
    };
    let loom = match loom {
        Ok(executions) => format!("passes, {executions} executions"),
        Err(why) => why.lines().map(str::trim).collect::<Vec<_>>().join(" "),
    };
    let machine = match &machine {
        Ok(report) => format!("passes, {} executions", report.executions),
        Err(failure) => format!("{} at execution {}", failure.verdict.kind(), failure.execution),
    };
    println!("{name:<40} | {machine:<40} | {loom}");
    assert_eq!(found, expected, "{name}: the machine: {machine}; loom: {loom}");
}

#[test]
fn three_state_mutex() {
    use three_state::{Bug, Bug::*, ThreeState};
    let case = |bug: Option<Bug>, threads, rounds, found| {
        let name = format!("three-state mutex {threads}x{rounds}, {bug:?}");
        compare(&name, found, counting(threads, rounds, move || ThreeState::new(bug)));
    };
    case(None, 2, 2, Nobody);
    case(None, 3, 1, Nobody);
    for bug in
        [RelaxedUnlock, RelaxedLock, RelaxedSlowLock, NoWake, WakeBeforeUnlock, WaitOnOne, LoadThenStore]
    {
        case(Some(bug), 2, 2, Both);
    }
    case(Some(OneAfterWakeUp), 2, 2, Nobody);
    case(Some(OneAfterWakeUp), 3, 1, Both);
}

#[test]
fn ticket_lock() {
    use ticket::{Bug, Bug::*, Ticket};
    let case = |bug: Option<Bug>, threads, rounds, found| {
        let name = format!("ticket lock {threads}x{rounds}, {bug:?}");
        compare(&name, found, counting(threads, rounds, move || Ticket::new(bug)));
    };
    case(None, 2, 2, Nobody);
    case(None, 3, 1, Nobody);
    for bug in [RelaxedExit, RelaxedRelease, LostTicket, ServedByAWaiter] {
        case(Some(bug), 3, 1, Both);
    }
}

#[test]
fn mcs_lock() {
    use mcs::{Bug, Bug::*, Mcs};
    let case = |bug: Option<Bug>, threads, rounds, found| {
        let name = format!("MCS {threads}x{rounds}, {bug:?}");
        compare(&name, found, counting(threads, rounds, move || Mcs::new(threads, bug)));
    };
    case(None, 2, 2, Nobody);
    case(None, 3, 1, Nobody);
    for bug in [RelaxedSwap, SwapWithoutRelease, SwapWithoutAcquire, RelaxedGrant, NoWake] {
        case(Some(bug), 3, 1, Both);
    }
    // The grant, an update, does not read the newest value and is overwritten by what was stored
    // before.
    case(Some(RelaxedLink), 3, 1, OnlyTheMachine);
}

/// Test-and-test-and-set, with a plain store as its release.
struct Ttas(AtomicU32);

impl Exclusive for Ttas {
    fn hold(&self, _: usize, section: impl FnOnce()) {
        loop {
            spin_until(|| self.0.load(Relaxed) == 0);
            if self.0.swap(1, Acquire) == 0 {
                break;
            }
        }
        section();
        self.0.store(0, Release);
    }
}

#[test]
fn test_and_set_lock() {
    // The swap of a waiter comes between another's swap and the store after it, again and again
    // (#254).
    compare("TTAS 2x1", OnlyLoom, counting(2, 1, || Ttas(AtomicU32::new(0))));
    compare("TTAS 3x1", OnlyLoom, counting(3, 1, || Ttas(AtomicU32::new(0))));
}

#[test]
fn mcs_lock_with_nodes_on_the_stack() {
    use mcs::{Bug, Bug::*};
    use mcs_on_stack::McsOnStack;
    let case = |bug: Option<Bug>, threads, rounds, found| {
        let name = format!("MCS on the stack {threads}x{rounds}, {bug:?}");
        compare(&name, found, counting(threads, rounds, move || McsOnStack::new(bug)));
    };
    case(None, 2, 2, Nobody);
    case(None, 3, 1, Nobody);
    // Not `TouchAfterGrant`: loom, unlike the machine, looks into memory that is no more.
    for bug in [RelaxedSwap, SwapWithoutRelease, SwapWithoutAcquire, RelaxedLink, RelaxedGrant, NoWake] {
        case(Some(bug), 3, 1, Both);
    }
}

#[test]
fn peterson() {
    use dekker::{Bug, Bug::*, Peterson};
    let case = |bug: Option<Bug>, rounds, found| {
        let name = format!("Peterson's lock 2x{rounds}, {bug:?}");
        compare(&name, found, counting(2, rounds, move || Peterson::new(bug)));
    };
    case(None, 1, Nobody);
    case(None, 2, Nobody);
    for bug in [
        NoFence,
        NoFenceIn(0),
        NoFenceIn(1),
        WeakFenceIn(0),
        WeakFenceIn(1),
        RelaxedExit,
        RelaxedLook,
        NoSecondFence,
    ] {
        case(Some(bug), 2, Both);
    }
}

#[test]
fn structures() {
    let case = |bug: Option<seqlock::Bug>, found| {
        compare(&format!("sequence lock, {bug:?}"), found, seqlock::reading(bug));
    };
    case(None, Nobody);
    use seqlock::Bug::{AcquireInPlaceOfFence, NoWriterFence, RelaxedFirstLoad, RelaxedPublication};
    for bug in [AcquireInPlaceOfFence, NoWriterFence, RelaxedFirstLoad, RelaxedPublication] {
        case(Some(bug), Both);
    }
    let case = |bug: Option<ring::Bug>, found| {
        compare(&format!("ring, {bug:?}"), found, ring::passing(1, 2, bug));
    };
    case(None, Nobody);
    use ring::Bug;
    for bug in [
        Bug::RelaxedPush,
        Bug::RelaxedLook,
        Bug::RelaxedPop,
        Bug::RelaxedRoom,
        Bug::EarlyPush,
        Bug::OneTooMany,
    ] {
        case(Some(bug), Both);
    }
    let case = |bug: Option<deque::Bug>, found| {
        compare(&format!("deque, {bug:?}"), found, deque::stealing(bug));
    };
    case(None, Nobody);
    use deque::Bug::{LastByStore, NoFenceInSteal, NoFenceInTake};
    for bug in [NoFenceInTake, NoFenceInSteal, deque::Bug::RelaxedPush, LastByStore] {
        case(Some(bug), Both);
    }
}
