//! The search for an order: Wing and Gong's, with Lowe's memory of where it has been.
//!
//! A *configuration* is a set of operations that have been given their place, and the state after
//! them. From each, any operation may come next that no other has to precede: the calls before the
//! first return that is left. The events that are left are a linked list. To give an operation its
//! place is to lift its call and its return out of it; to take that back is to put them in again,
//! in reverse, so that the links of a lifted event always tell where it belongs.
//!
//! What can come of a configuration does not depend on the order that led to it. So each is
//! searched once: at most 2^n sets instead of n! orders, for n operations that all overlap.
//!
//! An operation that did not return has a call in the list and no return: it may be given a place,
//! with any outcome, and need not.

use super::{Operation, Specification};
use std::collections::HashSet;
use std::vec;

/// The end of the list, before the first event and after the last.
const END: usize = 0;

/// What the search found.
pub(super) struct Found<State> {
    /// The operations in an order that explains the history, or, failing that, nothing.
    pub(super) sequence: Vec<usize>,
    /// The state after them.
    pub(super) state: State,
    /// How many configurations were searched.
    pub(super) configurations: usize,
}

/// No order explains the history.
pub(super) struct Stuck {
    /// The latest return that no configuration gets past. Those before it can be explained all at
    /// once.
    pub(super) event: usize,
    /// How many configurations were searched.
    pub(super) configurations: usize,
}

/// A configuration on the way, and what has been tried from it.
struct Level<State> {
    state: State,
    /// The call that is tried. `END` before the first.
    call: usize,
    /// The states it can leave and that were not tried.
    outcomes: vec::IntoIter<State>,
}

/// Searches the events before number `end`; what happens later has not happened yet.
pub(super) fn search<S: Specification>(
    specification: &S,
    operations: &[Operation<S::Call, S::Return>],
    end: usize,
) -> Result<Found<S::State>, Stuck> {
    let mut events = Events::new(operations, end);
    let mut placed = Set::new(operations.len());
    let mut seen = HashSet::new();
    let mut stuck = 0;
    let level = |state| Level { state, call: END, outcomes: Vec::new().into_iter() };
    let mut levels = vec![level(specification.start())];

    while let Some(here) = levels.last_mut() {
        if events.returns == 0 {
            let found = levels.pop().expect("there is a last level");
            let sequence = levels.iter().map(|level| events.operation(level.call)).collect();
            return Ok(Found { sequence, state: found.state, configurations: seen.len() + 1 });
        }
        if let Some(state) = here.outcomes.next() {
            let operation = events.operation(here.call);
            placed.insert(operation);
            if seen.insert((placed.clone(), state.clone())) {
                events.lift(here.call);
                levels.push(level(state));
            } else {
                placed.remove(operation);
            }
            continue;
        }
        here.call = events.after(here.call);
        if events.is_call(here.call) {
            let operation = &operations[events.operation(here.call)];
            let seen_return = operation.returned.as_ref().filter(|(number, _)| *number < end);
            let outcomes = specification.outcomes(&here.state, &operation.call).into_iter();
            let fitting = outcomes
                .filter(|(_, value)| seen_return.is_none_or(|(_, returned)| returned == value))
                .map(|(state, _)| state);
            here.outcomes = fitting.collect::<Vec<_>>().into_iter();
        } else {
            // Whatever comes next, this operation has to come before it, and it cannot.
            stuck = stuck.max(events.number(here.call));
            levels.pop();
            if let Some(before) = levels.last() {
                events.put_back(before.call);
                placed.remove(events.operation(before.call));
            }
        }
    }
    Err(Stuck { event: stuck, configurations: seen.len() + 1 })
}

/// The events that are left, a doubly linked list. Events have their numbers plus one; 0 is the
/// end.
struct Events {
    next: Vec<usize>,
    previous: Vec<usize>,
    what: Vec<What>,
    /// How many returns are left.
    returns: usize,
}

#[derive(Clone, Copy)]
enum What {
    Call {
        operation: usize,
        returns: Option<usize>,
    },
    /// Also the end of the list, which no caller asks for.
    Return,
}

impl Events {
    fn new<C, R>(operations: &[Operation<C, R>], end: usize) -> Self {
        let last = |operation: &Operation<C, R>| {
            operation.returned.as_ref().map_or(operation.called, |(number, _)| *number)
        };
        let count = operations.iter().map(last).max().map_or(0, |last| last + 1).min(end);
        let mut what = vec![What::Return; count + 1];
        let mut returns = 0;
        for (number, operation) in operations.iter().enumerate() {
            let returned = operation.returned.as_ref().map(|(number, _)| *number + 1);
            let returned = returned.filter(|event| *event <= count);
            if operation.called < count {
                what[operation.called + 1] = What::Call { operation: number, returns: returned };
                returns += usize::from(returned.is_some());
            }
        }
        let next = (1..=count).chain([END]).collect();
        let previous = [count].into_iter().chain(0..count).collect();
        Self { next, previous, what, returns }
    }

    fn after(&self, event: usize) -> usize {
        self.next[event]
    }

    fn is_call(&self, event: usize) -> bool {
        matches!(self.what[event], What::Call { .. })
    }

    fn number(&self, event: usize) -> usize {
        event - 1
    }

    /// The operation whose call this is.
    fn operation(&self, call: usize) -> usize {
        self.call(call).0
    }

    fn call(&self, call: usize) -> (usize, Option<usize>) {
        match self.what[call] {
            What::Call { operation, returns } => (operation, returns),
            What::Return => unreachable!("event {call} is not a call"),
        }
    }

    fn lift(&mut self, call: usize) {
        self.unlink(call);
        if let (_, Some(returns)) = self.call(call) {
            self.unlink(returns);
            self.returns -= 1;
        }
    }

    fn put_back(&mut self, call: usize) {
        if let (_, Some(returns)) = self.call(call) {
            self.link(returns);
            self.returns += 1;
        }
        self.link(call);
    }

    fn unlink(&mut self, event: usize) {
        self.next[self.previous[event]] = self.next[event];
        self.previous[self.next[event]] = self.previous[event];
    }

    fn link(&mut self, event: usize) {
        self.next[self.previous[event]] = event;
        self.previous[self.next[event]] = event;
    }
}

/// A set of operations.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Set(Box<[u64]>);

impl Set {
    fn new(operations: usize) -> Self {
        Self(vec![0; operations.div_ceil(64)].into())
    }

    fn insert(&mut self, operation: usize) {
        self.0[operation / 64] |= 1 << (operation % 64);
    }

    fn remove(&mut self, operation: usize) {
        self.0[operation / 64] &= !(1 << (operation % 64));
    }
}
