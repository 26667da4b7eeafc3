//! Waiters that are tasks: their nodes, and the future that acquires a mutex. `TASKS.md` has the
//! protocol.

use super::mutex::QueueMutex;
use super::rule::Rule;
use super::{Cpu, Kind, Node, Status};
use crate::lock::meter::{Event, Meter};
use crate::lock::policy::{InOneProcess, Policy};
use crate::lock::spin::{self, Look, Lost, Spin};
use crate::lock::traits::{RawMutex, RawMutexAsync};
use crate::sys::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sys::sync::{UnsafeCell, without_unwinding};
use crate::sys::time::Deadline;
use core::fmt;
use core::marker::PhantomPinned;
use core::mem;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

/// A task's place in the queue, in its future.
///
/// It stays where it is: other threads access the node, and the waker beside it.
#[repr(C)]
pub struct TaskNode {
    node: Node,
    waker: UnsafeCell<Option<Waker>>,
    pinned: PhantomPinned,
}

impl TaskNode {
    /// A node of a task that waits for `wanted` permits, to be woken by `waker`.
    pub fn new(wanted: u32, waker: Waker) -> Self {
        let node = Node { is_task: true, ..Node::new(Cpu::UNKNOWN, wanted) };
        node.status.store(Status::unpolled().0, Relaxed);
        Self { node, waker: UnsafeCell::new(Some(waker)), pinned: PhantomPinned }
    }

    /// The node is about to be queued. If the task `looks` at it then, its waker is not called
    /// before [`look`](Self::look) has published it.
    pub fn begin(&self, looks: bool) {
        let status = if looks { Status::polled() } else { Status::unpolled() };
        self.node.status.store(status.0, Relaxed);
    }

    /// The task has found no other waiter. It looks at its node for a moment, and publishes it, or
    /// has the answer.
    pub fn look<P: Policy>(&self) -> Poll<Status> {
        let look = || if self.node.look().is_answer() { Look::Acquired } else { Look::Taken };
        // A panic would leave a node that is queued and not published.
        without_unwinding(|| {
            spin::closely::<P>(look);
            self.publish()
        })
    }

    /// The node. The thread that answers it finds the waker behind it, by this pointer.
    pub fn as_node(&self) -> *const Node {
        (&raw const *self).cast()
    }

    /// The node, for steps that do not enqueue it.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The task is polled: the answer, if it is there and valid. Otherwise the waker of `context`
    /// is called once it is.
    pub fn poll(&self, context: &Context<'_>) -> Poll<Status> {
        let waker = context.waker().clone();
        let status = &self.node.status;
        // (take back)
        if let Err(seen) = status.compare_exchange(Status::unpolled().0, Status::polled().0, Relaxed, Acquire)
        {
            let answer = if Status(seen).is_taken() { Status(seen) } else { self.await_taken() };
            return Poll::Ready(answer);
        }
        let before = self.replace(Some(waker));
        let published = self.publish();
        drop(before); // It may panic: the task can be told its answer once more.
        published
    }

    /// (publish waker), or the answer that came first.
    fn publish(&self) -> Poll<Status> {
        let status = &self.node.status;
        let published = status.compare_exchange(Status::polled().0, Status::unpolled().0, Release, Acquire);
        let Err(seen) = published else { return Poll::Pending };
        let answer = Status(seen).taken();
        status.store(answer.0, Relaxed); // (taken), by the task itself
        Poll::Ready(answer)
    }

    /// The answer, once the answering thread has taken the waker. It is about to come.
    #[cold]
    pub fn await_taken(&self) -> Status {
        spin::outlast(|| self.node.look().is_taken());
        self.node.look()
    }

    /// Puts `waker` into a node that is not known to other threads, or not `Parked`.
    fn replace(&self, waker: Option<Waker>) -> Option<Waker> {
        // SAFETY: invariant 1 of `TASKS.md`: the waker is the task's, which is the caller.
        self.waker.with_mut(|place| unsafe { mem::replace(&mut *place, waker) })
    }

