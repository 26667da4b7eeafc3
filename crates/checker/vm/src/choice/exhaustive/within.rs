//! An exploration of the executions that keep to a limit of preemptions.
//!
//! # What counts
//! An execution has so many *surprises* at most:
//!
//! | event | surprises |
//! |---|---|
//! | another thread than the one whose turn it is goes on, which could and has not yielded | 1 |
//! | another thread goes on, and the one whose turn it was cannot, or has yielded | 0 |
//! | a load or a read-modify-write reads another message than the newest | 1 |
//! | a store goes to another place than the last | 1 |
//! | a weak exchange fails for no reason | 1 |
//!
//! What a thread does with old messages, it could nearly always have done by running earlier, for a
//! preemption. If that were free, an execution without preemptions could have any number of
//! exchanges that fail one after the other.
//!
//! # Preconditions
//! Those of [`exhaustive`](super). Two operations on one word change places if both read: an
//! operation finds the same message newest then, and so has the same surprises.
//!
//! # What is left out
//! The thread whose turn it is, if it can go on and has not yielded, is the *owner* of a question.
//! It is tried first. A question without an owner has all threads tried, and changes no sleep set.
//!
//! 1. If another thread is tried in place of the owner, the owner *sleeps*: it is not tried until
//!    something runs after which its operation `a` is not covered, or the thread whose turn it is
//!    cannot go on, and waits for something after which `a` is not covered.
//! 2. Another thread than the owner is tried only if `a`, once it ran, is in a race with a later
//!    operation or arrival, or keeps a thread from running. Then all others are tried.
//!
//! # Why nothing is lost
//! Take the executions that `w`, which begins at some question, and keeps to the limit, turns into
//! by moves, and among them the one that the search would come to first. The claim is that it is
//! run, if no thread that sleeps at the question is run by it before it is woken. By induction from
//! the leaves of the tree:
//!
//! - It begins with the owner, or there is no owner. Then what it begins with is tried, and what
//!   follows keeps to the condition of the claim.
//! - It begins with `X`, another thread's operations, and `a` comes later or not at all. If nothing
//!   in `X` wakes the owner, move `a` to the front. That has no more surprises. The owner is left
//!   after `a` in place of before it. What `a` lets go on are not those that wait in `X`, or they
//!   would have woken the owner. A thread that joins the owner's may; then `a` was the last of the
//!   owner, which is left for nothing. Where `a` stood, two switches become one. Each operation
//!   finds the same messages newest. So there is one which the search comes to earlier, a
//!   contradiction.
//! - Something wakes the owner; let `x` be the first that does. `a`, and then `X` up to `x`, has no
//!   more surprises than `w`, if `a` is answered tamely. So by induction one that it turns into was
//!   run. In it `x` runs or arrives, and is in a race with `a`, since what is between them would
//!   have woken the owner before `x`; or `a` kept the thread of `x` from running, which had
//!   arrived. Therefore `X` is tried.
//!
//! Source: K. Coons, M. Musuvathi, K. McKinley, *Bounded Partial-Order Reduction*, OOPSLA 2013,
//! which adds the questions at which a thread got its turn. Here those are questions without an
//! owner, unless the turn was a preemption.

use super::super::footprint::Relation;
use super::{Candidate, Exhaustive, Footprint, Node};

/// Whose turn it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Turn {
    /// The thread that loses its turn if another one is chosen.
    pub(crate) owner: Option<usize>,
    /// What the thread whose turn it was waits for, if it cannot go on.
    pub(crate) waits: Option<Footprint>,
}

/// The threads that need not be tried.
#[derive(Clone, Debug, Default)]
pub(super) struct Sleepers(Vec<Candidate>);

impl Sleepers {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn contains(&self, candidate: &Candidate) -> bool {
        self.0.contains(candidate)
    }

    /// This is run, or is waited for by the thread whose turn it is.
    fn wake(&mut self, by: Footprint, covered: Relation) {
        self.0.retain(|sleeper| covered(sleeper.footprint, by));
    }
}

impl Exhaustive {
    /// The next question is asked under a limit, among some of `enabled`.
    pub(super) fn take_turns(&mut self, turn: Turn, enabled: &[Candidate]) {
        if self.is_redundant {
            return;
        }
        self.turn = Some(turn);
        if self.all_orders {
            self.sleepers.clear();
        }
        if let Some(footprint) = turn.waits {
            self.sleepers.wake(footprint, self.covered);
        }
        if self.depth == self.nodes.len() {
            self.plan_what_was_kept_from_running(enabled);
        }
    }

    /// `ran` is run, where `enabled` could.
    pub(super) fn pass_turn(&mut self, ran: Candidate, enabled: &[Candidate]) {
        let Some(Turn { owner, .. }) = self.turn else { return };
        let loses =
            |candidate: &&Candidate| Some(candidate.thread) == owner && candidate.thread != ran.thread;
        self.sleepers.0.extend(enabled.iter().find(loses));
        self.sleepers.wake(ran.footprint, self.covered);
    }

    /// Has all open entries of `node` tried.
    pub(super) fn plan_all(&mut self, node: usize) {
        let Node::Thread { planned, end, .. } = &mut self.nodes[node] else {
            unreachable!("a thread's node")
        };
        *planned = *end;
    }
}
