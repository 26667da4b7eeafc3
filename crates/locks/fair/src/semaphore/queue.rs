//! The waiters of a semaphore: nodes in a queue. A thread that changes the word works on it.
//!
//! Permits are handed over: the queue-lock holder takes them out of the word for the waiter, and
//! answers it. So a woken waiter has nothing left to do, a wake-up goes to exactly the thread that
//! it is meant for, and thousands can wait.
//!
//! # State
//! | flag | set by | cleared by | law |
//! |---|---|---|---|
//! | `QUEUE_LOCKED` | (lock queue), the queue-lock holder from then on | that thread, (settle) | only it detaches nodes |
//! | `ARRIVED` | (note), a waiter that has pushed its node and finds the queue locked | the queue-lock holder, (clear notes), which then examines the queue | |
//! | `LEAVERS` | (note), a waiter that leaves and finds the queue locked | the queue-lock holder, (clear notes), which then removes the leavers | |
//!
//! `ARRIVED` and `LEAVERS` are the *notes*. The newest node is named by a word of its own,
//! [`Queue`]. `queue/mod.rs` describes the nodes, and (answer), the answer.
//!
//! # Protocol
//! A **waiter** (1) comes, (come); (2) pushes its node, (push); (3) changes the word. If there are
//! waiters and permits, it locks the queue (lock queue). If it is locked, it leaves a note (note).
//! Otherwise the word keeps its value, but this is a change all the same: a release that follows it
//! finds the node. (4) It waits for its answer.
//!
//! A **release** gives, (give). If there are waiters and the queue is not locked, the same step
//! locks it (lock queue). If it is locked, the release is done: the queue-lock holder will find the
//! word changed.
//!
//! The **queue-lock holder** (1) clears the notes (clear notes); (2) removes the leavers, if there
//! was such a note; (3) detaches the oldest node as long as the permits last; (4) releases the
//! queue lock, in one step with the permits and the waiters of the nodes it has detached (settle).
//! If the word has changed since it looked, it begins again. (5) Only then it answers the nodes it
//! has detached. In (5) it touches nothing of the semaphore, and nothing of a node after its
//! answer.
//!
//! A **close** does as a release does, with `CLOSED` for the permits; `CLOSING.md` has the rest.
//!
//! A waiter that **leaves** becomes `Leaving`. It locks the queue (lock queue) and removes its
//! node, or asks the queue-lock holder to do so (note) and waits for the answer. It waits for no
//! other waiter, only for steps of the queue-lock holder.
//!
//! # Invariants
//! Beside those of `raw.rs` and of the queue:
//! 4. At most one thread holds the queue lock, from (lock queue) to (settle).
//! 5. Each queued node is counted in the word. A waiter that is counted and not queued is on its
//!    way to its step (3), or its node was detached by the queue-lock holder, which subtracts it
//!    with (settle).
//! 6. While the queue is not locked, the permits do not suffice for the oldest node whose waiter is
//!    past its step (3), and there is no such node if the semaphore is closed. For nodes that the
//!    queue-lock holder saw, (settle) leaves such a word. For other nodes their own step (3) sees
//!    to it. And permits and (close) come with (lock queue).
//! 7. `Leaving` is answered. The waiter locks the queue itself, or has left a note in a word with
//!    `QUEUE_LOCKED`, and (settle) fails as long as there are notes.
//! 8. A waiter does not unwind from (push) to its answer: the queue names its node.
//!
//! # Ordering
//! - (push) releases and (find newest) acquires: the queue-lock holder that finds a node finds its
//!   links. What makes sure that a pushed node is looked for is step (3).
//! - The changes of the word here are Acquire and Release: links pass from one queue-lock holder to
//!   the next that way, nodes from their waiters to the queue-lock holders, and what was done
//!   before a release or a close to the queue-lock holder that answers for it. Two do less: (clear
//!   notes) releases nothing, since (settle) follows; (come) of `raw.rs` is Relaxed, since the node
//!   comes later, and the waiter changes the word again in step (3). A change that fails is
//!   Relaxed: the attempt that succeeds acquires.
//! - (answer) passes that on to the waiter.

use super::raw::RawSemaphore;
use super::word::State;
use crate::TooManyPermits;
use core::ptr;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::policy::InOneProcess;
use ulocks_core::queue::{self, Departures, Granted, Kind, Newest, Node, Sleepers, Status, Wakers, Window};
use ulocks_core::spin::Lost;
use ulocks_core::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicPtr, without_unwinding};
use ulocks_core::time::Deadline;