    /// (taken): takes the waker out of a node that was answered `kind`. The node may be gone then.
    ///
    /// # Safety
    /// The caller has answered `node`, which is that of a `TaskNode`, and was `Parked` before.
    pub(super) unsafe fn take_waker(node: *const Node, kind: Kind) -> Waker {
        // SAFETY: the node is the first field of a `TaskNode`, and the pointer was made from one to
        // that, or has its exposed provenance. It lives until `TAKEN` is set (invariant 3).
        let this = unsafe { &*node.cast::<Self>() };
        this.node.look(); // acquires (publish waker)
        // SAFETY: invariant 1: the waker belongs to the thread that has answered.
        let waker = this.waker.with_mut(|place| unsafe { (*place).take() });
        this.node.status.store(Status(kind as u32).taken().0, Release);
        waker.expect("a task that is parked has left its waker")
    }

    /// The future is dropped, and its waiter was not told an answer: the answer, by `leave` if
    /// there was none. `leave` gets the status that asks for one.
    #[cold]
    pub fn give_up(&self, leave: impl FnOnce(&Node, Status) -> Status) -> Status {
        let answer = match self.node.ask_to_leave() {
            Some(leaving) => leave(&self.node, leaving),
            None => self.await_taken(),
        };
        self.node.take_back();
        answer
    }
}

/// How far a future has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stage {
    /// It was not polled.
    New,
    /// Its node is queued, or was answered and does not know it.
    Queued,
    /// It was ready.
    Done,
}

/// The future of an acquisition of a [`QueueMutex`].
pub struct LockAsync<'a, P: InOneProcess, R: Rule> {
    mutex: &'a QueueMutex<P, R>,
    stage: Stage,
    /// When the bound passes, once it has found the mutex taken.
    due: Option<Deadline>,
    waiter: Option<TaskNode>,
}

// SAFETY: the waiter is accessed by the rules of the queue, whichever thread polls; a waker is
// `Send`. The mutex is `Sync`.
unsafe impl<P: InOneProcess, R: Rule> Send for LockAsync<'_, P, R> {}
// SAFETY: a shared reference gives access to nothing.
unsafe impl<P: InOneProcess, R: Rule> Sync for LockAsync<'_, P, R> {}

// SAFETY: as `RawMutex`: the future holds the mutex when it is ready, and a waiter of it is queued
// only while the future lives, or for ever. No step of a release asks which thread has acquired;
// what `unlock` knows of its thread is advice.
unsafe impl<P: InOneProcess, R: Rule> RawMutexAsync for QueueMutex<P, R> {
    type LockAsync<'a> = LockAsync<'a, P, R>;

    #[inline]
    fn lock_async(&self) -> LockAsync<'_, P, R> {
        LockAsync { mutex: self, stage: Stage::New, due: None, waiter: None }
    }
}

impl<P: InOneProcess, R: Rule> QueueMutex<P, R> {
    /// A task that was chosen, and is polled: true if it holds the mutex, or else it is queued
    /// again and the mutex is owed to it.
    fn contend_as_task(&self, waiter: &TaskNode, due: &mut Option<Deadline>, waker: &Waker) -> bool {
        loop {
            match self.look_as_candidate() {
                Look::Acquired => return true,
                Look::Beaten => continue,
                _ => {}
            }
            let end = *due.get_or_insert_with(|| Deadline::after(Duration::from_nanos(R::BOUND_NS)));
            let claims = R::BOUND_NS == 0 || R::CULLED || end.has_passed();
            if claims {
                self.set_due(); // (claim)
            }
            if (claims || !self.is_solo()) && spin::closely::<P>(|| self.look_as_candidate()) {
                return true;
            }
            drop(waiter.replace(Some(waker.clone())));
            // SAFETY: the node was chosen, so it is in no queue, and its future stays where it is.
            if unsafe { self.stand_back(waiter.as_node(), Status::unpolled) } {
                self.meter.count(Event::Slept);
                return false;
            }
        }
    }

    /// A candidate whose future is dropped: resigns, or releases what it could acquire.
    fn resign_as_task(&self) {
        while !self.resign() {
            if self.look_as_candidate() == Look::Acquired {
                // SAFETY: acquired above; the token is nothing.
                return unsafe { self.unlock(()) };
            }
        }
    }
}

