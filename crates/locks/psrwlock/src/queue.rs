//! Queued readers enter before their class is closed again.
//!
//! There are two queues: one for the top class of threads, one for all classes below it. Before the
//! owner closes a class it waits until the queue of that class is empty: at its first stage the
//! lower queue, at the stage of the top class the top one. The readers in it were woken when the
//! class opened, and find it open. No other reader joins while it is open. So the queue empties as
//! fast as its readers wake up. A queued reader is passed by one writer only, the present holder
//! when it joins.
//!
//! A reader that is not queued, because it has just arrived or spins, may be passed by more. It
//! spins for some tens of microseconds only.

use crate::configuration::Configuration;
use crate::raw::RawPsRwLock;
use crate::word::{OWNER, Queues, State};
use ulocks_core::futex::Waited;
use ulocks_core::queue::Wakers;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::time::Deadline;
use ulocks_core::{sleep, spin};

impl<D: Configuration> RawPsRwLock<D> {
    /// A reader joins the queue of that flag, before it looks at the state.
    pub(crate) fn join_queue(&self, flag: u64) {
        let was = Queues(self.queues.fetch_add(Queues::one(flag), Relaxed));
        if was.waiting(flag) >= Queues::limit(flag) {
            self.leave_queue(flag);
            panic!("too many readers wait for one lock: {} at once may", Queues::limit(flag));
        }
    }

    /// A reader leaves the queue, because it is inside or gives up. The last one wakes an owner
    /// that waits: invariant 8.
    pub(crate) fn leave_queue(&self, flag: u64) {
        let was = Queues(self.queues.fetch_sub(Queues::one(flag), Acquire));
        if was.waiting(flag) == 1 && self.look().has(State::DRAINING) {
            self.event.fetch_add(1, Relaxed);
            let mut wakers = Wakers::new();
            sleep::wake(self.event.key(), 1, OWNER, &mut wakers);
            wakers.wake();
        }
    }

    /// The queue that the owner admits before it closes the class of that index.
    pub(crate) const fn queue_before(index: u32) -> Option<u64> {
        if index == 0 {
            Some(State::LOW)
        } else if index == Self::LAYOUT.top() {
            Some(State::TOP)
        } else {
            None
        }
    }

    /// The owner waits until the queue that it would shut out with the class of that index is
    /// empty. False if `deadline` passed first.
    pub(crate) fn admit_queue(&self, index: u32, deadline: Option<Deadline>) -> bool {
        let Some(flag) = Self::queue_before(index) else { return true };
        if self.queue_is_empty(flag) {
            return true;
        }
        spin::head_waiter::<D::Policy>(false, || self.queue_is_empty(flag))
            || self.sleep_until_empty(flag, deadline)
    }

    /// Whether that queue is empty; clears its flag then. For the owner, while the classes of the
    /// queue are open.
    pub(crate) fn queue_is_empty(&self, flag: u64) -> bool {
        if !State(self.state.load(Acquire)).has(flag) {
            return true;
        }
        let empty = Queues(self.queues.load(Relaxed)).waiting(flag) == 0;
        if empty {
            self.state.fetch_and(!flag, Relaxed);
        }
        empty
    }

    #[cold]
    fn sleep_until_empty(&self, flag: u64, deadline: Option<Deadline>) -> bool {
        let mut timed_out = false;
        loop {
            let Err(event) = self.look_at_queue(flag) else { return true };
            if timed_out {
                return false;
            }
            timed_out = self.event.wait_bits(event, OWNER, deadline) == Waited::TimedOut;
        }
    }

    /// A look by an owner that may sleep on the event until that queue is empty. If it is not, the
    /// event to sleep on. The wait goes on then, until a later look, or until the owner
    /// [opens](super::release) classes because it gives up.
    pub(crate) fn look_at_queue(&self, flag: u64) -> Result<(), u32> {
        let event = self.event.load(Relaxed);
        // In this order, and both by read-modify-writes: invariant 8.
        self.state.fetch_or(State::DRAINING, Relaxed);
        let queues = Queues(self.queues.fetch_add(0, Release));
        // A reader that saw the class closed a moment ago may have joined since: a second look.
        if queues.waiting(flag) > 0 || !self.queue_is_empty(flag) {
            return Err(event);
        }
        let mut wakers = Wakers::new();
        self.end_wait_for_queue(&mut wakers);
        wakers.wake();
        Ok(())
    }

    /// The owner does not wait for a queue any more.
    pub(crate) fn end_wait_for_queue(&self, wakers: &mut Wakers) {
        let was = self.state.fetch_and(!State::DRAINING, Relaxed);
        Self::tell_after_leaving(core::ptr::from_ref(self).addr(), was, wakers);
    }
}
