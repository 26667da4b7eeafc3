//! What of an execution is varied: the limit of preemptions, and parts that the model does not want
//! to vary.

use super::bounds::Bound;
use super::machine::Machine;
use crate::choice::{Footprint, Strategy as _, Turn};
use crate::engine;

/// How far the current execution is varied.
#[derive(Default)]
pub(super) struct Steering {
    is_stopped: bool,
    is_skipped: bool,
    was_tame: bool,
    /// Whose turn it is, operations that no other thread can tell aside.
    turn: usize,
    /// The thread whose turn it is has given it away.
    has_yielded: bool,
    /// How often a thread has lost its turn although it could go on, and what else counts as that:
    /// `choice/exhaustive/within.rs` says.
    surprises: u32,
}

impl Steering {
    pub(super) fn steer(&mut self, steering: engine::Steering) {
        self.was_tame = true;
        match steering {
            engine::Steering::Stop => self.is_stopped = true,
            engine::Steering::Resume => self.is_stopped = false,
            engine::Steering::Skip => self.is_skipped = true,
        }
    }

    /// Whether only the tame answers are given.
    pub(super) fn is_tame(&self) -> bool {
        self.is_stopped || self.is_skipped
    }
}

/// From here on this execution is not varied: threads go on as long as they can, and everything
/// else takes the tame answer, until [`resume`]. For the part of a model that is not of interest.
/// The exploration leaves executions out.
pub fn stop() {
    engine::with(|engine| engine.steer(engine::Steering::Stop));
}

/// From here on this execution is varied again.
pub fn resume() {
    engine::with(|engine| engine.steer(engine::Steering::Resume));
}

/// As [`stop`], for the rest of the execution.
pub fn skip() {
    engine::with(|engine| engine.steer(engine::Steering::Skip));
}

impl Machine<'_, '_> {
    pub(super) fn yielded(&mut self) {
        self.steering.has_yielded |= self.current == self.steering.turn;
        self.choices.yielded(self.current);
    }

    /// What a yield touches: nothing. By chance it is a step at which others may go first.
    pub(super) fn yielding(&self) -> Footprint {
        if self.is_systematic { Footprint::Local } else { Footprint::Everything }
    }

    /// Whether a thread may have to go on since the model does not want this part to be varied.
    pub(super) fn keeps_its_turn(&self) -> bool {
        self.steering.was_tame
    }

    /// Whether there may be no more surprises.
    pub(super) fn may_not_surprise(&self) -> bool {
        self.config.preemptions.is_some_and(|most| self.steering.surprises >= most)
    }

    /// The bound that leaves out a surprise; `otherwise` where there may be some.
    pub(super) fn bound(&self, otherwise: Bound) -> Bound {
        if self.may_not_surprise() { Bound::Preemptions } else { otherwise }
    }

    /// What has happened counts as a preemption does, if it is a surprise.
    pub(super) fn count_surprise(&mut self, is_surprise: bool) {
        self.steering.surprises += u32::from(is_surprise);
    }

    /// Whose turn it is, the threads that can go being known.
    fn turn(&self) -> Turn {
        let turn = self.steering.turn;
        if self.enabled.iter().any(|candidate| candidate.thread == turn) {
            return Turn { owner: (!self.steering.has_yielded).then_some(turn), waits: None };
        }
        let waits = self.threads.get(turn).filter(|thread| thread.waits());
        Turn { owner: None, waits: waits.map(|thread| thread.footprint) }
    }

    /// Leaves those candidates that may be chosen.
    pub(super) fn restrict_enabled(&mut self) {
        let turn = self.steering.turn;
        if self.config.preemptions.is_some() {
            self.choices.within(self.turn(), &self.enabled);
        }
        if self.enabled.len() < 2 {
            return;
        }
        if self.steering.is_tame() {
            // A thread that yields in a loop has to let others go.
            let next = if self.steering.has_yielded { self.enabled.len() - 1 } else { 0 };
            self.enabled.swap(0, next);
            self.enabled.truncate(1);
            if let Some(at) = self.threads[self.current].at {
                self.hit_if(true, Bound::Stopped, at);
            }
            return;
        }
        if !self.may_not_surprise() || self.steering.has_yielded {
            return;
        }
        if let Some(own) = self.enabled.iter().position(|candidate| candidate.thread == turn) {
            self.enabled.swap(0, own);
            // If it is the clock's turn, which is nowhere, a thread that may not interrupt it says
            // where.
            let at = self.enabled.iter().find_map(|candidate| self.threads.get(candidate.thread)?.at);
            self.enabled.truncate(1);
            if let Some(at) = at {
                self.hit_if(true, Bound::Preemptions, at);
            }
        }
    }

    /// `thread` was chosen among the enabled, for an operation that others can tell.
    pub(super) fn takes_its_turn(&mut self, thread: usize) {
        let steering = &mut self.steering;
        if thread != steering.turn {
            let could_go_on = self.enabled.iter().any(|candidate| candidate.thread == steering.turn);
            steering.surprises += u32::from(could_go_on && !steering.has_yielded);
            steering.turn = thread;
        }
        steering.has_yielded = false;
    }
}
