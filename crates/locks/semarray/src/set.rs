//! How a set is performed: at once, or in a session; and how its thread waits for it. The thread
//! sleeps, is completed, times out, or becomes aged.
//!
//! | what happens to a waiter | by | how |
//! |---|---|---|
//! | it is completed | the session that took its node out of its queue | (complete), after publishing |
//! | it times out, or a signal interrupts it; simple | its own thread, with the cell's `LOCK`; with `COMPLEX`, with the array lock, too | takes the node out, if it is still queued |
//! | the same; complex | its own thread, with the array lock and its cells | the same, and serves the sets that stopped for it |
//! | it becomes aged | its own thread, or a session that evaluates the set of a task, when the time has come, with the array lock | adds the node to the list of aged sets |
//!
//! A waiter is either completed or times out, never both, because a node leaves its queue once. If
//! a waiter that times out does not find its node queued, a session has served its set, and is
//! about to complete it. The waiter sleeps on until then.

use crate::Error;
use crate::node::{Node, Outcome, Watch};
use crate::op::Op;
use crate::raw::{Attempt, Fairness, RawSemArray};
use crate::session::{Heap, Obstacle, Session, Stopped};
use crate::sleep::groups::{Seat, Slept};
use crate::word::Stop;
use core::time::Duration;
use smallvec::SmallVec;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::policy::InOneProcess;
use ulocks_core::spin;
use ulocks_core::sync::Ordering::Relaxed;
use ulocks_core::sync::without_unwinding;
use ulocks_core::time::Deadline;

/// How long, at least, the oldest aged set waits before it lets the sets pass that stop for it. The
/// first time is twice the bound, if that is longer. Each further time it waits twice as long, so
/// no set stops for longer than the aged set has waited.
const LET_PASS_AFTER: Duration = Duration::from_millis(10);
/// The longest of these times.
const LET_PASS_LATEST: Duration = Duration::from_secs(1);

/// The clock of a waiting set of an array with strict fairness.
#[derive(Clone, Copy)]
pub(crate) struct Ages {
    after: Duration,
    /// When it becomes aged. If it is aged, when the sets may pass that stop for it.
    at: Deadline,
}

impl Ages {
    /// Of a set that begins to wait, and becomes aged after so long.
    fn after(after: Duration) -> Self {
        // Aged from the start: next it lets the stopped sets pass.
        let after = if after.is_zero() { LET_PASS_AFTER } else { after };
        Self { after, at: Deadline::after(after) }
    }

    /// Its time has come; the next time follows.
    fn go_on(&mut self) {
        let after = self.after.saturating_mul(2).clamp(LET_PASS_AFTER, LET_PASS_LATEST);
        *self = Self { after, at: Deadline::after(after) };
    }

    /// Whether its time has come, which is told once.
    pub fn strikes(&mut self) -> bool {
        let strikes = self.at.has_passed();
        if strikes {
            self.go_on();
        }
        strikes
    }
}

/// How long a set may wait.
#[derive(Clone, Copy, Debug)]
pub enum Wait {
    /// Not at all.
    No,
    /// Until the deadline, or without end if there is none.
    Until(Option<Deadline>),
    /// The same; a signal handler that runs while the set sleeps ends the wait.
    Interruptible(Option<Deadline>),
}

impl Wait {
    fn deadline(self) -> Option<Deadline> {
        match self {
            Self::No => None,
            // The variant says whether a signal ends the wait. A deadline would call it a timeout.
            Self::Until(deadline) | Self::Interruptible(deadline) => deadline.map(Deadline::plain),
        }
    }

    fn is_interruptible(self) -> bool {
        matches!(self, Self::Interruptible(_))
    }
}

/// What a waiter knows of its node in a queue.
pub(crate) struct Queued {
    /// A thread's.
    seat: Option<Seat>,
    complex: bool,
    /// Its clock, as its own thread or task looks at it; `None` without strict fairness.
    pub ages: Option<Ages>,
}

/// How far a set has come that does not wait yet.
pub(crate) enum Begun {
    /// It has ended.
    Ended(Result<(), Error>),
    /// Its node is queued.
    Waits(Queued),
    /// It needs the array lock.
    Unclear,
}

