//! Bare busy-waits: loops around loads that do not go through [`spin_until`], recognised as they
//! run.
//!
//! # Protocol
//! Before an operation that may be repeated, its thread is *visited*: its state is noted, as bytes
//! (`frames.rs`). The *log* is what the thread has looked at since the oldest visit.
//!
//! | event | visits and log |
//! |---|---|
//! | a *look* | a visit before it, what it read into the log after it |
//! | any other operation | forgotten |
//! | the first visit of a place | its state is not looked at |
//! | the state equals that of an older visit of the place | the way from there to here is a *fruitless round* |
//!
//! Looks are a load, an update, a fence, a yield, a deadline that has not come, and a futex wait
//! that does not sleep, since the word has changed. Others are a store, a lock or a channel of
//! `sync` that succeeds, a wake-up, sleep, time that passes, plain data written, a choice of the
//! model, a signal, an exchange that fails for no reason, the end of a round of [`spin_until`], and
//! a call that a history records.
//!
//! Equal or not may depend on the run: a hole in a frame may hold what an allocation has left
//! there. At the first visit of a place it is likely to, so that state is not looked at. And a
//! search of all executions is told, as a fact, at which visit the state was the same. Where it
//! comes by the same answers again, it gives the fact of the first time. What is a wait once, and
//! another round elsewhere, loses nothing: an execution without fruitless rounds has no such fact.
//!
//! A thread that has done a fruitless round waits as in `rounds.rs`, with the same code: until one
//! of the words that it looked at in the round can show another value, or a deadline comes. Then it
//! has to see one. If the round saw two values of one word, its own update or another thread
//! changed it. Then the next round can be another by itself, and the thread does not wait.
//!
//! # Why no execution is lost
//! 1. Equal bytes are the same state of the thread: the same instruction, the same locals. A loop
//!    that counts its rounds has another state in each, and is not recognised before the count is
//!    over. So a loop with a bound runs to its end.
//! 2. Take an execution with a fruitless round in which each word showed one value. Take the
//!    round's operations out. They changed no value, woke no thread, and took no wake-up, so every
//!    other operation can be answered as before. An update that was taken out leaves its reader the
//!    value that it had read. Reads and fences only added order. So what is left is an execution.
//!    It comes to the same end, and has one fruitless round less.
//! 3. So every end is that of an execution in which no thread does a fruitless round, except for
//!    threads that wait for ever: one round of them is left, which found what is newest. In those a
//!    thread never waits before its last round, and so each is tried.
//!
//! What is explored are true executions: a thread that waits is one that is not scheduled. An
//! execution with a fruitless round is followed, too, for what races with it; `rounds.rs` says when
//! it counts.
//!
//! # Assumptions
//! - Beside words and cells of the machine, a round changes nothing that outlives it but the
//!   thread's own stack. A loop that counts in a `Box` or in a static does. What is left out is
//!   reported as [`Bound::Rounds`].
//! - A state that comes back has the same bytes. A loop whose rounds allocate may be given
//!   other addresses. It is recognised later, or not at all.
//!
//! Sources: J. Oberhauser et al., *VSync*, ASPLOS 2021 (await model checking, from which the
//! argument is). M. Kokologiannakis, X. Ren, V. Vafeiadis, *Dynamic Partial Order Reductions for
//! Spinloops*, FMCAD 2021 (there, loops are found in the code).
//!
//! [`spin_until`]: crate::sync::spin_until

use super::bounds::Bound;
use super::machine::Machine;
use super::rounds::{Look, Round};
use crate::choice::{Footprint, Strategy as _};
use crate::engine::At;
use crate::fibers;
use crate::memory::{Loc, MsgId};
use core::ops::Range;
use core::time::Duration;
use std::cell::RefCell;

/// A loop whose rounds take more operations than that is not recognised.
const LONGEST_ROUND: usize = 1_024;

/// Nor is one whose rounds have states of more bytes than that together.
const MOST_BYTES: usize = 1 << 20;

/// A state that a thread was in.
struct Visit {
    at: At,
    /// A digest of its registers, by which most others are told from it.
    registers: u64,
    /// Where its bytes are; there are none if they were not looked at.
    bytes: Range<usize>,
    /// How much had been logged by then.
    looks: usize,
    deadlines: usize,
}

/// What a thread has done since it changed something last.
#[derive(Default)]
pub(super) struct Loops {
    visits: Vec<Visit>,
    bytes: Vec<u8>,
    looks: Vec<Look>,
    deadlines: Vec<Duration>,
}

thread_local! {
    /// What threads of earlier executions have allocated.
    static SPARE: RefCell<Vec<Loops>> = const { RefCell::new(Vec::new()) };
}

impl Loops {
    pub(super) fn new() -> Self {
        SPARE.with_borrow_mut(Vec::pop).unwrap_or_default()
    }

