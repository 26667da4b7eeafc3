//! How the calling thread sleeps in a set, and how a signal or a deadline ends that.
//!
//! A handler that runs during the sleep ends it, whatever `SA_RESTART` says. The set is taken out
//! of the queue before the handler runs. So the handler may jump, or end the process.
//!
//! A sleeper looks now and then, for the dead wake nobody. It takes the array lock, which repairs
//! the array, if one of these is so:
//!
//! | what it finds | what is to be done |
//! |---|---|
//! | a process with adjustments seems to have died | they are to be given back |
//! | the array is removed | its remover may have died before it has ended the sleepers |
//! | the holder of the array lock has died | it may have owed the [`settle`](Section::settle) of a change |

use crate::array::Array;
use crate::queue::{self, Status};
use crate::robust::List;
use crate::section::Section;
use crate::signal::{self, HeldBack};
use crate::sys::{self, Answer, Errno};
use crate::undo;
use core::cell::Cell;
#[cfg(not(files))]
use ulocks_core::model::thread_local;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, SeqCst};
use ulocks_core::sync::compiler_fence;

/// How long a thread sleeps before it looks, in nanoseconds, if other processes have
/// adjustments.
const LOOK_FOR_DEATHS: u64 = 50_000_000;
/// The same while no other process has any. A process that has the first ones wakes the sleepers. A
/// thread that was killed while it had the array lock, or before it woke a sleeper whose set it had
/// completed, delays that one by so much.
const LOOK: u64 = 1_000_000_000;

/// When to look next: after `usual`, or up to an eighth later, so that sleepers do not look at the
/// same moments.
fn look_after(now: u64, usual: u64, thread: u32) -> u64 {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15; // 2^64 by the golden ratio: all bits reach the upper ones.
    let mixed = (now ^ u64::from(thread)).wrapping_mul(SPREAD) >> 32;
    now + usual + ((mixed * (usual >> 3)) >> 32)
}

#[derive(Clone, Copy)]
struct Nap {
    array: &'static Array,
    slot: usize,
    thread: u32,
    /// What was pending before the thread's number in the slot: invariant 3 of the queue.
    before: usize,
}

impl Nap {
    /// The set is out of the queue.
    fn is_over(self) {
        List::current().set_pending(self.before);
        self.array.let_go();
    }
}

thread_local! {
    /// The set in which this thread sleeps.
    static NAP: Cell<Option<Nap>> = const { Cell::new(None) };
    /// What it ended with, if a call of a handler has taken it out.
    static TAKEN: Cell<Answer> = const { Cell::new(Ok(0)) };
}

fn begin(nap: Nap) {
    NAP.set(Some(nap));
    signal::begin_nap();
}

/// The set, for one of the thread and its handlers. No handler runs from here until `_held_back` is
/// dropped: a handler that jumps would leave the set to nobody.
fn take(_held_back: &HeldBack) -> Option<Nap> {
    let is_mine = signal::end_nap();
    NAP.get().filter(|_| is_mine)
}

/// What a handler has ended the set with.
fn taken() -> Answer {
    compiler_fence(SeqCst);
    TAKEN.get()
}

/// Before a handler of the program runs, and before a call takes an array lock: ends the set in
/// which the thread sleeps. What that ended with.
pub fn end_interrupted() -> Option<Answer> {
    if !signal::is_napping() {
        return None;
    }
    let held_back = HeldBack::new();
    let nap = take(&held_back).filter(|nap| nap.thread == ulocks_core::tid::current())?;
    let answer = withdraw(nap, libc::EINTR);
    keep(answer);
    Some(answer)
}

/// Keeps what the set has ended with, for the thread that slept in it.
pub fn keep(answer: Answer) {
    TAKEN.set(answer);
    compiler_fence(SeqCst);
}

/// What the set has ended with; otherwise it is taken out and ends with `error`.
fn withdraw(nap: Nap, error: Errno) -> Answer {
    let sleeper = nap.array.sleeper(nap.slot);
    // Mutant: Acquire -> Relaxed: for EDEADLK in a handler that ours did not call; models have none.
    let outcome = || sleeper.and_then(|sleeper| Status(sleeper.status.load(Acquire)).outcome());
    nap.array.hold_again(); // For the section.
    let answer = match Section::enter_held(nap.array) {
        Ok(mut section) => {
            let outcome = outcome();
            queue::withdraw(&mut section, nap.slot);
            section.leave();
            outcome.unwrap_or(Err(error))
        }
        // The array is removed. The set may have been performed before.
        Err(_) => outcome().unwrap_or(Err(libc::EIDRM)),
    };
    nap.is_over();
    answer
}

/// Releases the lock, and sleeps until the set in `slot` has ended, a signal came, or `deadline`
/// has passed, in nanoseconds of CLOCK_MONOTONIC.
pub fn sleep(section: Section, slot: usize, deadline: Option<u64>) -> Answer {
    let array = section.array;
    let (Some(sleeper), Some(bell)) = (array.sleeper(slot), queue::bell_word(array, slot)) else {
        section.leave();
        return Err(libc::EIDRM);
    };
    let mut rung = bell.load(Relaxed); // Before the set can be completed: invariant 4 of the queue.
    array.hold_again(); // Until the set is out of the queue.
    let thread = section.release();
    let before = thread.replace_pending(&sleeper.thread);
    let nap = Nap { array, slot, thread: thread.number(), before };
    begin(nap);
    drop(thread); // Handlers that have waited run here.
    loop {
        let status = sleeper.status.load(Acquire);
        if !signal::is_napping() {
            return taken();
        }
        if let Some(outcome) = Status(status).outcome() {
            let held_back = HeldBack::new();
            if take(&held_back).is_none() {
                return taken();
            }
            sleeper.status.store(Status::FREE, Relaxed);
            nap.is_over();
            return outcome;
        }
        if signal::has_handled() {
            return end(nap, libc::EINTR);
        }
        let now = sys::monotonic();
        if deadline.is_some_and(|deadline| now >= deadline) {
            return end(nap, libc::EAGAIN);
        }
        let usual = if undo::has_others(array) { LOOK_FOR_DEATHS } else { LOOK };
        let look = look_after(now, usual, nap.thread);
        let until = deadline.map_or(look, |deadline| deadline.min(look));
        match signal::nap(bell, rung, until, queue::bell(slot).1) {
            Err(libc::EINTR) => return end(nap, libc::EINTR),
            Err(libc::ETIMEDOUT) if needs_repair(nap) => {
                array.hold_again(); // For the section.
                if let Ok(section) = Section::enter_held(array) {
                    section.leave(); // That looks for the dead, also for one that removed the array.
                } else if array.is_lost() {
                    return end(nap, libc::EIDRM); // Nobody else knows of the set.
                }
            }
            _ => {}
        }
        if sleeper.status.load(Relaxed) == Status::WAITING {
            rung = bell.load(Acquire); // The status is looked at again: invariant 4.
        }
    }
}

/// Whether a sleeper has to take the array lock: see the table. This takes no lock.
fn needs_repair(Nap { array, thread, .. }: Nap) -> bool {
    undo::has_suspects(array) || array.is_gone() || array.head().lock.has_died(thread)
}

/// Ends the sleep with `error`, unless the set has ended already.
fn end(nap: Nap, error: Errno) -> Answer {
    let held_back = HeldBack::new();
    if take(&held_back).is_none() {
        return taken();
    }
    if nap.thread != ulocks_core::tid::current() {
        List::current().set_pending(0);
        return Err(error); // A child of fork, made by a handler: the set is its parent's.
    }
    withdraw(nap, error)
}
