//! Clients of what signal handlers do in the checker: their records, their uses of locks, and the
//! news that they leave for threads.

use super::{entry, joined, lock_of};
use crate::seen::asked::Asked;
use crate::seen::signal::{earlier, edges, take, used};
use crate::seen::thread::{Record, records};
use ulocks_core::model::signal::{self, Signal};
use ulocks_core::model::thread::spawn;

const SIGNAL: u32 = 10;
/// The set of open signals that has this one.
const OPEN: u64 = 1 << (SIGNAL - 1);

fn asked(lock: usize) -> Asked {
    Asked::again(&entry(lock))
}

/// A handler waits for a lock, and does not get it: nothing is entered into its list.
fn handles(lock: usize) {
    let me = Record::of_handler(SIGNAL, None).expect("a record");
    assert!(used(me, &asked(lock), true, 0).is_none(), "a handler reports nothing itself");
    me.end_handler();
}

/// Threads acquire a lock once, with the signal open, and end. A handler waits for such a lock. The
/// fault is found, by one of them or at the end of the last thread.
pub fn a_fault_of_a_handler_is_found(threads: usize) {
    let looks = || take() && earlier().is_some();
    let threads: Vec<_> = (0..threads)
        .map(|_| {
            spawn(move || {
                let at_once = used(Record::leak(), &asked(0), true, OPEN).is_some();
                looks() || at_once
            })
        })
        .collect();
    let handler = spawn(|| handles(0));
    // A thread that has nothing to do with it ends.
    let other = spawn(looks);
    let found = joined(other);
    let found = threads.into_iter().fold(found, |found, thread| joined(thread) || found);
    joined(handler);
    assert!(looks() || found, "a fault of a handler is lost");
}

/// The signal is blocked whenever a thread acquires the lock, so there is no fault.
pub fn no_fault_of_a_handler_is_found_that_there_is_not() {
    let thread = spawn(|| {
        assert!(used(Record::leak(), &asked(0), true, !OPEN).is_none(), "the signal is blocked");
        assert!(!take() || earlier().is_none(), "the signal is blocked");
    });
    let handler = spawn(|| handles(0));
    joined(thread);
    joined(handler);
    assert!(!take() || earlier().is_none(), "the signal is blocked");
}

/// One lock is held with the signal open, and a handler waits for another one. Some thread enters
/// the edge of the two.
pub fn an_edge_through_a_handler_is_entered() {
    let enters = || {
        let is_it = |edge: &crate::seen::signal::Edge| {
            (edge.held.class.vertex(0, 0), edge.asked.class.vertex(0, 0))
                == (entry(0).class.vertex(0, 0), entry(1).class.vertex(0, 0))
        };
        take() && edges().iter().any(is_it)
    };
    let thread = spawn(move || {
        used(Record::leak(), &asked(0), true, OPEN);
        enters()
    });
    let handler = spawn(|| handles(1));
    // A thread that has nothing to do with it ends.
    let other = spawn(enters);
    let entered = [joined(thread), joined(other)].contains(&true);
    joined(handler);
    assert!(enters() || entered, "an edge through a handler is lost");
}

/// A handler interrupts a thread at any step. It reads what the thread holds, and has a list of its
/// own, while another thread begins and ends.
pub fn a_handler_interrupts_at_any_step() {
    let me = Record::leak();
    let number = Signal::new(SIGNAL as u8);
    signal::install(number, 0, move || {
        let own = Record::of_handler(SIGNAL, Some(me)).expect("a record");
        assert!(!own.holds_any(), "the list of a handler is not its own");
        let interrupted = own.interrupted().flat_map(Record::held);
        assert!(interrupted.map(|held| lock_of(&held)).all(|lock| lock < 2), "not held");
        assert!(own.push(&entry(2)));
        assert!(own.held().map(|held| lock_of(&held)).eq([2]), "the list of a handler is not its own");
        assert!(own.pop_as(entry(2).lock, |_| true));
        own.end_handler();
    });
    let other = spawn(|| {
        let record = records().find(|record| record.take()).unwrap_or_else(Record::leak);
        assert!(record.push(&entry(1)));
        assert!(record.held().map(|held| lock_of(&held)).eq([1]), "the list of a thread is not its own");
        assert!(record.pop_as(entry(1).lock, |_| true));
        record.give_back();
    });
    signal::arm(number, 1);
    assert!(me.push(&entry(0)));
    assert!(me.push(&entry(1)));
    assert!(me.held().map(|held| lock_of(&held)).eq([0, 1]), "the list of a thread is not its own");
    assert!(me.pop_as(entry(1).lock, |_| true) && me.pop_as(entry(0).lock, |_| true));
    joined(other);
    assert!(!me.holds_any());
}
