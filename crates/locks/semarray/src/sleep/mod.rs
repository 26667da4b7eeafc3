//! How a thread waits for its set: it sleeps, is completed, times out, or becomes aged.
//!
//! | what happens to a waiter | by | how |
//! |---|---|---|
//! | it is completed | the session that took its node out of its queue | (O1), after publishing |
//! | it times out, or a signal interrupts it; simple | its own thread, with the cell's `LOCK`; with `COMPLEX`, with the array lock, too | takes the node out, if it is still queued |
//! | the same; complex | its own thread, with the array lock and its cells | the same, and serves the sets that stopped for it |
//! | it becomes aged | its own thread, when the time has come, with the array lock | adds the node to the list of aged sets |
//!
//! A waiter is either completed or times out, never both, because a node leaves its queue once. If
//! a waiter that times out does not find its node queued, a session has served its set, and is
//! about to complete it. The waiter sleeps on until then.

pub mod groups;
pub mod slots;

use crate::Error;
use crate::array::InOneProcess;
use crate::node::{Node, Outcome};
use crate::raw::{RawSemArray, Wait};
use crate::session::{Heap, Obstacle, Session};
use crate::sleep::groups::{Seat, Slept};
use core::time::Duration;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::spin;
use ulocks_core::time::Deadline;

/// How long the oldest aged set waits before it lets the sets pass that stop for it. Each further
/// time it waits twice as long, so no set stops for longer than the aged set has waited.
const LET_PASS_AFTER: Duration = Duration::from_millis(10);
/// The longest of these times.
const LET_PASS_LATEST: Duration = Duration::from_secs(1);

/// What a waiter knows of its node in a queue.
pub(crate) struct Queued {
    pub seat: Seat,
    pub complex: bool,
    /// After how long it becomes aged; `None` without strict fairness.
    pub ages_after: Option<Duration>,
}

impl<P: InOneProcess> RawSemArray<P> {
    /// Waits until `node` is completed, or until it times out.
    pub(crate) fn sleep(&self, node: &Node, queued: Queued, wait: Wait) -> Result<(), Error> {
        self.meter.count(Event::Contended);
        let completed = || node.outcome() != Outcome::Pending;
        if spin::head_waiter::<P>(false, completed) {
            self.meter.count(Event::Spun);
            queued.seat.give_back();
            return self.result(node);
        }
        self.meter.count(Event::Slept);
        let mut ages = queued.ages_after.map(|after| {
            // Aged from the start: next it lets the stopped sets pass.
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
                Slept::TimedOut if self.leave_queue(node, &queued) => return Err(Error::TimedOut),
                Slept::Interrupted if self.leave_queue(node, &queued) => return Err(Error::Interrupted),
                Slept::TimedOut | Slept::Interrupted => {
                    queued.seat.sleep(completed, None, false);
                    return self.result(node);
                }
                _ => return self.result(node),
            }
        }
    }

    /// The result of a call whose set has an outcome.
    fn result(&self, node: &Node) -> Result<(), Error> {
        match node.outcome() {
            Outcome::Done => Ok(()),
            Outcome::WouldBlock => Err(Error::WouldBlock),
            Outcome::Closed => Err(Error::Closed),
            Outcome::OutOfRange(at) => Err(self.out_of_range(&node.ops()[at])),
            Outcome::Pending => unreachable!("a waiter returns when its set has an outcome"),
        }
    }

    /// Takes the node out of its queue; returns false if a session has done so already.
    #[cold]
    fn leave_queue(&self, node: &Node, queued: &Queued) -> bool {
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
        // one's by the array lock. If the array was closed, no node is in a queue, and this one is
        // not read.
        let is_queued = open && unsafe { node.is_queued() };
        if is_queued {
            // SAFETY: the node is in its queue, so it, its neighbours and its watches are this
            // session's.
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
            queued.seat.give_back();
        }
        is_queued
    }

    /// Makes a node aged that has waited for the bound. If it is the oldest aged set already, lets
    /// the sets pass that stop for it.
    #[cold]
    fn become_aged(&self, node: &Node) {
        let here = 0;
        let mut session = Session::with_array_lock(self, &here);
        if session.is_oldest_aged(node) {
            session.let_pass();
        } else {
            // SAFETY: with the array lock the node is this session's while it is queued.
            unsafe {
                if node.is_queued() && !node.links(|links| links.aged) {
                    session.make_aged(node);
                }
            }
        }
        session.publish();
    }
}
