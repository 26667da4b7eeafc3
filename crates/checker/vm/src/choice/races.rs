//! Which operations of one execution have to be tried in another order, and where that begins.
//!
//! An exploration that has run `e` at some state and `f` of another thread later asks whether some
//! execution runs `f` first and ends where none that begins with `e` does. It may only if `e` is
//! not covered after `f` ([`footprint`](super::footprint)); the two are then a *race*. To reverse
//! it, some thread that can begin such an execution has to be tried in place of `e`.
//!
//! # The fixed order
//! Executions cover one another by *moves*: `x, y` becomes `y, x` where `y` is covered after `x`
//! and can run there. So if `x` stands before `y` in an execution and `x` is **not** covered after
//! `y`, `x` stood there before all moves, too. That is the fixed order, together with the order of
//! each thread, the start of a thread, and its join. [`Trace::clocks`] is its transitive closure:
//! for each event and each thread, how many events the execution had when the last event of that
//! thread ran which comes before it, or is it.
//!
//! # Which thread reverses a race
//! Let `e` and `f` race, with no event between them in the fixed order. Let `w` be a sequence from
//! the state of `e` that ends with `f`, in which `e` does not run and is covered after all but `f`.
//! The execution at hand is one of those that `e, w` and something more turn into by moves. Of an
//! event `y` behind `e`, up to `f`:
//!
//! 1. If `e` comes before `y` in the fixed order, `y` is not in `w`, `f` aside.
//! 2. If `y` comes before `f`, or before another of `w`, it is in `w`.
//! 3. If `y` comes after one that is not in `w`, neither is `y`; if also (2), there is no such `w`.
//! 4. If `y` could not run at the state of `e`, and all before it are not in `w`, neither is `y`.
//!
//! Of those that may be in `w`, `y` is an *initial* if it is the next operation of a thread that
//! could run at the state of `e`, and is covered after all before it. Then it can be moved to the
//! beginning of `w`, or, if it is not in `w`, run there, covered after all of `w`.
//! [`Trace::reversal`] returns one. The first that may be in `w` is one unless (4) excludes it, so
//! that if none is left, there is no such `w`.
//!
//! Source of the scheme: P. Abdulla, S. Aronsson, B. Jonsson, K. Sagonas, *Optimal Dynamic Partial
//! Order Reduction*, POPL 2014. There, two operations change places both ways or not at all, and
//! the fixed order is what happens before what.

use super::Footprint;
use super::footprint::Relation;

/// An operation that ran.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    /// The question whose answer it was.
    pub(super) node: usize,
    /// The thread as it is called outside.
    pub(super) thread: usize,
    footprint: Footprint,
}

/// What is known of a thread at the state from which a race is to be reversed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It could not run.
    Blocked,
    /// Every execution that begins with it has been tried elsewhere.
    Asleep,
    /// It has been tried, or will be.
    Tried,
    /// It could run.
    Open,
}

/// How a race is reversed: the thread to try, and those to run after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reversal {
    pub(super) thread: usize,
    pub(super) then: Vec<usize>,
}

/// The events of an execution and their fixed order.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace {
    events: Vec<Event>,
    /// Of event `n`, from `n * stride` on: see the head of this file.
    clocks: Vec<u32>,
    stride: usize,
    /// Of each thread, what comes before all it does from here on.
    live: Vec<u32>,
    /// How many of `events` have run in this execution.
    passed: usize,
    /// Scratch: the event's clock, those that it races with, those that may be in `w`.
    clock: Vec<u32>,
    pub(super) races: Vec<usize>,
    pool: Vec<usize>,
}

/// The threads' row in the clocks; the clock of the machine, which is the highest number, has the
/// first.
fn row(thread: usize) -> usize {
    thread.wrapping_add(1)
}

impl Trace {
    pub(super) fn begin(&mut self) {
        self.passed = 0;
        self.live.fill(0);
    }

    /// Forgets what an execution that takes another way will not repeat.
    pub(super) fn truncate(&mut self, nodes: usize) {
        while self.events.last().is_some_and(|event| event.node >= nodes) {
            self.events.pop();
        }
        self.clocks.truncate(self.events.len() * self.stride);
    }

    pub(super) fn event(&self, event: usize) -> Event {
        self.events[event]
    }

    /// Makes room for `thread`.
    fn admit(&mut self, thread: usize) {
        if row(thread) < self.stride {
            return;
        }
        let (before, stride) = (self.stride, (row(thread) + 1).next_power_of_two().max(8));
        let mut clocks = vec![0; self.events.len() * stride];
        for event in 0..self.events.len() {
            clocks[event * stride..][..before].copy_from_slice(&self.clocks[event * before..][..before]);
        }
        let mut live = vec![0; stride * stride];
        for row in 0..before {
            live[row * stride..][..before].copy_from_slice(&self.live[row * before..][..before]);
        }
        (self.clocks, self.live, self.stride) = (clocks, live, stride);
    }

    /// All that `thread` does from here on comes after what `other` has done.
    pub(super) fn follows(&mut self, thread: usize, other: usize) {
        self.admit(thread);
        self.admit(other);
        for column in 0..self.stride {
            let seen = self.live[row(other) * self.stride + column];
            let mine = &mut self.live[row(thread) * self.stride + column];
            *mine = seen.max(*mine);
        }
    }