const NOTES: u64 = State::ARRIVED | State::LEAVERS;

/// The queue: its newest node, or null.
#[repr(C)]
pub(super) struct Queue {
    newest: AtomicPtr<Node>,
    window: Window,
}

impl Queue {
    ulocks_core::const_fn! {
        pub fn new() -> Self {
            Self { newest: AtomicPtr::new(ptr::null_mut()), window: Window::new() }
        }
    }

    /// Whether a node is queued.
    pub fn is_used(&self) -> bool {
        !self.newest.load(Relaxed).is_null()
    }

    /// Whether a waiter that comes is in the window, also if it is not the first.
    pub fn is_in_window(&self) -> bool {
        self.window.is_open()
    }

    /// Appends `node`, an arrival for `meter`.
    ///
    /// # Safety
    /// The node is the caller's, and in no queue. The caller lets it live, where it is, until it is
    /// answered, or detached by the caller itself.
    pub(super) unsafe fn push(&self, node: *const Node, meter: &impl Meter) {
        let mut newest = self.newest.load(Relaxed);
        let mut lost = Lost::default();
        loop {
            // SAFETY: the node is the caller's, and not in the word yet.
            unsafe { Node::follow(node, newest) };
            // (push)
            let attempt = || self.newest.compare_exchange(newest, node.cast_mut(), Release, Relaxed);
            match meter.arrive(attempt) {
                Ok(_) => return,
                Err(_) => newest = lost.again(|| self.newest.load(Relaxed)),
            }
        }
    }
}

impl Newest for &Queue {
    fn newest(&mut self) -> *const Node {
        self.newest.load(Acquire) // (find newest)
    }

    fn replace(&mut self, newest: *const Node, next: *const Node) -> bool {
        self.newest.compare_exchange(newest.cast_mut(), next.cast_mut(), Relaxed, Relaxed).is_ok()
    }

    fn window(&self) -> Option<&Window> {
        Some(&self.window)
    }
}

impl<P: InOneProcess> RawSemaphore<P> {
    /// Waits for the permits that the new `node` wants, counted in already. The first waiter
    /// `polls`, and so does each that is in the window; the others have to wait for more than one
    /// release. False if `deadline` passed first, or the semaphore is closed.
    pub(super) fn wait_in_queue(&self, node: &Node, polls: bool, deadline: Option<Deadline>) -> bool {
        // Invariant 8.
        without_unwinding(|| {
            // SAFETY: the node is new. It stays where it is until the wait is over, and this
            // returns.
            unsafe { self.queue.push(node, &self.meter) };
            self.tell_of_arrival();
            let mut slept = false;
            let answer = node.wait::<P>(polls, &mut slept, deadline, &self.meter);
            let leave = || node.ask_to_leave().map_or_else(|| node.look(), |status| self.leave(node, status));
            let granted = answer.unwrap_or_else(leave).is(Kind::Granted);
            if granted {
                self.meter.count(if slept { Event::Woken } else { Event::Spun });
            }
            node.take_back();
            granted
        })
    }

    /// Step (3) of a waiter.
    pub(super) fn tell_of_arrival(&self) {
        let mut state = State(self.state.load(Relaxed));
        loop {
            // Without waiters in the word the node is detached already, and there is none to serve.
            let serves = state.waiters() > 0
                && !state.has(State::QUEUE_LOCKED)
                && (state.permits() > 0 || state.is_closed());
            let next = if state.has(State::QUEUE_LOCKED) {
                state.with(State::ARRIVED) // (note)
            } else if serves {
                state.with(State::QUEUE_LOCKED) // (lock queue)
            } else {
                state
            };
            match self.state.compare_exchange(state.0, next.0, AcqRel, Relaxed) {
                Ok(_) if serves => return self.serve_queue(next, 0),
                Ok(_) => return,
                Err(now) => state = State(now),
            }
        }
    }

