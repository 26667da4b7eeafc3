//! Acquisitions by tasks. `TASKS.md` of the core's queue has what is different for a task, and
//! `queue.rs` the rest.

use super::raw::{Arrival, RawSemaphore};
use super::{Closed, Permit, SemaphoreWith};
use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use ulocks_core::meter::{Event, Meter};
use ulocks_core::policy::InOneProcess;
use ulocks_core::queue::{Kind, Stage, TaskNode};
use ulocks_core::spin::Spin;
use ulocks_core::sync::without_unwinding;

/// The future of [`RawSemaphore::acquire_async`].
#[must_use = "a future does nothing unless it is polled"]
pub struct RawAcquireAsync<'a, P: InOneProcess> {
    semaphore: &'a RawSemaphore<P>,
    wanted: u32,
    stage: Stage,
    waiter: Option<TaskNode>,
}

// SAFETY: the waiter is accessed by the rules of the queue, whichever thread polls; a waker is
// `Send`. The semaphore is `Sync`.
unsafe impl<P: InOneProcess> Send for RawAcquireAsync<'_, P> {}
// SAFETY: a shared reference gives access to nothing.
unsafe impl<P: InOneProcess> Sync for RawAcquireAsync<'_, P> {}

impl<P: InOneProcess> RawSemaphore<P> {
    /// Takes `count` permits together, for a task, which waits in the queue until then, or until
    /// the semaphore is closed.
    ///
    /// # Errors
    /// If the semaphore is closed: then it took none.
    ///
    /// # Panics
    /// When polled, as [`acquire_unless_closed`](Self::acquire_unless_closed), and after it was
    /// ready.
    #[inline]
    pub fn acquire_async(&self, count: u32) -> RawAcquireAsync<'_, P> {
        RawAcquireAsync { semaphore: self, wanted: count, stage: Stage::New, waiter: None }
    }
}

impl<P: InOneProcess> RawAcquireAsync<'_, P> {
    /// The first poll, of a semaphore that did not give permits at once.
    #[cold]
    #[inline(never)]
    fn start(&mut self, context: &Context<'_>) -> Poll<Result<(), Closed>> {
        // To clone a waker may do anything, and a waiter that is counted has to come to its place.
        self.waiter = Some(TaskNode::new(self.wanted, context.waker().clone()));
        let looks = match self.semaphore.arrive(self.wanted, || false) {
            Arrival::Acquired => return self.end(true),
            Arrival::GaveUp => return self.end(false),
            Arrival::Came { first } => first && P::Spin::WOKEN_NS > 0,
        };
        let answer = without_unwinding(|| {
            self.stage = Stage::Queued;
            let waiter = self.waiter.as_ref().expect("it was made above");
            if looks {
                waiter.begin(true);
            }
            // SAFETY: the node is new, and the future stays where it is until the wait is over.
            unsafe { self.semaphore.queue.push(waiter.as_node(), &self.semaphore.meter) };
            self.semaphore.tell_of_arrival();
            let answer = if looks { waiter.look::<P>() } else { Poll::Pending };
            answer.map(|answer| {
                waiter.node().take_back();
                answer.is(Kind::Granted)
            })
        });
        if let Poll::Ready(granted) = answer {
            if granted {
                self.semaphore.meter.count(Event::Spun);
            }
            return self.end(granted);
        }
        self.semaphore.meter.count(Event::Slept);
        Poll::Pending
    }

    /// A later poll.
    #[cold]
    #[inline(never)]
    fn go_on(&mut self, context: &Context<'_>) -> Poll<Result<(), Closed>> {
        assert!(self.stage == Stage::Queued, "the future of a semaphore was polled after it was ready");
        let waiter = self.waiter.as_ref().expect("a queued future has a node");
        let granted = ready!(waiter.poll(context)).is(Kind::Granted);
        self.semaphore.meter.count(Event::Woke);
        waiter.node().take_back();
        if granted {
            self.semaphore.meter.count(Event::Woken);
        }
        self.end(granted)
    }

    #[inline]
    fn end(&mut self, acquired: bool) -> Poll<Result<(), Closed>> {
        self.stage = Stage::Done;
        self.semaphore.meter.ended_with(acquired);
        Poll::Ready(if acquired { Ok(()) } else { Err(Closed) })
    }

    /// The future is dropped while its waiter is queued, or has an answer that it does not know.
    #[cold]
    #[inline(never)]
    fn give_up(&mut self) {
        let (semaphore, waiter) = (self.semaphore, self.waiter.as_ref().expect("a queued future has a node"));
        semaphore.meter.gave_up();
        // The node must not go while it is queued.
        without_unwinding(|| {
            let answer = waiter.give_up(|node, leaving| semaphore.leave(node, leaving));
            if answer.is(Kind::Granted) {
                // If they find no room, they are lost, as those of a `Permit`.
                _ = semaphore.release(self.wanted);
            }
        });
    }
}