    /// How many events have run in this execution.
    pub(super) fn passed(&self) -> usize {
        self.passed
    }

    /// Whether the next event has not run in the execution before.
    pub(super) fn is_new(&self) -> bool {
        self.passed == self.events.len()
    }

    /// The next event is the one that it was before.
    pub(super) fn pass(&mut self) {
        let from = self.passed * self.stride;
        let to = row(self.events[self.passed].thread) * self.stride;
        self.live[to..to + self.stride].copy_from_slice(&self.clocks[from..from + self.stride]);
        self.passed += 1;
    }

    /// A new event has run. `races` are then those before it that race with it, none between them.
    pub(super) fn add(&mut self, node: usize, thread: usize, footprint: Footprint, covered: Relation) {
        self.hold(node, thread, footprint, covered);
        self.pass();
    }

    /// `add`, of an event that has not run and is to be [let go](Self::let_go) of.
    pub(super) fn hold(&mut self, node: usize, thread: usize, footprint: Footprint, covered: Relation) {
        debug_assert_eq!(self.passed, self.events.len());
        self.admit(thread);
        self.races.clear();
        self.clock.clear();
        self.clock.extend_from_slice(&self.live[row(thread) * self.stride..][..self.stride]);
        self.clock[row(thread)] = self.events.len() as u32 + 1;
        let mut end = self.unordered();
        for (number, event) in self.events.iter().enumerate().rev() {
            if number < end {
                break;
            }
            if self.clock[row(event.thread)] as usize > number || covered(event.footprint, footprint) {
                continue;
            }
            self.races.push(number);
            let theirs = &self.clocks[number * self.stride..][..self.stride];
            self.clock.iter_mut().zip(theirs).for_each(|(mine, &theirs)| *mine = theirs.max(*mine));
            end = self.unordered();
        }
        self.events.push(Event { node, thread, footprint });
        self.clocks.extend_from_slice(&self.clock);
    }

    /// The last event has not run.
    pub(super) fn let_go(&mut self) {
        self.events.pop();
        self.clocks.truncate(self.events.len() * self.stride);
    }

    /// From which event on some may not come before the one that `clock` is of.
    fn unordered(&self) -> usize {
        let last = |row: usize| self.live[row * self.stride + row];
        let rows = (0..self.stride).filter(|&row| last(row) > self.clock[row]);
        rows.map(|row| self.clock[row] as usize).min().unwrap_or(usize::MAX)
    }

    /// Whether `earlier` comes before `later` in the fixed order, or is it.
    fn is_fixed(&self, earlier: usize, later: usize) -> bool {
        let seen = self.clocks[later * self.stride + row(self.events[earlier].thread)];
        seen as usize > earlier
    }

    /// How to reverse the race of `first` with the last event, which is one of `races`; `None` if
    /// it needs nothing. `standing` tells of each thread how it stood when `first` was chosen.
    pub(super) fn reversal(
        &mut self,
        first: usize,
        covered: Relation,
        standing: impl Fn(usize) -> Standing,
    ) -> Option<Reversal> {
        let last = self.events.len() - 1;
        let mut pool = core::mem::take(&mut self.pool);
        pool.clear();
        let found = self.initial(first, last, covered, standing, &mut pool);
        self.pool = pool;
        found.map(|initial| Reversal {
            thread: self.events[initial].thread,
            then: (first + 1..=last)
                .filter(|&event| event != initial && self.is_fixed(event, last))
                .map(|event| self.events[event].thread)
                .collect(),
        })
    }

    /// The event whose thread is to be tried. `pool` becomes those that may be in `w`.
    fn initial(
        &self,
        first: usize,
        last: usize,
        covered: Relation,
        standing: impl Fn(usize) -> Standing,
        pool: &mut Vec<usize>,
    ) -> Option<usize> {
        let mut found: Option<usize> = None;
        // Not in `w`, other than by (1).
        let mut excluded: Vec<usize> = Vec::new();
        for event in first + 1..=last {
            if event != last && self.is_fixed(first, event) {
                continue;
            }
            let Event { thread, footprint, .. } = self.events[event];
            let is_needed = self.is_fixed(event, last);
            let is_next = !pool.iter().any(|&other| self.events[other].thread == thread);
            let mut is_excluded = excluded.iter().any(|&other| self.is_fixed(other, event));
            if !is_excluded && is_next {
                let is_initial = pool.iter().all(|&other| covered(footprint, self.events[other].footprint));
                match standing(thread) {
                    Standing::Blocked => is_excluded = pool.is_empty(),
                    Standing::Asleep => is_excluded = is_initial,
                    Standing::Tried if is_initial => return None,
                    // One that is needed is sure to begin `w`.
                    Standing::Open if is_initial => {
                        let is_better = |other| is_needed && !self.is_fixed(other, last);
                        if found.is_none_or(is_better) {
                            found = Some(event);
                        }
                    }
                    Standing::Tried | Standing::Open => {}
                }
            }
            match is_excluded {
                true if is_needed => return None,
                true => excluded.push(event),
                false => pool.push(event),
            }
        }
        debug_assert!(found.is_some(), "the last event is needed, and so was excluded or is in the pool");
        found
    }
}
