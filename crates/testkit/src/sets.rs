//! Semaphore arrays, one step after the other: the reference that arrays of this family are
//! compared with.
//!
//! It says what System V's `semop` does, and what Linux adds about the order, as plainly as
//! possible: every step looks at every sleeper. In short:
//!
//! - The operations of a set are tried in their order, on values in which those before them have
//!   happened. The first that cannot proceed decides: the set sleeps *there*, or is refused.
//!   Nothing has changed unless all can proceed.
//! - An arriving thread is tried before all sleepers.
//! - When values have changed, those that sleep are tried, one at a time: first the sets that
//!   change nothing, then the others, the oldest first. A thread that can proceed, or is to be
//!   refused now, ends; then it all begins again. So no thread sleeps that could do anything else,
//!   and a zero that was there between two steps was there.
//! - A set that names a semaphore that there is not, or an amount beyond the limit, is refused
//!   before it is tried.
//! - A sleeper counts where its first operation that cannot proceed is, and stays as old as it is
//!   when that changes.
//!
//! # What Linux does differently
//! [`Sets::as_in_linux`] departs in two points from the above, both visible only with sets of
//! several operations:
//!
//! 1. Sleeping sets of several operations that change nothing are tried again only when one of the
//!    semaphores that were operated on is zero (`do_smart_wakeup_zero`). They cannot succeed
//!    sooner; but they may be refused, or count on another semaphore, later than with us.
//! 2. When the first set of several operations goes to sleep, single operations that sleep on
//!    different semaphores change their places: those of the last semaphore become the oldest
//!    (`merge_queues`).

use core::cmp::Reverse;
use core::fmt;
use std::sync::Arc;

/// One operation of a set.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Op {
    /// On which semaphore.
    pub index: usize,
    /// What it does.
    pub action: Action,
    /// Whether the set is refused rather than that it waits for this operation.
    pub no_wait: bool,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Adds; never waits.
    Add(u32),
    /// Subtracts, when the value is as great.
    Sub(u32),
    /// Proceeds when the value is zero.
    WaitZero,
}

/// Adds to semaphore `index`.
pub const fn add(index: usize, amount: u32) -> Op {
    Op { index, action: Action::Add(amount), no_wait: false }
}

/// Subtracts from semaphore `index`.
pub const fn sub(index: usize, amount: u32) -> Op {
    Op { index, action: Action::Sub(amount), no_wait: false }
}

/// Waits until semaphore `index` is zero.
pub const fn wait_zero(index: usize) -> Op {
    Op { index, action: Action::WaitZero, no_wait: false }
}

impl Op {
    /// The same operation, for which no set waits.
    #[must_use]
    pub const fn no_wait(self) -> Self {
        Self { no_wait: true, ..self }
    }

    /// What it adds to its semaphore.
    pub const fn change(self) -> i64 {
        match self.action {
            Action::Add(amount) => amount as i64,
            Action::Sub(amount) => -(amount as i64),
            Action::WaitZero => 0,
        }
    }
}

/// As one would write it.
impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.action {
            Action::Add(amount) => write!(f, "add({}, {amount})", self.index)?,
            Action::Sub(amount) => write!(f, "sub({}, {amount})", self.index)?,
            Action::WaitZero => write!(f, "wait_zero({})", self.index)?,
        }
        f.write_str(if self.no_wait { ".no_wait()" } else { "" })
    }
}

/// Why a set was not performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Refusal {
    /// It would have to wait, and is not to.
    WouldBlock,
    /// It was cancelled by its deadline.
    TimedOut,
    /// It was cancelled by a signal.
    Interrupted,
    /// This semaphore would exceed the limit.
    OutOfRange(usize),
    /// There is no such semaphore.
    NoSuch(usize),
    /// The array was closed.
    Closed,
}

/// How a set ends.
pub type Outcome = Result<(), Refusal>;

/// Whose sets ended in a step, and how, in the order in which they did.
pub type Ended = Vec<(usize, Outcome)>;

