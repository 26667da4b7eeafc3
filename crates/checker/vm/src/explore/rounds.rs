//! Busy-waits: what a fruitless round has read, and what lets its thread go on. Rounds are those of
//! [`spin_until`](crate::sync::spin_until), and those that `loops.rs` recognises.
//!
//! A round that is repeated with nothing new to see would do the same again. So its thread waits
//! until one of the words it looked at can show it another value, or until the round could go
//! otherwise by itself; and then it has to see one.
//!
//! # Looks that come too early
//! Where all executions are tried, the thread goes on by no new value: it *waits in vain*. For each
//! execution with a fruitless round there is one without it, which comes to the same end
//! (`loops.rs`, second argument), and in which the thread looks later. That one is tried. The
//! others go on to their end, so that their races with the look are found. Then:
//!
//! | one of the words can show the thread another value | the execution |
//! |---|---|
//! | yes | repeats another, and counts as redundant |
//! | no | is one in which the thread waits for ever |
//!
//! To the reduction, it is a thread that has no further step, and a deadline that comes later is
//! one. A ticket lock of three threads has 6 executions that count, one for each order of its
//! owners, and 66 redundant ones; before there were 190 and 30. With four threads it has 24 and
//! 1,122; before there were 38,241 and 4,731.
//!
//! The thread goes on by new values, as by chance, in these cases:
//! - Under a limit of preemptions. To switch from a thread that waits costs none, and in the
//!   execution without the fruitless round the switch may be one.
//! - With handlers or deaths: where a thread stands when it is struck makes a difference.
//! - Where the model has said that something is not varied: then no other execution is tried.
//! - From the first fair yield on: `yields.rs` says why.
//! - A thread whose round of [`spin_until`](crate::sync::spin_until) has changed something, even if
//!   it has put it back, or has slept: another thread may have seen that.

use super::bounds::Bound;
use super::machine::{Machine, Status};
use super::story::Said;
use super::words::{chooser, number};
use crate::choice::{Footprint, Kind, Strategy as _};
use crate::engine::At;
use crate::memory::{Loc, MsgId};
use core::time::Duration;

/// How many rounds spinners do in an execution before they count as stuck. The loom models of sdd
/// 4.8.11, whose epochs go on by the waits of their users, need 3 and fail with 2. The rest is a
/// margin: it is spent once, in an execution that fails.
const LAST_LOOKS: u32 = 100;

/// A word that a spinning thread looked at, and what it saw.
#[derive(Clone, Copy)]
pub(super) struct Look {
    pub(super) loc: Loc,
    pub(super) message: MsgId,
    pub(super) value: u64,
    /// What the round read before anything else; `None` if it began by writing the word.
    pub(super) first: Option<u64>,
}

/// One round of a busy-wait: what its fruitlessness depends on.
#[derive(Default)]
pub(super) struct Round {
    pub(super) is_open: bool,
    /// It has changed something, and put it back: a lock, a count; or its thread has slept.
    pub(super) changes: bool,
    /// By word, what was seen or written last.
    pub(super) looks: Vec<Look>,
    /// The next round may end otherwise although no thread does anything: this one had an exchange
    /// fail for no reason.
    pub(super) again: bool,
    /// The earliest deadline that had not passed.
    pub(super) deadline: Option<Duration>,
}

impl Round {
    /// Whether the next round may end otherwise although no thread does anything. Also if a word
    /// has another value now than this round found: it changed the word, or saw two values of it.
    /// What it wrote before it read, and what it put back, the next round does again.
    pub(super) fn goes_on(&self) -> bool {
        self.again || self.looks.iter().any(|look| look.first.is_some_and(|first| first != look.value))
    }

    /// The thread changes something, or sleeps.
    pub(super) fn changes_something(&mut self) {
        self.changes |= self.is_open;
    }

    /// One more look. A word that was seen before counts with what it shows now.
    pub(super) fn look(&mut self, look: Look) {
        match self.looks.iter_mut().find(|known| known.loc == look.loc) {
            Some(known) => *known = Look { first: known.first, ..look },
            None => self.looks.push(look),
        }
    }

    /// The looks of a wait inside of it.
    fn has_had(&mut self, inner: Self) {
        self.again |= inner.again;
        self.changes |= inner.changes;
        self.deadline = self.deadline.into_iter().chain(inner.deadline).min();
        inner.looks.into_iter().for_each(|look| self.look(look));
    }

    /// What a thread that has done this round touches when it begins the next one.
    fn footprint(&self) -> Footprint {
        match self.looks.as_slice() {
            // The next round begins at once, and others may run before it looks at anything.
            _ if self.goes_on() => Footprint::Local,
            [look] if self.deadline.is_none() => Footprint::Read(number(look.loc)),
            _ => Footprint::Everything,
        }
    }

    /// Whether nothing that the machine knows of can make the next round another.
    pub(super) fn is_blind(&self) -> bool {
        self.looks.is_empty() && self.deadline.is_none()
    }
}

impl Machine<'_, '_> {
    pub(super) fn begin_round(&mut self) {
        let thread = &mut self.threads[self.current];
        if thread.round.is_open {
            // A wait inside of a round of another one.
            thread.outer_rounds.push(core::mem::take(&mut thread.round));
        }
        let round = &mut thread.round;
        round.looks.clear();
        *round = Round { is_open: true, looks: core::mem::take(&mut round.looks), ..Round::default() };
    }