    /// The execution is over; what was allocated serves the next one.
    pub(super) fn recycle(mut self) {
        if self.bytes.capacity() > 0 {
            self.forget();
            SPARE.with_borrow_mut(|spare| spare.push(self));
        }
    }

    fn forget(&mut self) {
        self.visits.clear();
        self.bytes.clear();
        self.looks.clear();
        self.deadlines.clear();
    }

    /// Whether the thread was here before.
    fn was_at(&self, at: At) -> bool {
        self.visits.iter().any(|visit| core::ptr::eq(visit.at, at))
    }

    /// Notes the state of the thread that runs, if it `is_clean`. The visit at which the thread was
    /// in the same state, if there is one.
    fn visit(&mut self, at: At, is_clean: bool) -> Option<u32> {
        if self.visits.len() == LONGEST_ROUND || self.bytes.len() >= MOST_BYTES {
            self.forget();
        }
        let start = self.bytes.len();
        if is_clean && !fibers::state(&mut self.bytes) {
            self.forget();
            return None;
        }
        let (before, now) = self.bytes.split_at(start);
        let registers = digest(now);
        let is_same = |visit: &Visit| {
            core::ptr::eq(visit.at, at) && visit.registers == registers && before[visit.bytes.clone()] == *now
        };
        let same = self.visits.iter().rposition(is_same).filter(|_| is_clean);
        let bytes = start..self.bytes.len();
        let (looks, deadlines) = (self.looks.len(), self.deadlines.len());
        self.visits.push(Visit { at, registers, bytes, looks, deadlines });
        same.map(|visit| visit as u32)
    }

    /// The round that began with this visit.
    fn round(&self, visit: u32) -> Round {
        let Visit { looks, deadlines, .. } = self.visits[visit as usize];
        let mut round = Round { is_open: true, ..Round::default() };
        for &look in &self.looks[looks..] {
            round.again |= round.looks.iter().any(|known| known.loc == look.loc && known.value != look.value);
            round.look(look);
        }
        round.deadline = self.deadlines[deadlines..].iter().min().copied();
        round
    }
}

/// The first words of a state are the registers; a loop that counts does so in one of them.
fn digest(state: &[u8]) -> u64 {
    let words =
        state.chunks_exact(8).take(6).map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes")));
    words.fold(0, |digest, word| (digest.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95))
}

impl Machine<'_, '_> {
    /// The thread that runs is about to do something that may be part of a busy-wait. The
    /// footprint of its wait, if it has done a fruitless round; and the round of the [`spin_until`]
    /// that it is in, for [`Self::go_on_from`].
    ///
    /// [`spin_until`]: crate::sync::spin_until
    pub(super) fn visit(&mut self, at: At) -> Option<(Footprint, Round)> {
        let loops = &mut self.threads[self.current].loops;
        let is_back = loops.was_at(at);
        let same = loops.visit(at, is_back);
        // Where it came to the same place before, by the same answers, it goes on as it did then.
        let same = if is_back { self.choices.fact(same)? } else { return None };
        let loops = &mut self.threads[self.current].loops;
        let round = loops.round(same);
        loops.forget();
        if round.goes_on() || round.is_blind() {
            return None;
        }
        self.hit_if(true, Bound::Rounds, at);
        self.choices.yielded(self.current);
        let footprint = self.waiting(&round);
        Some((footprint, self.set_round(round)))
    }

    /// The wait is over: the next round begins in the same state.
    pub(super) fn go_on_from(&mut self, outer: Round, at: At) {
        self.look_again(at);
        self.set_round(outer);
        let loops = &mut self.threads[self.current].loops;
        loops.forget();
        loops.visit(at, true);
    }

    /// The thread that runs changes something.
    pub(super) fn changes_something(&mut self) {
        self.moves_on();
        if let Some(thread) = self.threads.get_mut(self.current) {
            thread.yields.is_busy();
            thread.round.changes_something();
        }
    }

    /// The thread that runs changes something, or its next round may be another by itself.
    pub(super) fn moves_on(&mut self) {
        if let Some(thread) = self.threads.get_mut(self.current) {
            thread.loops.forget();
        }
    }

    /// The thread that runs has read this, or put it back.
    pub(super) fn log_look(&mut self, look: Look) {
        self.threads[self.current].loops.looks.push(look);
    }

    /// The thread that runs has found that a deadline has not passed.
    pub(super) fn log_deadline(&mut self, moment: Duration) {
        self.threads[self.current].loops.deadlines.push(moment);
    }
}

impl Look {
    /// `value` was read from `message`.
    pub(super) fn read(loc: Loc, message: MsgId, value: u64) -> Self {
        Self { loc, message, value, first: Some(value) }
    }
}