/// How many sets sleep at a semaphore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Waiters {
    /// Until it is greater.
    pub increase: usize,
    /// Until it is zero.
    pub zero: usize,
}

/// The state of an array between two steps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sets {
    values: Vec<u32>,
    limit: u32,
    closed: bool,
    in_linux: bool,
    /// First those that change nothing, then the others; each by age.
    sleepers: Vec<Sleeper>,
}

/// A set that sleeps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Sleeper {
    who: usize,
    ops: Arc<[Op]>,
    /// The operation that could not proceed when it was last tried.
    stops_at: usize,
}

/// What comes of a set when it is tried.
enum Verdict {
    Proceeds(Vec<u32>),
    StopsAt(usize),
    Refused(Refusal),
}

impl Sets {
    /// An array of these values, none of which is greater than `limit` or ever will be.
    pub fn new(values: impl Into<Vec<u32>>, limit: u32) -> Self {
        Self { values: values.into(), limit, closed: false, in_linux: false, sleepers: Vec::new() }
    }

    /// The same array in the kernel of Linux, which departs from the model in the points that the
    /// module names.
    #[must_use]
    pub fn as_in_linux(self) -> Self {
        Self { in_linux: true, ..self }
    }

    /// `who` comes with a set. If it neither ends at once nor is to end at once, it sleeps.
    pub fn apply(&mut self, who: usize, ops: &[Op], may_sleep: bool) -> Ended {
        let outcome = match self.verdict(ops) {
            Verdict::StopsAt(at) if may_sleep => {
                self.sleep(Sleeper { who, ops: ops.into(), stops_at: at });
                return Vec::new();
            }
            Verdict::StopsAt(_) => Err(Refusal::WouldBlock),
            Verdict::Refused(refusal) => Err(refusal),
            Verdict::Proceeds(values) => {
                self.values = values;
                Ok(())
            }
        };
        let mut ended = vec![(who, outcome)];
        if outcome.is_ok() && alters(ops) {
            self.settle(self.any_zero(ops), &mut ended);
        }
        ended
    }

    /// Gives one semaphore a value. Returns the threads that end by that.
    pub fn set(&mut self, index: usize, value: u32) -> Result<Ended, Refusal> {
        let mut values = self.values.clone();
        *values.get_mut(index).ok_or(Refusal::NoSuch(index))? = value;
        self.set_all(&values)
    }

    /// Gives the semaphores these values. Returns the threads that end by that.
    pub fn set_all(&mut self, values: &[u32]) -> Result<Ended, Refusal> {
        assert_eq!(values.len(), self.values.len());
        if let Some(index) = values.iter().position(|value| *value > self.limit) {
            return Err(Refusal::OutOfRange(index));
        }
        if self.closed {
            return Err(Refusal::Closed);
        }
        self.values = values.to_vec();
        Ok(self.settled())
    }

    /// Takes back what a set did; a semaphore that would leave its range goes to the end of it.
    /// Returns the threads that end by that.
    pub fn give_back(&mut self, ops: &[Op]) -> Ended {
        if self.closed {
            return Vec::new();
        }
        for (index, value) in self.values.iter_mut().enumerate() {
            let change: i64 = ops.iter().filter(|op| op.index == index).map(|op| op.change()).sum();
            *value = (i64::from(*value) - change).clamp(0, self.limit.into()) as u32;
        }
        self.settled()
    }

    /// Ends the array, and the sets of all sleepers.
    pub fn close(&mut self) -> Ended {
        self.closed = true;
        self.sleepers.drain(..).map(|sleeper| (sleeper.who, Err(Refusal::Closed))).collect()
    }

    /// Ends the sleep of `who`, if it sleeps.
    pub fn cancel(&mut self, who: usize, why: Refusal) -> Ended {
        let sleeps = self.sleepers.iter().position(|sleeper| sleeper.who == who);
        sleeps.map(|at| (self.sleepers.remove(at).who, Err(why))).into_iter().collect()
    }

