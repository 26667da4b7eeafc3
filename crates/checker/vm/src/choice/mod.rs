//! Choices: which thread runs next, which message a load reads, whether a waiter times out. One
//! answer to each makes an execution.
//!
//! The explorer asks, a [`Strategy`] answers. Nothing here knows of memory or coroutines: an
//! execution is its list of answers, and the same answers give the same execution.
//!
//! | strategy | answers | ends |
//! |---|---|---|
//! | [`Random`] | by chance, each execution with its own habits | after the executions asked for |
//! | [`Pct`] | threads by priorities with a few changes, the rest as `Random` | after the executions asked for |
//! | [`Exhaustive`] | each in turn, less what leads nowhere else | when nothing is left, or cut by its budget |
//! | [`Bytes`] | as an input string says | after one execution |
//!
//! A [`Recorder`] around any of them writes down the string that makes `Bytes` repeat the
//! execution. [`shrink()`] makes such a string small while it still fails, and [`text`] writes it
//! for people.
//!
//! Answer 0 is always the tame one: the thread that ran last goes on, a load reads the newest
//! message, nothing is spurious, no thread dies. A string of zeros, and so the empty string, is the
//! execution without surprises, and the smaller a string the fewer surprises it has.
//!
//! # Invariants
//! 1. An answer is below the number of answers there were.
//! 2. `begin` decides everything that is decided once an execution; it returns false for ever after
//!    it did once.
//! 3. With the same construction and the same questions, a strategy gives the same answers: there
//!    is no other source of chance than its seed.

mod bytes;
mod exhaustive;
pub(crate) mod footprint;
mod pct;
mod races;
mod random;
mod recorder;
mod rng;
pub(crate) mod share;
mod shrink;
pub(crate) mod text;

pub(crate) use bytes::Bytes;
pub(crate) use exhaustive::{Exhaustive, Turn};
pub(crate) use footprint::Footprint;
pub(crate) use pct::Pct;
pub(crate) use random::{Odds, Random};
pub(crate) use recorder::Recorder;
pub(crate) use shrink::shrink;

/// What a choice beside that of a thread is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Which message a load or a read-modify-write reads, newest first.
    Message,
    /// Where in its word's order a store goes, last place first.
    Place,
    /// Whether a weak compare-exchange fails although the value is the expected one.
    WeakFailure,
    /// Whether a futex wait returns for no reason.
    Spurious,
    /// Whether a deadline passes now.
    Expire,
    /// Whether a signal is delivered now.
    Interrupt,
    /// Whether the thread, or its process, ends here for ever.
    Die,
    /// A choice of the model itself.
    User,
}

impl Kind {
    /// How many kinds there are.
    pub(crate) const COUNT: usize = Kind::User as usize + 1;
}

/// A thread that can run, and what its next operation touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) thread: usize,
    pub(crate) footprint: Footprint,
}

/// The payload of a panic: with the same answers as in the execution before, another question was
/// asked. Both in words.
#[derive(Debug)]
pub(crate) struct NotDeterministic {
    pub(crate) before: String,
    pub(crate) now: String,
}

/// Answers the questions of one execution after another.
pub(crate) trait Strategy {
    /// A new execution. False if there is none: all are done, or the budget is spent.
    fn begin(&mut self) -> bool;

    /// Which of `enabled` runs. It is not empty, each thread stands in it once, and the thread that
    /// ran last, if it is enabled, stands first. Asked before every operation, also where only one
    /// thread can run.
    fn thread(&mut self, enabled: &[Candidate]) -> usize;

    /// One of `n` answers, at least two.
    fn pick(&mut self, kind: Kind, n: usize) -> usize;

    /// `thread` spins: it can do nothing useful before others have run.
    fn yielded(&mut self, _thread: usize) {}

    /// `thread` begins, or has waited for the end of `other`: all that it does from here on comes
    /// after what `other` has done.
    fn follows(&mut self, _thread: usize, _other: usize) {}

    /// `thread` has come to an operation of this footprint, and is kept from running by what ran
    /// before. It will run when it can.
    fn kept(&mut self, _thread: usize, _footprint: Footprint) {}

    /// The next question is about threads of which one may be kept from running by what touches
    /// nothing of its own: no order may be left out.
    fn all_orders(&mut self) {}

    /// The next question is asked under a limit of preemptions: `turn` says whose turn it is, and
    /// `enabled` which threads can run, of which the question may leave out some.
    fn within(&mut self, _turn: Turn, _enabled: &[Candidate]) {}

    /// What the caller has found, `found`, which may depend on more than the answers before. Where
    /// the same was asked after the same answers, what was found then.
    fn fact(&mut self, found: Option<u32>) -> Option<u32> {
        found
    }

    /// The execution, in which nobody can go on, is to count as one that repeats another.
    fn repeats(&mut self) {}

    /// Whether the execution is known to repeat another. The caller may end it at once; all answers
    /// are 0 from here on.
    fn is_redundant(&self) -> bool {
        false
    }
}

impl<S: Strategy + ?Sized> Strategy for Box<S> {
    fn begin(&mut self) -> bool {
        (**self).begin()
    }

    fn thread(&mut self, enabled: &[Candidate]) -> usize {
        (**self).thread(enabled)
    }

    fn pick(&mut self, kind: Kind, n: usize) -> usize {
        (**self).pick(kind, n)
    }

    fn yielded(&mut self, thread: usize) {
        (**self).yielded(thread);
    }

    fn follows(&mut self, thread: usize, other: usize) {
        (**self).follows(thread, other);
    }

    fn kept(&mut self, thread: usize, footprint: Footprint) {
        (**self).kept(thread, footprint);
    }

    fn all_orders(&mut self) {
        (**self).all_orders();
    }

    fn within(&mut self, turn: Turn, enabled: &[Candidate]) {
        (**self).within(turn, enabled);
    }

    fn fact(&mut self, found: Option<u32>) -> Option<u32> {
        (**self).fact(found)
    }

    fn repeats(&mut self) {
        (**self).repeats();
    }

    fn is_redundant(&self) -> bool {
        (**self).is_redundant()
    }
}
