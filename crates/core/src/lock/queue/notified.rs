//! A task that waits on a condition variable. `condvar.rs` and `TASKS.md` have the protocol.

use super::condvar::QueueCondvar;
use super::mutex::QueueMutex;
use super::rule::Rule;
use super::{Kind, TaskNode};
use crate::lock::condvar::WaitsAsync;
use crate::lock::policy::InOneProcess;
use crate::sys::sync::without_unwinding;
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

/// The future of a notification of a [`QueueCondvar`].
pub struct Notified<'a, P: InOneProcess, R: Rule> {
    condvar: &'a QueueCondvar<P, R>,
    /// From the first poll on.
    waiter: Option<TaskNode>,
    /// Whether it was notified, and knows that.
    is_ready: bool,
}

// SAFETY: the waiter is accessed by the rules of the queue, whichever thread polls; a waker is
// `Send`. The condition variable is `Sync`.
unsafe impl<P: InOneProcess, R: Rule> Send for Notified<'_, P, R> {}
// SAFETY: a shared reference gives access to nothing.
unsafe impl<P: InOneProcess, R: Rule> Sync for Notified<'_, P, R> {}

// SAFETY: `Notified` queues a node, and nothing else; its drop passes a notification on.
unsafe impl<P: InOneProcess, R: Rule> WaitsAsync<QueueMutex<P, R>> for QueueCondvar<P, R> {
    type Notified<'a> = Notified<'a, P, R>;

    fn notified(&self) -> Notified<'_, P, R> {
        Notified { condvar: self, waiter: None, is_ready: false }
    }

    fn pass_on(&self) {
        self.notify(1, false);
    }
}

impl<P: InOneProcess, R: Rule> Future for Notified<'_, P, R> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // SAFETY: the waiter is not moved.
        let this = unsafe { self.get_unchecked_mut() };
        assert!(!this.is_ready, "the future of a notification was polled after it was ready");
        let Some(waiter) = &this.waiter else {
            let waiter = this.waiter.insert(TaskNode::new(1, context.waker().clone()));
            // SAFETY: the node is new, and the future stays where it is until the wait is over.
            unsafe { this.condvar.enqueue(waiter.as_node()) };
            return Poll::Pending;
        };
        ready!(waiter.poll(context));
        waiter.node().take_back();
        this.is_ready = true;
        Poll::Ready(())
    }
}

impl<P: InOneProcess, R: Rule> Drop for Notified<'_, P, R> {
    fn drop(&mut self) {
        let Some(waiter) = self.waiter.as_ref().filter(|_| !self.is_ready) else { return };
        // The node must not go while it is queued.
        without_unwinding(|| {
            let answer = waiter.give_up(|node, leaving| self.condvar.leave(node, leaving));
            if answer.is(Kind::Notified) {
                self.condvar.pass_on();
            }
        });
    }
}

impl<P: InOneProcess, R: Rule> fmt::Debug for Notified<'_, P, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notified").field("is_ready", &self.is_ready).finish_non_exhaustive()
    }
}
