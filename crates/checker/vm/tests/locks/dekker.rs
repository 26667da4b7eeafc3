//! Exclusion of two threads without read-modify-writes: Dekker's handshake and Peterson's lock,
//! with fences.
//!
//! # Dekker's handshake
//! Each thread raises its flag, and enters if the other's is down; otherwise it gives up. Store
//! buffering is what it has to be kept from: each reads the other's flag as it was before. One
//! `SeqCst` fence in each thread, between the store and the load (F1), forbids that; one alone does
//! not.
//!
//! # Peterson's lock (IPL 1981)
//! Each thread raises its flag, gives the turn to the other, and waits until the other's flag is
//! down or the turn is its own. Two fences:
//! - (F1) between the store of the turn and the loads, against store buffering as above;
//! - (F2) between the store of the flag and the store of the turn. Without it, what a thread gives
//!   up may come *before* what the other gave up in the modification order of the turn, although
//!   the other has not seen its flag: thread 1 finds the turn given to it and enters, thread 0
//!   finds the flag of thread 1 down and enters too. (Two stores of one location in an order that
//!   no load has shown: the shape R of the litmus tests.)
//!
//! # Ordering
//! A flag goes down with Release and is read with Acquire. A thread that enters on the turn has to
//! have seen the section of the other as well, if there was one: a thread that has left and come
//! back stores the turn with Release, and it is read with Acquire.

use super::Exclusive;
use ulocks_vm::sync::Ordering::{Acquire, Relaxed, Release, SeqCst};
use ulocks_vm::sync::{AtomicU32, fence, spin_until};

/// What is wrong with the handshake, or the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// No thread has (F1).
    NoFence,
    /// This thread lacks (F1).
    NoFenceIn(usize),
    /// This thread's (F1) is AcqRel only.
    WeakFenceIn(usize),
    /// No thread has (F2). Only Peterson's lock has it.
    NoSecondFence,
    /// Flags go down with Relaxed.
    RelaxedExit,
    /// Flags are read with Relaxed.
    RelaxedLook,
}

fn first_fence(bug: Option<Bug>, me: usize) {
    match bug {
        Some(Bug::NoFence) => {}
        Some(Bug::NoFenceIn(thread)) if thread == me => {}
        Some(Bug::WeakFenceIn(thread)) if thread == me => fence(ulocks_vm::sync::Ordering::AcqRel),
        _ => fence(SeqCst),
    }
}

fn lower(flag: &AtomicU32, bug: Option<Bug>) {
    flag.store(0, if bug == Some(Bug::RelaxedExit) { Relaxed } else { Release });
}

fn is_down(flag: &AtomicU32, bug: Option<Bug>) -> bool {
    flag.load(if bug == Some(Bug::RelaxedLook) { Relaxed } else { Acquire }) == 0
}

/// Dekker's handshake, for threads 0 and 1.
pub struct Handshake {
    flags: [AtomicU32; 2],
    bug: Option<Bug>,
}

impl Handshake {
    pub fn new(bug: Option<Bug>) -> Self {
        Self { flags: [AtomicU32::new(0), AtomicU32::new(0)], bug }
    }

    /// Runs `section` unless the other thread is inside, or about to be. Whether it did.
    pub fn try_hold(&self, me: usize, section: impl FnOnce()) -> bool {
        self.flags[me].store(1, Relaxed);
        first_fence(self.bug, me); // (F1)
        let entered = is_down(&self.flags[1 - me], self.bug);
        if entered {
            section();
        }
        lower(&self.flags[me], self.bug);
        entered
    }
}

/// Peterson's lock, for threads 0 and 1.
pub struct Peterson {
    flags: [AtomicU32; 2],
    /// Which thread goes first if both want to.
    turn: AtomicU32,
    bug: Option<Bug>,
}

impl Peterson {
    pub fn new(bug: Option<Bug>) -> Self {
        Self { flags: [AtomicU32::new(0), AtomicU32::new(0)], turn: AtomicU32::new(0), bug }
    }
}

impl Exclusive for Peterson {
    fn hold(&self, me: usize, section: impl FnOnce()) {
        let other = 1 - me;
        self.flags[me].store(1, Relaxed);
        if self.bug != Some(Bug::NoSecondFence) {
            fence(SeqCst); // (F2)
        }
        self.turn.store(other as u32, Release);
        first_fence(self.bug, me); // (F1)
        spin_until(|| is_down(&self.flags[other], self.bug) || self.turn.load(Acquire) == me as u32);
        section();
        lower(&self.flags[me], self.bug);
    }
}
