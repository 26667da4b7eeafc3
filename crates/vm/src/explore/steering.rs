//! What of an execution is varied: the limit of preemptions, and parts that the model does not want
//! to vary.

use super::bounds::Bound;
use super::machine::Machine;
use crate::choice::{Footprint, Strategy as _};
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
    /// How often a thread has lost its turn although it could go on.
    preemptions: u32,
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

    pub(super) fn yields(&mut self) {
        self.has_yielded = true;
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
        self.steering.yields();
        self.choices.yielded(self.current);
    }

    /// What a yield touches: nothing. By chance it is a step at which others may go first.
    pub(super) fn yielding(&self) -> Footprint {
        if self.is_systematic { Footprint::Local } else { Footprint::Everything }
    }

    /// Whether threads may be kept from going by what they do not touch.
    pub(super) fn is_restricted(&self) -> bool {
        self.config.preemptions.is_some() || self.steering.was_tame
    }

    /// Leaves those candidates that may be chosen.
    pub(super) fn restrict_enabled(&mut self) {
        let turn = self.steering.turn;
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
        let Some(most) = self.config.preemptions else { return };
        if self.steering.preemptions < most || self.steering.has_yielded {
            return;
        }
        if let Some(own) = self.enabled.iter().position(|candidate| candidate.thread == turn) {
            self.enabled.swap(0, own);
            self.enabled.truncate(1);
            if let Some(at) = self.threads[turn].at {
                self.hit_if(true, Bound::Preemptions, at);
            }
        }
    }

    /// `thread` was chosen among the enabled, for an operation that others can tell.
    pub(super) fn takes_its_turn(&mut self, thread: usize) {
        let steering = &mut self.steering;
        if thread != steering.turn {
            let could_go_on = self.enabled.iter().any(|candidate| candidate.thread == steering.turn);
            steering.preemptions += u32::from(could_go_on && !steering.has_yielded);
            steering.turn = thread;
        }
        steering.has_yielded = false;
    }
}
