//! The line of a private semaphore: nodes in a queue, served by whoever comes by.
//!
//! Permits are handed over: who serves the line takes them out of the word for the waiter, and
//! tells it. So the waiter has nothing to do when it wakes, a wake-up goes to exactly the thread it
//! is for, and thousands can wait.
//!
//! # State
//! | flag | set by | cleared by | law |
//! |---|---|---|---|
//! | `SERVING` | (S1), who is the server from then on | the server, (S4) | only the server unlinks nodes |
//! | `ARRIVED` | (S2), a waiter that has pushed its node and finds a server | the server, (S3) and then it looks | |
//! | `LEAVERS` | (S2), a waiter that wants out and finds a server | the server, (S3) and then it looks | |
//!
//! | a node's status | by | meaning |
//! |---|---|---|
//! | `WAITING` | its owner | in line, awake |
//! | `PARKED` | its owner, (N1) | asleep, or about to be: who changes this wakes |
//! | `LEAVING` | its owner, (N2) | its deadline has passed; awake |
//! | `LEAVING_PARKED` | its owner, (N3) | the same, asleep |
//! | `GRANTED` | the server that unlinked it, (N4) | it has its permits |
//! | `GONE` | the server that unlinked it, (N5) | it has none, and is out of the line |
//!
//! # Protocol
//! A **waiter** (1) comes, (C); (2) pushes its node; (3) changes the word: if permits are there, it
//! serves (S1), if another serves, it leaves a note (S2), and otherwise the word stays as it is,
//! but it is a change all the same: a release that follows it finds the node. (4) It waits until
//! its status is `GRANTED`.
//!
//! A **release** gives, (G), and if somebody is in line and nobody serves, serves with the same
//! step (S1). If somebody serves, it is done: the server will find the word changed.
//!
//! The **server** (1) takes notes out of the word (S3); (2) unlinks those who want out, if it was
//! told; (3) unlinks the oldest as long as the permits last; (4) leaves, in one step with the
//! permits and the waiters it has unlinked (S4); if the word has changed since it looked, it begins
//! again. (5) Only then it tells those it has unlinked. Of the semaphore it touches nothing in (5);
//! of each node nothing after the word it says there.
//!
//! A waiter that **gives up** becomes `LEAVING` (N2), and asks a server to unlink it, or serves
//! (S1) and does it itself. Either way it waits for the answer, which is `GONE`, or `GRANTED` if a
//! server has been faster. It does not wait for others that wait, only for the steps of a server.
//!
//! # Invariants
//! Beside those of `raw.rs`:
//! 4. At most one thread serves, from (S1) to (S4).
//! 5. Each node in the queue is counted in the word. Counted ones that are not in the queue are on
//!    their way to their step (3), or unlinked by the server, which subtracts them with (S4).
//! 6. While nobody serves, the permits do not suffice for the oldest node whose owner is past its
//!    step (3): (S4) leaves a word in which they did not, for the nodes that the server saw; nodes
//!    that it did not see bring their own step (3); and permits come with (S1).
//! 7. `LEAVING` is answered: who wants out serves itself, or has left a note in a word with
//!    `SERVING`, and (S4) fails as long as there are notes.
//!
//! # Ordering
//! - The changes of the word here are Acquire and Release: links go from server to server that way,
//!   nodes from their owners to the servers, and what was done before a release to the server that
//!   hands its permits over. Two do less: (S3) releases nothing, since (S4) follows; (C) of
//!   `raw.rs` has nothing to tell a server, since the node comes later. A change that fails is
//!   Relaxed: the attempt that succeeds acquires.
//! - (N4) is Release and the look that finds `GRANTED`, (N6), is Acquire: that carries it to the
//!   waiter. (N5) likewise: the owner's stack is its own again.

use super::queue::{Departures, Node};
use super::raw::RawSemaphore;
use super::word::State;
use crate::TooManyPermits;
use ulocks_core::Policy;
use ulocks_core::futex::Waited;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::spin;
use ulocks_core::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_core::sync::without_unwinding;
use ulocks_core::time::Deadline;

