//! Sets of tasks.
//!
//! A task waits with the node of its set, as a thread does. It has no seat, where it would sleep,
//! but a *bell*: a node of the core's queue that is in no queue. The session that has completed the
//! set answers the bell, and calls the waker that is in it. `TASKS.md` of the core's queue has how
//! that is done without a lock, and which thread has the waker when.
//!
//! # Invariants
//! Beside those of [`set`](super::set):
//! 1. A session completes the node, and then answers the bell, once. Until the bell is `TAKEN` the
//!    future keeps both. So the answer is the last access to the waiter.
//! 2. A future that is dropped takes its node out of the queue, as a thread whose time is up does:
//!    then no session knows it, and nobody answers the bell. Or the node is out already. Then a
//!    session is about to answer, or has answered: the drop waits for that, and gives back what the
//!    set took.
//!
//! # Ordering
//! The answer of the bell releases, and the poll that finds it acquires. So the task reads the
//! outcome, and what happened before the session.

use crate::array::SemArrayWith;
use crate::node::{Node, Outcome, Watch};
use crate::op::Op;
use crate::permit::Permit;
use crate::raw::{Attempt, RawSemArray};
use crate::set::{Ages, Begun, Queued, Wait};
use crate::{Error, Set};
use core::fmt;
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use smallvec::SmallVec;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::policy::InOneProcess;
use ulocks_core::queue::TaskNode;
use ulocks_core::sync::without_unwinding;

/// The future of [`acquire_async`](SemArrayWith::acquire_async).
#[must_use = "a future does nothing unless it is polled"]
pub struct AcquireAsync<'a, P: InOneProcess> {
    array: &'a RawSemArray<P>,
    /// The operations, which the node names; none once the future is ready.
    set: Set,
    waiter: Option<Waiter>,
    /// What it knows of its node, while that is in a queue or a session has it.
    queued: Option<Queued>,
    is_ready: bool,
}

struct Waiter {
    node: Node,
    watches: SmallVec<[Watch; 8]>,
    bell: TaskNode,
}

// SAFETY: the waiter is accessed by the rules of the sessions, whichever thread polls; a waker is
// `Send`, and so are operations. The array is `Sync`.
unsafe impl<P: InOneProcess> Send for AcquireAsync<'_, P> {}
// SAFETY: a shared reference gives access to nothing.
unsafe impl<P: InOneProcess> Sync for AcquireAsync<'_, P> {}

const FOR_LONG: Wait = Wait::Until(None);

impl<P: InOneProcess> AcquireAsync<'_, P> {
    /// The first poll.
    fn start(&mut self, context: &Context<'_>) -> Poll<Result<(), Error>> {
        let (array, ops) = (self.array, &self.set[..]);
        let attempt = match ops {
            [op] => array.perform_one(op),
            _ => array.perform_several(ops),
        };
        match attempt {
            Attempt::Done => return Poll::Ready(Ok(())),
            Attempt::Blocks(at) if ops[at].no_wait => {
                return Poll::Ready(Err(array.check(ops).err().unwrap_or(Error::WouldBlock)));
            }
            _ => array.check(ops)?,
        }
        let bell = TaskNode::new(1, context.waker().clone());
        // Once a queue names the node and its watches, a panic must not free them.
        let begun = without_unwinding(|| {
            let waiter = self.waiter.insert(Waiter { node: Node::new(ops), watches: SmallVec::new(), bell });
            // SAFETY: no other thread knows the node yet.
            unsafe { waiter.node.links(|links| links.bell = waiter.bell.as_node()) };
            let begun = array.perform_without_array_lock(&waiter.node, FOR_LONG);
            if !matches!(begun, Begun::Unclear) {
                return begun;
            }
            waiter.watches.extend(ops.iter().map(|_| Watch::new(&waiter.node)));
            array.perform_with_array_lock(&waiter.node, &waiter.watches, FOR_LONG)
        });
        match begun {
            Begun::Ended(result) => Poll::Ready(result),
            Begun::Waits(queued) => {
                array.meter.count(Event::Contended);
                array.meter.count(Event::Slept);
                self.queued = Some(queued);
                Poll::Pending
            }
            Begun::Unclear => unreachable!("with the array lock a set ends or waits"),
        }
    }

    /// A later poll.
    fn go_on(&mut self, context: &Context<'_>) -> Poll<Result<(), Error>> {
        let waiter = self.waiter.as_ref().expect("a queued future has a waiter");
        if waiter.bell.poll(context).is_pending() {
            let queued = self.queued.as_mut().expect("its node may be in a queue");
            if queued.ages.as_mut().is_some_and(Ages::strikes) {
                without_unwinding(|| self.array.grow_old(&waiter.node));
            }
            // It may have let its own set pass.
            ready!(waiter.bell.poll(context));
        }
        waiter.bell.node().take_back();
        self.queued = None;
        Poll::Ready(self.array.result(&waiter.node))
    }
}

