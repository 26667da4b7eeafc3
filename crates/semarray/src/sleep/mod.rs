//! Sleeping, giving up, growing old.
//!
//! | a sleeper's | who | how |
//! |---|---|---|
//! | being told | whoever took its node out of its queue, after publishing | (O1) |
//! | giving up, with a simple node | itself, with the `LOCK` of its cell | finds the node queued, and takes it out |
//! | giving up, with a complex node | itself, with `C` and its cells | the same, and serves those who stopped for it |
//! | growing old | itself, when its time has come, with `C` | is among the elders from then on |
//!
//! Exactly one of being told and giving up wins, since a node leaves its queue once. If it was not
//! in its queue any more, its set has been performed, or has failed, and the word about it is on
//! its way.

pub mod groups;
pub mod slots;

use crate::Error;
use crate::array::InOneProcess;
use crate::node::{Node, Outcome};
use crate::raw::{RawSemArray, Wait};
use crate::session::Heap;
use crate::session::{Obstacle, Session};
use crate::sleep::groups::{Seat, Slept};
use core::time::Duration;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::spin;
use ulocks_core::time::Deadline;

/// After how long the eldest lets those pass that stop for it, at the earliest; each time after
/// twice as long. So they wait for it no longer than it has slept itself,
const LET_PASS_AFTER: Duration = Duration::from_millis(10);
/// and no longer than this.
const LET_PASS_LATEST: Duration = Duration::from_secs(1);

/// A node that was put in a queue.
pub(crate) struct Queued {
    pub seat: Seat,
    pub complex: bool,
    /// When it is an elder next, or lets others pass.
    pub ages_after: Option<Duration>,
}

impl<P: InOneProcess> RawSemArray<P> {
    /// Waits until `node` is told, or gives up.
    pub(crate) fn sleep(&self, node: &Node, queued: Queued, wait: Wait) -> Result<(), Error> {
        self.meter.count(Event::Contended);
        let completed = || node.outcome() != Outcome::Pending;
        if spin::first_in_line::<P>(false, completed) {
            self.meter.count(Event::Spun);
            queued.seat.give_up();
            return self.result(node);
        }
        self.meter.count(Event::Slept);
        let mut ages = queued.ages_after.map(|after| {
            // An elder from the start: its time to let others pass comes next.
            let after = if after.is_zero() { LET_PASS_AFTER } else { after };
            (after, Deadline::after(after))
        });
        loop {
            let (until, is_age) = Deadline::earlier(wait.deadline(), ages.map(|(_, at)| at));
            match queued.seat.sleep(completed, until, wait.is_interruptible()) {
                Slept::TimedOut if is_age => {
                    self.become_aged(node);
                    ages = ages.map(|(after, _)| {
                        let next = after.saturating_mul(2).clamp(LET_PASS_AFTER, LET_PASS_LATEST);
                        (next, Deadline::after(next))
                    });
                }
                Slept::TimedOut if self.give_up(node, &queued) => return Err(Error::TimedOut),
                Slept::Interrupted if self.give_up(node, &queued) => return Err(Error::Interrupted),
                Slept::TimedOut | Slept::Interrupted => {
                    queued.seat.sleep(completed, None, false);
                    return self.result(node);
                }
                _ => return self.result(node),
            }
        }
    }

    fn result(&self, node: &Node) -> Result<(), Error> {
        match node.outcome() {
            Outcome::Done => Ok(()),
            Outcome::WouldBlock => Err(Error::WouldBlock),
            Outcome::Closed => Err(Error::Closed),
            Outcome::OutOfRange(at) => Err(self.out_of_range(&node.ops()[at])),
            Outcome::Pending => unreachable!("a waiter returns when its set has an outcome"),
        }
    }

    /// Takes the node out of its queue; false if somebody has done so already.
    #[cold]
    fn give_up(&self, node: &Node, queued: &Queued) -> bool {
        let here = 0;
        let mut session = Session::new(self, &here);
        let locked =
            if queued.complex { Err(Obstacle::NeedsArrayLock) } else { session.lock_all(&node.ops()[..1]) };
        let open = match locked {
            Ok(()) => true,
            Err(Obstacle::Closed) => false,
            Err(_) => {
                session = Session::with_array_lock(self, &here);
                queued.complex || session.lock(node.ops()[0].index)
            }
        };
        // SAFETY: a simple node's queue is guarded by its cell, which is locked, and a complex
        // one's by C. If the array was closed, nobody is in a queue, and there is nothing to look
        // at.
        let is_queued = open && unsafe { node.is_queued() };
        if is_queued {
            // SAFETY: the node is in its queue, and so it and its neighbours are this session's, as
            // is what it watches.
            unsafe {
                if session.has_array_lock {
                    let mut heap = Heap::new();
                    session.leave(node, &mut heap);
                    session.serve(heap);
                } else {
                    session.take_out(node);
                }
            }
        }
        session.publish();
        if is_queued {
            queued.seat.give_up();
        }
        is_queued
    }

    /// Makes an elder of a node that has slept for long. If it is the eldest already, lets those
    /// pass that stop for it.
    #[cold]
    fn become_aged(&self, node: &Node) {
        let here = 0;
        let mut session = Session::with_array_lock(self, &here);
        if session.is_oldest_aged(node) {
            session.let_pass();
        } else {
            // SAFETY: with C the node is this session's while it is queued.
            unsafe {
                if node.is_queued() && !node.links(|links| links.aged) {
                    session.make_aged(node);
                }
            }
        }
        session.publish();
    }
}