const WAITING: u32 = 0;
const PARKED: u32 = 1;
const LEAVING: u32 = 2;
const LEAVING_PARKED: u32 = LEAVING | PARKED;
const GRANTED: u32 = 4;
const GONE: u32 = 8;

const NOTES: u64 = State::ARRIVED | State::LEAVERS;

impl<P: Policy> RawSemaphore<P> {
    /// Waits for `wanted` permits, counted in already. The `first` in line spins a little; the
    /// others have to wait for more than one release. False if `deadline` passed first.
    pub(super) fn wait_in_queue(&self, wanted: u32, first: bool, deadline: Option<Deadline>) -> bool {
        // From its push to its unlinking other threads know the node: a panic must not free it.
        without_unwinding(|| {
            let node = Node::new(wanted);
            // SAFETY: the node is new, and lives and stays until the wait is over.
            unsafe { self.line.queue().push(&raw const node, &self.meter) };
            self.tell_of_arrival();
            if first && Self::spin_on(&node) {
                self.meter.count(Event::Spun);
                return true;
            }
            let granted = self.sleep_on(&node, deadline);
            if granted {
                self.meter.count(Event::Woken);
            }
            granted
        })
    }

    /// (N6): whether the permits are there.
    #[inline]
    fn is_granted(node: &Node) -> bool {
        node.status.load(Acquire) == GRANTED
    }

    /// The node is the waiter's own, so looking at it disturbs nobody; only its server writes
    /// there.
    fn spin_on(node: &Node) -> bool {
        spin::head_waiter::<P>(false, || Self::is_granted(node))
    }

    /// True when permits are granted, false when the node is out of the line without any.
    fn sleep_on(&self, node: &Node, deadline: Option<Deadline>) -> bool {
        // (N1)
        if node.status.compare_exchange(WAITING, PARKED, Relaxed, Acquire).is_err() {
            return true; // nothing but (N4) comes before it
        }
        self.meter.count(Event::Slept);
        self.meter.count(Event::Woke); // owed by (N4) from here on, which must not count
        loop {
            let waited = node.status.wait(PARKED, deadline);
            if Self::is_granted(node) {
                return true;
            }
            if waited == Waited::TimedOut {
                return self.leave(node);
            }
        }
    }

    /// Step (3) of a waiter.
    fn tell_of_arrival(&self) {
        let mut state = State(self.state.load(Relaxed));
        loop {
            let serves = !state.has(State::SERVING) && state.permits() > 0;
            let next = if state.has(State::SERVING) {
                state.with(State::ARRIVED) // (S2)
            } else if serves {
                state.with(State::SERVING) // (S1)
            } else {
                state
            };
            match self.state.compare_exchange(state.0, next.0, AcqRel, Relaxed) {
                Ok(_) if serves => return self.serve(next, None),
                Ok(_) => return,
                Err(now) => state = State(now),
            }
        }
    }

    /// Leaves the line. True if permits came first.
    #[cold]
    fn leave(&self, node: &Node) -> bool {
        // (N2)
        if node.status.compare_exchange(PARKED, LEAVING, Relaxed, Acquire).is_err() {
            return true;
        }
        let mut state = State(self.state.load(Relaxed));
        // Nobody is in line: a server has unlinked this node already, and its word is on the way.
        while !state.has_no_line() {
            let serves = !state.has(State::SERVING);
            // (S1) or (S2)
            let next = state.with(if serves { State::SERVING } else { State::LEAVERS });
            match self.state.compare_exchange(state.0, next.0, AcqRel, Relaxed) {
                Ok(_) if serves => {
                    self.serve(next, Some(node));
                    break;
                }
                Ok(_) => break,
                Err(now) => state = State(now),
            }
        }
        loop {
            match node.status.load(Acquire) {
                GRANTED => return true,
                GONE => return false,
                _ => {}
            }
            // (N3). It may fail, and the next look says why.
            _ = node.status.compare_exchange(LEAVING, LEAVING_PARKED, Relaxed, Relaxed);
            node.status.wait(LEAVING_PARKED, None);
        }
    }