impl<P: InOneProcess> RawSemArray<P> {
    /// Performs the operations, all or none.
    #[inline]
    pub fn apply(&self, ops: &[Op], wait: Wait) -> Result<(), Error> {
        let attempt = match ops {
            [op] => self.perform_one(op),
            _ => self.perform_several(ops),
        };
        match attempt {
            Attempt::Done => {}
            Attempt::Blocks(at) if ops[at].no_wait || matches!(wait, Wait::No) => {
                return Err(self.check(ops).err().unwrap_or(Error::WouldBlock));
            }
            _ => self.perform_slowly(ops, wait).inspect_err(|_| self.meter.gave_up())?,
        }
        self.meter.permitted();
        Ok(())
    }

    #[cold]
    fn perform_slowly(&self, ops: &[Op], wait: Wait) -> Result<(), Error> {
        self.check(ops)?;
        // Once a queue names the node and its watches, a panic must not free them.
        without_unwinding(|| {
            let node = Node::new(ops);
            let mut watches = SmallVec::<[Watch; 8]>::new();
            let mut begun = self.perform_without_array_lock(&node, wait);
            if matches!(begun, Begun::Unclear) {
                // Made before anything is locked, because the watches of a long set are allocated.
                if !matches!(wait, Wait::No) {
                    watches.extend(ops.iter().map(|_| Watch::new(&node)));
                }
                begun = self.perform_with_array_lock(&node, &watches, wait);
            }
            match begun {
                Begun::Waits(queued) => self.sleep(&node, &queued, wait),
                Begun::Ended(result) => result,
                Begun::Unclear => unreachable!("with the array lock a set ends or waits"),
            }
        })
    }

    /// Performs a set in a session without the array lock. A simple set that stops is queued.
    pub(crate) fn perform_without_array_lock(&self, node: &Node, wait: Wait) -> Begun {
        let ops = node.ops();
        let here = 0;
        let mut session = Session::new(self, &here);
        match session.lock_all(ops) {
            Ok(()) => {}
            Err(Obstacle::Closed) => return Begun::Ended(Err(Error::Closed)),
            Err(_) => return Begun::Unclear,
        }
        let Err(stopped) = session.evaluate(ops, u64::MAX) else {
            for op in ops.iter().filter(|op| op.alters()) {
                session.drain(op.index);
            }
            session.publish();
            return Begun::Ended(Ok(()));
        };
        if let Some(error) = self.error(ops, stopped, wait) {
            session.publish();
            return Begun::Ended(Err(error));
        }
        if ops.len() > 1 || matches!(self.fairness, Fairness::Strict { .. }) {
            session.publish();
            return Begun::Unclear;
        }
        let queued = self.enqueue(&mut session, node, stopped.at);
        session.publish();
        Begun::Waits(queued)
    }

    /// Performs a set in a session with the array lock, and queues it if it stops.
    pub(crate) fn perform_with_array_lock(&self, node: &Node, watches: &[Watch], wait: Wait) -> Begun {
        let ops = node.ops();
        let here = 0;
        let mut session = Session::with_array_lock(self, &here);
        let Err(stopped) = session.evaluate(ops, u64::MAX) else {
            session.cascade(ops);
            session.publish();
            return Begun::Ended(Ok(()));
        };
        if let Some(error) = self.error(ops, stopped, wait) {
            session.publish();
            return Begun::Ended(Err(error));
        }
        // SAFETY: no other thread knows the node yet.
        unsafe { node.links(|links| links.watches = watches.as_ptr()) };
        let queued = self.enqueue(&mut session, node, stopped.at);
        session.publish();
        Begun::Waits(queued)
    }

    /// Why a set that stopped does not wait; `None` if it waits.
    fn error(&self, ops: &[Op], stopped: Stopped, wait: Wait) -> Option<Error> {
        match stopped.why {
            Stop::OutOfRange => Some(self.out_of_range(&ops[stopped.at])),
            Stop::Closed => Some(Error::Closed),
            Stop::Blocks if ops[stopped.at].no_wait || matches!(wait, Wait::No) => Some(Error::WouldBlock),
            Stop::Blocks => None,
        }
    }