impl<P: InOneProcess> Future for RawAcquireAsync<'_, P> {
    type Output = Result<(), Closed>;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: the waiter is not moved.
        let this = unsafe { self.get_unchecked_mut() };
        if this.stage != Stage::New {
            return this.go_on(context);
        }
        if this.semaphore.take(this.wanted) {
            return this.end(true);
        }
        this.start(context)
    }
}

impl<P: InOneProcess> Drop for RawAcquireAsync<'_, P> {
    #[inline]
    fn drop(&mut self) {
        if self.stage == Stage::Queued {
            self.give_up();
        }
    }
}

impl<P: InOneProcess> fmt::Debug for RawAcquireAsync<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawAcquireAsync").field("stage", &self.stage).finish_non_exhaustive()
    }
}

/// The future of [`acquire_async`](SemaphoreWith::acquire_async) and
/// [`acquire_many_async`](SemaphoreWith::acquire_many_async).
#[derive(Debug)]
#[must_use = "a future does nothing unless it is polled"]
pub struct AcquireAsync<'a, P: InOneProcess> {
    raw: RawAcquireAsync<'a, P>,
    semaphore: &'a SemaphoreWith<P>,
}

impl<'a, P: InOneProcess> Future for AcquireAsync<'a, P> {
    type Output = Result<Permit<'a, P>, Closed>;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let (semaphore, count) = (self.semaphore, self.raw.wanted);
        // SAFETY: `raw` is not moved until it is dropped in its place.
        let raw = unsafe { self.map_unchecked_mut(|this| &mut this.raw) };
        raw.poll(context).map_ok(|()| Permit::new(semaphore, count))
    }
}

/// Acquisitions by tasks. [`task`](ulocks_core::task) tells what all of them have in common.
impl<P: InOneProcess> SemaphoreWith<P> {
    /// Acquires a permit for a task, which waits in the queue of all waiters until there is one or
    /// the semaphore is closed.
    ///
    /// The future may be dropped at any moment. Then its waiter leaves the queue, and permits that
    /// it was given go back. None is lost, unless more were released meanwhile than the semaphore
    /// has room for.
    ///
    /// # Errors
    /// If the semaphore is [closed](Self::close), or is while the task waits.
    ///
    /// # Panics
    /// When polled, if 1,073,741,823 waiters wait already, or after it was ready.
    ///
    /// # Examples
    /// ```
    /// use ulocks_fair::{Closed, Semaphore};
    ///
    /// static CONNECTIONS: Semaphore = Semaphore::new(8);
    ///
    /// async fn query() -> Result<u32, Closed> {
    ///     let _connection = CONNECTIONS.acquire_async().await?;
    ///     Ok(7)
    /// }
    /// # let mut query = std::pin::pin!(query());
    /// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// # assert_eq!(query.as_mut().poll(&mut context), std::task::Poll::Ready(Ok(7)));
    /// ```
    #[inline]
    pub fn acquire_async(&self) -> AcquireAsync<'_, P> {
        self.acquire_many_async(1)
    }

    /// Acquires `count` permits together for a task, which waits in the queue of all waiters until
    /// there are as many or the semaphore is closed.
    ///
    /// # Errors
    /// If the semaphore is [closed](Self::close), or is while the task waits.
    ///
    /// # Panics
    /// As [`acquire_async`](Self::acquire_async), and when polled, if `count` is more than
    /// [`MAX_PERMITS`](Self::MAX_PERMITS).
    #[inline]
    pub fn acquire_many_async(&self, count: u32) -> AcquireAsync<'_, P> {
        AcquireAsync { raw: self.raw().acquire_async(count), semaphore: self }
    }
}