    /// (G) with somebody in line, or against others.
    pub(super) fn give_to_queue(&self, count: u32) -> Result<(), TooManyPermits> {
        let mut state = State(self.state.load(Relaxed));
        loop {
            let given = state.given(count).ok_or(TooManyPermits)?;
            let serves = !given.has_no_line() && !given.has(State::SERVING);
            let next = if serves { given.with(State::SERVING) } else { given }; // (S1)
            match self.state.compare_exchange(state.0, next.0, AcqRel, Relaxed) {
                Ok(_) if serves => break self.serve(next, None),
                Ok(_) => break,
                Err(now) => state = State(now),
            }
        }
        Ok(())
    }

    /// Serves the line. The caller has set `SERVING`, which made the word `state`; it may be a
    /// waiter that wants out.
    fn serve(&self, mut state: State, leaver: Option<&Node>) {
        let queue = self.line.queue();
        let (mut granted, mut gone) = (Departures::new(), Departures::new());
        let (mut permits, mut waiters) = (0, 0);
        if let Some(leaver) = leaver {
            // SAFETY: this thread serves (invariant 4); the caller's node is alive and was pushed,
            // but may be unlinked by the server before this one, whose word is still to come.
            unsafe {
                if queue.unlink(leaver) {
                    gone.push(leaver);
                    waiters += 1;
                }
            }
        }
        loop {
            if state.has(NOTES) {
                // (S3). Before the look: what comes after it is noted anew.
                match self.state.compare_exchange(state.0, state.without(NOTES).0, Acquire, Relaxed) {
                    Ok(_) if state.has(State::LEAVERS) => waiters += self.unlink_leavers(&mut gone),
                    Ok(_) => {}
                    Err(now) => {
                        state = State(now);
                        continue;
                    }
                }
                state = state.without(NOTES);
            }
            // SAFETY: this thread serves (invariant 4), and nodes in the queue are alive.
            unsafe {
                loop {
                    let left = state.permits() - permits;
                    let fits = |node: *const Node| !node.is_null() && (*node).wanted <= left;
                    let node = queue.oldest();
                    if !fits(node) {
                        break;
                    }
                    queue.unlink(node);
                    granted.push(node);
                    permits += (*node).wanted;
                    waiters += 1;
                }
            }
            let next = state.departed(waiters, permits);
            // (S4). The last touch.
            match self.state.compare_exchange(state.0, next.0, AcqRel, Relaxed) {
                Ok(_) => break,
                Err(now) => state = State(now),
            }
        }
        granted.tell_each(|node| Self::tell(node, GRANTED));
        gone.tell_each(|node| Self::tell(node, GONE));
    }

    /// Takes those out of the queue that want to leave; returns how many they are.
    ///
    /// Only needed when somebody wanted out while another thread served, so that it may go through
    /// the whole queue.
    #[cold]
    fn unlink_leavers(&self, gone: &mut Departures) -> u32 {
        let queue = self.line.queue();
        let mut count = 0;
        // SAFETY: this thread serves (invariant 4), and nodes in the queue are alive.
        unsafe {
            let mut node = queue.oldest();
            while !node.is_null() {
                let newer = queue.newer(node);
                if (*node).status.load(Relaxed) & LEAVING != 0 {
                    queue.unlink(node);
                    gone.push(node);
                    count += 1;
                }
                node = newer;
            }
        }
        count
    }

    /// (N4), (N5): says `word` to the owner of `node`, and wakes it if it sleeps. From the word on
    /// the node may be gone.
    fn tell(node: *const Node, word: u32) {
        // SAFETY: whoever was unlinked waits for a word, so the node is alive until it has one.
        let status = unsafe { &(*node).status };
        let key = status.key();
        if status.swap(word, Release) & PARKED != 0 {
            key.wake(1);
        }
    }
}