impl<P: InOneProcess, R: Rule> LockAsync<'_, P, R> {
    /// The first poll, of a mutex that was not open: takes it all the same, or queues.
    #[cold]
    #[inline(never)]
    fn start(&mut self, context: &Context<'_>) -> Poll<()> {
        let mutex = self.mutex;
        mutex.meter.count(Event::Contended);
        if !R::IN_ORDER && spin::closely::<P>(|| mutex.look()) {
            return self.acquired();
        }
        let mut word = mutex.state();
        let (mut lost, mut looks) = (Lost::default(), false);
        loop {
            let attempt = if QueueMutex::<P, R>::is_open(word) {
                let taken = mutex.meter.arrive(|| mutex.change(word, word.locked(), Acquire));
                if taken.is_ok() {
                    mutex.count_passing(word);
                    return self.acquired();
                }
                taken
            } else {
                let waiter = self.waiter.get_or_insert_with(|| TaskNode::new(1, context.waker().clone()));
                let (node, older) = (waiter.as_node(), word.newest());
                let is_first = R::IN_ORDER && older.is_null() && P::Spin::WOKEN_NS > 0;
                if looks != is_first {
                    waiter.begin(is_first);
                    looks = is_first;
                }
                // SAFETY: the node is this task's, and not in the word yet.
                unsafe { Node::follow(node, older) };
                let next = QueueMutex::<P, R>::with_node(word, node);
                // (enqueue)
                let queued = mutex.meter.arrive(|| mutex.change(word, next, Release));
                if queued.is_ok() {
                    self.stage = Stage::Queued;
                    if looks && waiter.look::<P>().is_ready() {
                        waiter.node.take_back();
                        mutex.meter.count(Event::Spun);
                        return self.acquired();
                    }
                    mutex.meter.count(Event::Slept);
                    return Poll::Pending;
                }
                queued
            };
            if attempt.is_err() {
                word = lost.again(|| mutex.state());
            }
        }
    }

    /// A later poll.
    #[cold]
    #[inline(never)]
    fn go_on(&mut self, context: &Context<'_>) -> Poll<()> {
        assert!(self.stage == Stage::Queued, "the future of a lock was polled after it was ready");
        let waiter = self.waiter.as_ref().expect("a queued future has a node");
        let Poll::Ready(answer) = waiter.poll(context) else { return Poll::Pending };
        self.mutex.meter.count(Event::Woke);
        let chosen = answer.is(Kind::Chosen);
        if chosen && !self.mutex.contend_as_task(waiter, &mut self.due, context.waker()) {
            return Poll::Pending;
        }
        waiter.node.take_back();
        if chosen || !R::IN_ORDER {
            self.mutex.meter.count(if chosen { Event::Woken } else { Event::Reserved });
        }
        self.acquired()
    }

    #[inline]
    fn acquired(&mut self) -> Poll<()> {
        self.stage = Stage::Done;
        self.mutex.meter.count(Event::Acquired);
        Poll::Ready(())
    }

    /// The future is dropped while its waiter is queued, or has an answer that it does not know.
    #[cold]
    #[inline(never)]
    fn give_up(&mut self) {
        let (mutex, waiter) = (self.mutex, self.waiter.as_ref().expect("a queued future has a node"));
        // The node must not go while it is queued.
        without_unwinding(|| {
            let answer = waiter.give_up(|node, leaving| mutex.leave(node, leaving));
            if answer.is(Kind::Chosen) {
                mutex.resign_as_task();
            } else if answer.is(Kind::Granted) {
                // SAFETY: granted; the token is nothing.
                unsafe { mutex.unlock(()) };
            }
        });
        mutex.meter.gave_up();
    }
}

impl<P: InOneProcess, R: Rule> Future for LockAsync<'_, P, R> {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // SAFETY: the waiter is not moved.
        let this = unsafe { self.get_unchecked_mut() };
        if this.stage != Stage::New {
            return this.go_on(context);
        }
        match this.mutex.meter.arrive(|| this.mutex.take()) {
            Ok(()) => this.acquired(),
            Err(_) => this.start(context),
        }
    }
}

impl<P: InOneProcess, R: Rule> Drop for LockAsync<'_, P, R> {
    #[inline]
    fn drop(&mut self) {
        if self.stage == Stage::Queued {
            self.give_up();
        }
    }
}

impl<P: InOneProcess, R: Rule> fmt::Debug for LockAsync<'_, P, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockAsync").field("stage", &self.stage).finish_non_exhaustive()
    }
}

#[cfg(all(test, world = "machine"))]
mod tests;