    /// The wait is over. What it has done belongs to the round around it, if there is one.
    pub(super) fn leave_round(&mut self) {
        let thread = &mut self.threads[self.current];
        thread.round.is_open = false;
        if let Some(outer) = thread.outer_rounds.pop() {
            let inner = core::mem::replace(&mut thread.round, outer);
            thread.round.has_had(inner);
        }
    }

    /// A handler begins: its busy-waits are not those of the thread it interrupts.
    pub(super) fn set_round(&mut self, round: Round) -> Round {
        core::mem::replace(&mut self.threads[self.current].round, round)
    }

    /// Whether a thread that has done a fruitless round does not go on by a new value in this
    /// execution.
    pub(super) fn waits_in_vain(&self) -> bool {
        self.is_systematic
            && self.redundant_since.is_none()
            && self.config.preemptions.is_none()
            && !self.config.lets_die()
            && !self.linux.has_handlers()
            && !self.made_way
            && !self.keeps_its_turn()
    }

    /// Whether one of the words that a spinning thread looked at can show it another value.
    pub(super) fn can_see_another(&self, thread: usize) -> bool {
        let looks = &self.threads[thread].round.looks;
        looks.iter().any(|look| self.memory.has_other(look.loc, look.message, look.value))
    }

    /// Nobody can go on. Whether a thread could if it had looked later.
    pub(super) fn somebody_looked_too_early(&self) -> bool {
        let spins = |&thread: &usize| {
            self.threads[thread].status == Status::Spinning && !self.threads[thread].round.changes
        };
        self.waits_in_vain()
            && (0..self.threads.len()).filter(spins).any(|thread| self.can_see_another(thread))
    }

    /// Nobody can go on. Lets one of those that spin do one more round, in turn, as far as they
    /// may: what ends their wait can lie where the machine does not see it, in a static of the
    /// program.
    pub(super) fn lets_spinners_look_again(&mut self) -> bool {
        if self.last_looks == LAST_LOOKS || self.steps > self.config.max_steps / 2 {
            return false;
        }
        let spins = |&thread: &usize| self.threads[thread].status == Status::Spinning;
        let spinners: Vec<usize> = (0..self.threads.len()).filter(spins).collect();
        let Some(turn) = (self.last_looks as usize).checked_rem(spinners.len()) else { return false };
        self.last_looks += 1;
        self.threads[spinners[turn]].round.again = true;
        true
    }

    pub(super) fn end_round(&mut self, at: At) -> Footprint {
        self.choices.yielded(self.current);
        self.moves_on();
        let round = &mut self.threads[self.current].round;
        round.is_open = false;
        let is_fruitless = !round.goes_on();
        self.hit_if(is_fruitless, Bound::Rounds, at);
        self.waiting(&self.threads[self.current].round)
    }

    /// What a thread touches that has done this round and waits. A word that stands for more, such
    /// as whether a thread has returned, changes with steps that touch others.
    pub(super) fn waiting(&self, round: &Round) -> Footprint {
        match round.footprint() {
            Footprint::Read(word) if self.asked.iter().any(|&loc| number(loc) == word) => {
                Footprint::Everything
            }
            footprint => footprint,
        }
    }

    /// The next round has to see something new: one of the values that let the thread go, if it was
    /// a value.
    pub(super) fn look_again(&mut self, at: At) {
        let me = self.current;
        let round = &self.threads[me].round;
        if round.goes_on() || round.deadline.is_some_and(|deadline| deadline <= self.clocks.now()) {
            return;
        }
        let fresh: Vec<Look> = round
            .looks
            .iter()
            .filter(|look| self.memory.has_other(look.loc, look.message, look.value))
            .copied()
            .collect();
        if fresh.is_empty() {
            return; // it has read nothing
        }
        let look = fresh[self.pick(Kind::Message, fresh.len())];
        let mut left_out = false;
        self.memory.raise(
            me,
            look.loc,
            look.message,
            look.value,
            &mut chooser(self.choices, self.config.stale > 0, &mut left_out),
        );
        self.hit_if(left_out, Bound::Stale, at);
        self.tell(at, || Said::Text("looks again".into()));
    }

    /// Remembers what a spinning thread read. A word that it wrote itself counts with what it
    /// wrote.
    pub(super) fn looked(&mut self, loc: Loc, message: MsgId, value: u64, wrote: bool) {
        self.log_look(Look::read(loc, message, value));
        let round = &mut self.threads[self.current].round;
        if round.is_open {
            round.look(Look { loc, message, value, first: (!wrote).then_some(value) });
        }
    }

    /// The next round of a spinning thread may go otherwise by itself.
    pub(super) fn begins_again(&mut self) {
        self.moves_on();
        self.threads[self.current].round.again = true;
    }

    /// A spinning thread has found that a deadline has not passed.
    pub(super) fn saw_deadline(&mut self, moment: Duration) {
        self.log_deadline(moment);
        let round = &mut self.threads[self.current].round;
        if round.is_open {
            round.deadline = Some(round.deadline.map_or(moment, |other| other.min(moment)));
        }
    }
}
