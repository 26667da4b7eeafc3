//! How the calling thread sleeps in a set, and how a signal or a deadline ends that.
//!
//! A handler that runs during the sleep ends it, whatever `SA_RESTART` says, unless its signal
//! comes at the moment of a look (see [`look_after`]). The set stays in the queue until the handler
//! returns, or until the thread makes its next call that needs the array lock. That call, in the
//! handler or after a jump out of it, takes the set out first.

use crate::array::Array;
use crate::queue::{self, Status};
use crate::section::Section;
use crate::sys::{self, Answer, Errno};
use crate::undo;
use core::cell::Cell;
use ulocks_core::sync::Ordering::{Acquire, Release};

/// How long a thread sleeps, in nanoseconds, before it looks whether a process has died that had
/// adjustments.
const LOOK_FOR_DEATHS: u64 = 50_000_000;
/// The same while no other process has any. A thread that was killed after it completed a set, and
/// before it woke the sleeper, delays that by so much.
const LOOK: u64 = 1_000_000_000;

/// When to look next: after `usual`, or up to an eighth later.
///
/// If a signal comes at the moment of the look, its handler runs after the kernel has said that
/// the time is over, and the sleep goes on. So no look comes a round time after the call, as
/// signals of timers do, and two sleepers do not look at the same moments.
fn look_after(now: u64, usual: u64, thread: u32) -> u64 {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15; // 2^64 by the golden ratio: all bits reach the upper ones.
    let mixed = (now ^ u64::from(thread)).wrapping_mul(SPREAD) >> 32;
    now + usual + (usual >> 6) + ((mixed * (usual >> 3)) >> 32)
}

#[derive(Clone, Copy)]
struct Nap {
    array: &'static Array,
    slot: usize,
    thread: u32,
}

thread_local! {
    /// The set in which this thread sleeps.
    static NAP: Cell<Option<Nap>> = const { Cell::new(None) };
    /// What it ended with, if a call of a handler has taken it out.
    static TAKEN: Cell<Answer> = const { Cell::new(Ok(0)) };
}

/// Before a call takes an array lock: ends the set that the thread has left by a handler.
pub fn end_interrupted() {
    let Some(nap) = NAP.take() else { return };
    if nap.thread == ulocks_core::tid::current() {
        TAKEN.set(withdraw(nap, libc::EINTR));
    }
}

/// What the set has ended with; otherwise it is taken out and ends with `error`.
fn withdraw(nap: Nap, error: Errno) -> Answer {
    let sleeper = nap.array.sleeper(nap.slot);
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
    nap.array.let_go();
    answer
}

/// Releases the lock, and sleeps until the set in `slot` has ended, a signal came, or `deadline`
/// has passed, in nanoseconds of CLOCK_MONOTONIC.
pub fn sleep(section: Section, slot: usize, deadline: Option<u64>) -> Answer {
    let array = section.array;
    let nap = Nap { array, slot, thread: section.thread() };
    array.hold_again(); // Until the set is out of the queue.
    let thread = section.release();
    NAP.set(Some(nap));
    let is_due = thread.mask.is_handler_due();
    drop(thread);
    if is_due {
        return end(nap, libc::EINTR);
    }
    let Some(sleeper) = array.sleeper(slot) else { return Err(libc::EIDRM) };
    loop {
        let status = sleeper.status.load(Acquire);
        if NAP.get().is_none() {
            return TAKEN.get();
        }
        if let Some(outcome) = Status(status).outcome() {
            NAP.set(None);
            sleeper.status.store(Status::FREE, Release);
            array.let_go();
            return outcome;
        }
        let now = sys::monotonic();
        if deadline.is_some_and(|deadline| now >= deadline) {
            return end(nap, libc::EAGAIN);
        }
        let usual = if undo::has_others(array) { LOOK_FOR_DEATHS } else { LOOK };
        let look = look_after(now, usual, nap.thread);
        let until = deadline.map_or(look, |deadline| deadline.min(look));
        match sys::wait(&sleeper.status, Status::WAITING, until) {
            Err(libc::EINTR) => return end(nap, libc::EINTR),
            Err(libc::ETIMEDOUT) if undo::has_suspects(array) || array.is_gone() => {
                array.hold_again(); // For the section.
                if let Ok(section) = Section::enter_held(array) {
                    section.leave(); // That looks for the dead, also for one that removed the array.
                } else if array.is_lost() {
                    return end(nap, libc::EIDRM); // Nobody else knows of the set.
                }
            }
            _ => {}
        }
    }
}

/// Ends the sleep with `error`, unless the set has ended already.
fn end(nap: Nap, error: Errno) -> Answer {
    if NAP.take().is_none() {
        return TAKEN.get();
    }
    if nap.thread != ulocks_core::tid::current() {
        return Err(error); // A child of fork, made by a handler: the set is its parent's.
    }
    withdraw(nap, error)
}
