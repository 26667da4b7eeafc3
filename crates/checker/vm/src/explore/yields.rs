//! Yields in an exploration of all executions: a thread that yields again and again makes way.
//!
//! A loop that only looks is a wait, and `loops.rs` follows no fruitless round of it. A loop that
//! changes something and yields, such as a try-lock, a look and an unlock, has another state of
//! memory after each round. An execution in which only its thread runs has no end, and no scheduler
//! of an operating system is that unfair. So such executions are left out.
//!
//! # Rule
//! A yield is *busy* if its thread has changed something since it yielded last: a word, plain data,
//! or what sleeps on a futex. The first [`FREE`] busy yields of a thread at a place are free: they
//! touch nothing, and the thread may go on at once. Each later one is *fair*:
//!
//! | step of the thread | what happens |
//! |---|---|
//! | it yields | all others that can go are noted, and the clock, if a deadline is pending |
//! | it goes on | once each of them has taken a step since, or was seen unable to go |
//!
//! Steps that no other thread can tell do not count. Where an execution kept a thread from going on
//! for that, the report says so as [`Bound::Yields`](super::bounds::Bound::Yields).
//!
//! # What is left out
//! Executions in which a thread goes on after a fair yield while some other thread, which could
//! take a step all the time, takes none that others can tell. Nothing else is: between two fair
//! yields each thread may take one step or many.
//!
//! To go on from a fruitless round is such a step. A bare loop waits where it was recognised, and
//! that is a matter of how it was compiled. So two builds may leave out different executions of it.
//!
//! # Why the reduction loses nothing by it
//! The rule is one more condition on which threads can go. `choice/exhaustive.rs` allows such
//! conditions. Its preconditions hold:
//!
//! 1. *The state is that of the trace, not of the order in which it was run.* How many busy yields
//!    a thread has made is known from its own steps. Both steps of a fair yield touch
//!    [`Everything`](Footprint::Everything), so each keeps its order with all that others can tell.
//!    Therefore the threads that can go at the first step are known, too. They go away one by one,
//!    in any order. Whether a thread was unable to go between two steps that change this does not
//!    depend on steps elsewhere: what it waits for is one word, or comes and does not go again.
//! 2. *What lets a thread go on is touched by its operation*: the second step touches everything.
//! 3. *Nothing keeps a thread from going that could go.* Only its own yield does. After that, steps
//!    of others can only let it go on.
//!
//! That a thread looks is a step that lets others go on. So from the first fair yield on, no
//! execution is left out for a look that came too early (`rounds.rs`): in the one without the look,
//! the yield might not be fair.
//!
//! Two threads do not wait for each other. A thread notes only such as can go, and its yield is a
//! step: it is taken off all other notes.
//!
//! Source: M. Musuvathi, S. Qadeer, *Fair Stateless Model Checking*, PLDI 2008. There a thread
//! loses its priority by two yields between which another one that can go has not run.

use super::bounds::Bound;
use super::machine::{CLOCK, Machine};
use crate::engine::At;

/// How many busy yields of a thread at a place need not be fair.
///
/// With none, the second round of a loop could never come before another thread's step, which a
/// test of retries may be about. Each more multiplies executions. `tests/loops/fair.rs`, test "two
/// loops", which polls and which counts, executions with two preemptions:
///
/// | free | poll | count |
/// |---|---|---|
/// | 0 | 954 | 200 |
/// | 1 | 7,772 | 1,062 |
/// | 2 | 50,996 | 4,224 |
/// | 3 | 307,572 | 19,710 |
const FREE: u32 = 1;

/// What is known of the yields of a thread.
#[derive(Default)]
pub(super) struct Yields {
    /// It has changed something since it yielded last.
    is_busy: bool,
    /// By place, how many busy yields it has made.
    busy: Vec<(At, u32)>,
    /// Those that have to take a step before it goes on.
    before: Vec<usize>,
}

impl Yields {
    /// Whether it need not wait for others.
    pub(super) fn may_go_on(&self) -> bool {
        self.before.is_empty()
    }

    /// It changes something.
    pub(super) fn is_busy(&mut self) {
        self.is_busy = true;
    }

    /// It yields. Whether that has to be fair.
    fn yields(&mut self, at: At) -> bool {
        if !core::mem::take(&mut self.is_busy) {
            return false;
        }
        match self.busy.iter_mut().find(|(place, _)| core::ptr::eq(*place, at)) {
            Some((_, count)) => {
                *count += 1;
                *count > FREE
            }
            None => {
                self.busy.push((at, 1));
                FREE == 0
            }
        }
    }
}

impl Machine<'_, '_> {
    /// The current thread yields. Whether that has to be fair.
    pub(super) fn must_be_fair(&mut self, at: At) -> bool {
        let me = self.current;
        self.is_systematic && self.threads[me].yields.yields(at)
    }

    /// The first step of a fair yield. Whether the thread has to wait for others.
    pub(super) fn makes_way(&mut self, at: At) -> bool {
        let me = self.current;
        self.made_way = true;
        let can_go = |&other: &usize| other != me && self.can_go_by_itself(other);
        let mut before: Vec<usize> = (0..self.threads.len()).filter(can_go).collect();
        before.extend(self.next_deadline().map(|_| CLOCK));
        let waits = !before.is_empty();
        self.hit_if(waits, Bound::Yields, at);
        let yields = &mut self.threads[me].yields;
        yields.before = before;
        yields.is_busy = false;
        waits
    }

    /// `thread`, or the clock, takes a step that others can tell.
    pub(super) fn took_a_step(&mut self, thread: usize) {
        for other in &mut self.threads {
            other.yields.before.retain(|&before| before != thread);
        }
    }

    /// Takes those off all notes that cannot go now.
    pub(super) fn forget_the_stuck(&mut self) {
        for number in 0..self.threads.len() {
            if self.threads[number].yields.may_go_on() {
                continue;
            }
            let mut before = core::mem::take(&mut self.threads[number].yields.before);
            before.retain(|&other| match other {
                CLOCK => self.next_deadline().is_some(),
                _ => self.can_go_by_itself(other),
            });
            self.threads[number].yields.before = before;
        }
    }
}