    /// Enqueues the node of a set that stopped.
    fn enqueue(&self, session: &mut Session<'_, P>, node: &Node, at: usize) -> Queued {
        // SAFETY: no other thread knows the node yet.
        let is_task = unsafe { node.links(|links| !links.bell.is_null()) };
        let near = (&raw const self.cells[node.ops()[at].index()]).addr();
        let seat = (!is_task).then(|| Seat::claim_near(near));
        let after = match self.fairness {
            Fairness::Strict { after } => Some(after),
            Fairness::Barging => None,
        };
        let (complex, ages) = (node.ops().len() > 1 || after.is_some(), after.map(Ages::after));
        // SAFETY: the node is new. The session has locked its cells up to where it stopped, and has
        // the array lock if it is complex. The node lives on the stack of a thread that stays
        // there, or in a future that is not dropped, until it is completed, or has taken the node
        // out. The ticket is drawn with the cell locked, so the tickets in that queue are smaller.
        unsafe {
            node.links(|links| {
                links.ticket = self.tickets.fetch_add(1, Relaxed);
                links.seat = seat;
                links.ages = ages.filter(|_| is_task);
            });
            session.enqueue(node, at, complex);
            if after == Some(Duration::ZERO) {
                session.make_aged(node, &mut Heap::new()); // The youngest: none stopped for another.
            }
        }
        Queued { seat, complex, ages }
    }

    /// Waits until `node` is completed, or until it times out.
    fn sleep(&self, node: &Node, queued: &Queued, wait: Wait) -> Result<(), Error> {
        let seat = queued.seat.expect("a thread has a seat");
        self.meter.count(Event::Contended);
        let completed = || node.outcome() != Outcome::Pending;
        if spin::head_waiter::<P>(false, completed) {
            self.meter.count(Event::Spun);
            seat.give_back();
            return self.result(node);
        }
        self.meter.count(Event::Slept);
        let mut ages = queued.ages;
        loop {
            let (until, is_age) = Deadline::earlier(wait.deadline(), ages.map(|ages| ages.at));
            match seat.sleep(completed, until, wait.is_interruptible()) {
                Slept::TimedOut if is_age => {
                    self.grow_old(node);
                    ages.iter_mut().for_each(Ages::go_on);
                }
                Slept::TimedOut if self.leave_queue(node, queued) => return Err(Error::TimedOut),
                Slept::Interrupted if self.leave_queue(node, queued) => return Err(Error::Interrupted),
                Slept::TimedOut | Slept::Interrupted => {
                    seat.sleep(completed, None, false);
                    return self.result(node);
                }
                _ => return self.result(node),
            }
        }
    }

    /// The result of a call whose set has an outcome.
    pub(crate) fn result(&self, node: &Node) -> Result<(), Error> {
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
    pub(crate) fn leave_queue(&self, node: &Node, queued: &Queued) -> bool {
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
        if is_queued && let Some(seat) = queued.seat {
            seat.give_back();
        }
        is_queued
    }

    /// Makes a node aged that has waited for the bound. If it is the oldest that is aged, lets the
    /// sets pass that stop for it; if it is a task's, (strike) does, by the clock in the node.
    #[cold]
    pub(crate) fn grow_old(&self, node: &Node) {
        let here = 0;
        let mut session = Session::with_array_lock(self, &here);
        // SAFETY: with the array lock the node is this session's while it is queued.
        unsafe {
            if node.is_queued() {
                let (is_aged, is_task) = node.links(|links| (links.aged, links.ages.is_some()));
                if !is_aged {
                    let mut heap = Heap::new();
                    node.links(|links| links.ages.iter_mut().for_each(Ages::go_on));
                    session.make_aged(node, &mut heap);
                    session.serve(heap);
                } else if session.is_oldest_aged(node) && !is_task {
                    session.let_pass();
                }
            }
        }
        session.publish();
    }
}