    /// The values.
    pub fn values(&self) -> &[u32] {
        &self.values
    }

    /// How many threads sleep at each semaphore.
    pub fn waiters(&self) -> Vec<Waiters> {
        let mut waiters = vec![Waiters::default(); self.values.len()];
        for Sleeper { ops, stops_at, .. } in &self.sleepers {
            let Op { index, action, .. } = ops[*stops_at];
            match action {
                Action::WaitZero => waiters[index].zero += 1,
                _ => waiters[index].increase += 1,
            }
        }
        waiters
    }

    /// Whether `who` sleeps.
    pub fn sleeps(&self, who: usize) -> bool {
        self.sleepers.iter().any(|sleeper| sleeper.who == who)
    }

    /// Tries a set, without performing it.
    fn verdict(&self, ops: &[Op]) -> Verdict {
        for Op { index, action, .. } in ops.iter().copied() {
            if index >= self.values.len() {
                return Verdict::Refused(Refusal::NoSuch(index));
            }
            if matches!(action, Action::Add(amount) | Action::Sub(amount) if amount > self.limit) {
                return Verdict::Refused(Refusal::OutOfRange(index));
            }
        }
        if self.closed {
            return Verdict::Refused(Refusal::Closed);
        }
        let mut values = self.values.clone();
        for (at, op) in ops.iter().enumerate() {
            let value = &mut values[op.index];
            let next = match op.action {
                Action::Add(amount) if amount > self.limit - *value => {
                    return Verdict::Refused(Refusal::OutOfRange(op.index));
                }
                Action::Add(amount) => Some(*value + amount),
                Action::Sub(amount) => value.checked_sub(amount),
                Action::WaitZero => (*value == 0).then_some(0),
            };
            match next {
                Some(next) => *value = next,
                None if op.no_wait => return Verdict::Refused(Refusal::WouldBlock),
                None => return Verdict::StopsAt(at),
            }
        }
        Verdict::Proceeds(values)
    }

    fn sleep(&mut self, sleeper: Sleeper) {
        let changing = self.sleepers.partition_point(|sleeper| !alters(&sleeper.ops));
        if self.in_linux && sleeper.ops.len() > 1 && self.sleepers.iter().all(|other| other.ops.len() == 1) {
            self.sleepers[changing..].sort_by_key(|other| Reverse(other.ops[0].index));
        }
        let place = if alters(&sleeper.ops) { self.sleepers.len() } else { changing };
        self.sleepers.insert(place, sleeper);
    }

    /// Any of the values may have changed.
    fn settled(&mut self) -> Ended {
        let mut ended = Vec::new();
        self.settle(self.values.contains(&0), &mut ended);
        ended
    }

    /// Tries those that sleep until none of them can do anything else. `zero`: whether there is one
    /// where Linux looks.
    fn settle(&mut self, mut zero: bool, ended: &mut Ended) {
        let mut at = 0;
        while at < self.sleepers.len() {
            let Sleeper { who, ops, .. } = self.sleepers[at].clone();
            if self.in_linux && !zero && !alters(&ops) {
                at += 1;
                continue;
            }
            let outcome = match self.verdict(&ops) {
                Verdict::StopsAt(op) => {
                    self.sleepers[at].stops_at = op;
                    at += 1;
                    continue;
                }
                Verdict::Refused(refusal) => Err(refusal),
                Verdict::Proceeds(values) => {
                    self.values = values;
                    Ok(())
                }
            };
            self.sleepers.remove(at);
            ended.push((who, outcome));
            if outcome.is_ok() && alters(&ops) {
                zero = self.any_zero(&ops);
                at = 0;
            }
        }
    }

    fn any_zero(&self, ops: &[Op]) -> bool {
        ops.iter().any(|op| self.values[op.index] == 0)
    }
}

/// Whether a set is of those that change values.
fn alters(ops: &[Op]) -> bool {
    ops.iter().any(|op| op.change() != 0)
}