impl<'a, P: InOneProcess> Future for AcquireAsync<'a, P> {
    type Output = Result<Permit<'a, P>, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: the waiter and the operations are not moved while a session may know them.
        let this = unsafe { self.get_unchecked_mut() };
        assert!(!this.is_ready, "the future of a set was polled after it was ready");
        let result = ready!(match this.queued {
            None => this.start(context),
            Some(_) => this.go_on(context),
        });
        this.is_ready = true;
        this.array.meter.ended_with(result.is_ok());
        result?;
        Poll::Ready(Ok(Permit::new(this.array, mem::take(&mut this.set))))
    }
}

impl<P: InOneProcess> Drop for AcquireAsync<'_, P> {
    fn drop(&mut self) {
        let Some(queued) = self.queued.take() else { return };
        self.array.meter.gave_up();
        let waiter = self.waiter.as_ref().expect("a queued future has a waiter");
        // The node must not go while it is queued.
        let done = without_unwinding(|| {
            if self.array.leave_queue(&waiter.node, &queued) {
                return false;
            }
            waiter.bell.await_taken();
            waiter.bell.node().take_back();
            waiter.node.outcome() == Outcome::Done
        });
        if done {
            drop(Permit::new(self.array, mem::take(&mut self.set)));
        }
    }
}

impl<P: InOneProcess> fmt::Debug for AcquireAsync<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ops: &[Op] = &self.set;
        f.debug_struct("AcquireAsync").field("set", &ops).finish_non_exhaustive()
    }
}

impl<P: InOneProcess> SemArrayWith<P> {
    /// Performs the set, all or none, for a task, which waits in the queues of the threads until
    /// then; with a permit that gives back.
    ///
    /// The future may be dropped at any moment. Its set leaves the queue then, and what it took is
    /// given back. [`task`](ulocks_core::task) tells what all such futures have in common.
    ///
    /// With [`Fairness::Strict`](crate::Fairness) the set of a task becomes aged when it has waited
    /// for the bound, and then something is given back of what it needs, or its future is polled. A
    /// set that stops for it is let pass in time if others come that have to wait, if its future is
    /// polled again and again, or if it is a thread's: then after the bound. If none of that
    /// happens, a task that holds what the aged set needs, and asks for more, waits for ever, as
    /// with a strict semaphore for tasks.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    ///
    /// # Panics
    /// When polled after it was ready.
    ///
    /// # Examples
    /// ```
    /// use ulocks_semarray::{Error, SemArray, Set};
    ///
    /// async fn link(farm: &SemArray) -> Result<(), Error> {
    ///     let _job = farm.acquire_async(Set::new().sub(0, 2).sub(1, 1)).await?;
    ///     Ok(())
    /// }
    /// # let farm = SemArray::with_values([2, 1]);
    /// # let mut link = std::pin::pin!(link(&farm));
    /// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// # assert_eq!(link.as_mut().poll(&mut context), std::task::Poll::Ready(Ok(())));
    /// # assert_eq!(farm.values(), [2, 1]);
    /// ```
    pub fn acquire_async(&self, set: impl Into<Set>) -> AcquireAsync<'_, P> {
        AcquireAsync { array: &self.0, set: set.into(), waiter: None, queued: None, is_ready: false }
    }
}