    /// A waiter whose status is `leaving` leaves the queue, which is the answer `Removed`, unless
    /// it is answered first.
    #[cold]
    pub(super) fn leave(&self, node: &Node, leaving: Status) -> Status {
        let mut state = State(self.state.load(Relaxed));
        // Without waiters in the word the node is detached already, and the answer is on its way.
        while state.waiters() > 0 {
            let serves = !state.has(State::QUEUE_LOCKED);
            // (lock queue) or (note)
            let next = state.with(if serves { State::QUEUE_LOCKED } else { State::LEAVERS });
            match self.state.compare_exchange(state.0, next.0, AcqRel, Relaxed) {
                Ok(_) if serves => {
                    // SAFETY: this thread holds the queue lock, and the node is its own.
                    let removed = unsafe { queue::remove(&mut &self.queue, node) };
                    self.serve_queue(next, u32::from(removed));
                    if removed {
                        return Status::removed();
                    }
                    break;
                }
                Ok(_) => break,
                Err(now) => state = State(now),
            }
        }
        node.await_answer(leaving)
    }

    /// (give) with waiters, or against other threads.
    pub(super) fn give_to_queue(&self, count: u32) -> Result<(), TooManyPermits> {
        let mut state = State(self.state.load(Relaxed));
        loop {
            let given = state.given(count).ok_or(TooManyPermits)?;
            match self.change_and_serve(state, given) {
                Ok(()) => return Ok(()),
                Err(now) => state = now,
            }
        }
    }

    /// Closes. `CLOSING.md` has the protocol.
    pub(super) fn close_queue(&self) {
        let mut state = State(self.state.load(Relaxed));
        while !state.is_closed() {
            // (close)
            match self.change_and_serve(state, state.with(State::CLOSED)) {
                Ok(()) => return,
                Err(now) => state = now,
            }
        }
    }

    /// A step from `state` to `next`, which the waiters have to learn of: with (lock queue), if
    /// there are waiters and the queue is not locked.
    fn change_and_serve(&self, state: State, next: State) -> Result<(), State> {
        let serves = next.waiters() > 0 && !next.has(State::QUEUE_LOCKED);
        let next = if serves { next.with(State::QUEUE_LOCKED) } else { next }; // (lock queue)
        self.state.compare_exchange(state.0, next.0, AcqRel, Relaxed).map_err(State)?;
        if serves {
            self.serve_queue(next, 0);
        }
        Ok(())
    }

    /// Works on the queue, and releases the queue lock. The caller has set `QUEUE_LOCKED`, which
    /// made the word `state`, and has detached as many nodes as `waiters` says.
    fn serve_queue(&self, mut state: State, mut waiters: u32) {
        let mut queue = &self.queue;
        let (mut served, mut gone) = (Departures::new(), Departures::new());
        let (mut permits, mut ahead) = (0, Sleepers::new());
        loop {
            if state.has(NOTES) {
                // (clear notes). Before the look: what comes after it is noted anew.
                match self.state.compare_exchange(state.0, state.without(NOTES).0, Acquire, Relaxed) {
                    Ok(_) if state.has(State::LEAVERS) => {
                        // SAFETY: this thread holds the queue lock, and answers below.
                        waiters += unsafe { queue::remove_leavers(&mut queue, &mut gone) };
                    }
                    Ok(_) => {}
                    Err(now) => {
                        state = State(now);
                        continue;
                    }
                }
                state = state.without(NOTES);
            }
            // Seen closed once, it stays closed: what was detached before is answered so, too.
            let closed = state.is_closed();
            if closed {
                permits = 0;
            }
            let mut granted = None;
            loop {
                let newest = queue.newest();
                if newest.is_null() {
                    break;
                }
                // SAFETY: this thread holds the queue lock, queued nodes are alive, and it answers
                // below.
                unsafe {
                    let node = queue::oldest(&queue, newest);
                    if !closed {
                        if (*node).wanted > state.permits() - permits {
                            if let Some(granted) = granted {
                                ahead.make_room();
                                queue::advance(&queue, &queue.window, node, newest, granted, &mut ahead);
                            }
                            break;
                        }
                        permits += (*node).wanted;
                        granted = Some(Granted::and(granted, node));
                    }
                    if node == newest {
                        queue::remove(&mut queue, node);
                    } else {
                        queue::detach_oldest(&queue, node, newest);
                    }
                    served.push(node);
                    waiters += 1;
                }
            }
            let next = state.departed(waiters, permits);
            // (settle). The last touch.
            match self.state.compare_exchange(state.0, next.0, AcqRel, Relaxed) {
                Ok(_) => break,
                Err(now) => state = State(now),
            }
        }
        let mut tasks = Wakers::new();
        served.answer_each(if state.is_closed() { Kind::Removed } else { Kind::Granted }, &mut tasks);
        ahead.wake();
        gone.answer_each(Kind::Removed, &mut tasks);
        // A waker may do anything: it comes last.
        tasks.wake();
    }
}
