//! What can be wrong with an execution.

use crate::choice::NotDeterministic;
use crate::memory::Fault;
use core::fmt;

/// What is wrong with an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A thread panicked: an assertion of the model, usually.
    Panic(String),
    /// Two accesses to plain data, one of them a write, that nothing orders.
    Race(String),
    /// An atomic was used by a thread that had not learnt of its initialisation in an ordered way.
    Unpublished(String),
    /// An atomic was used after its end, or ended while its use was not over. Or memory was used
    /// that had been given back, or it was given back twice.
    Dead(String),
    /// No thread can go on, and no wake-up is missing: each waits for another.
    Deadlock(Stuck),
    /// No thread can go on, and a wake-up is missing. A sleeper sleeps on a word that has changed
    /// since: the thread that changed it owed a wake-up. Or the wake-up came too early: the sleeper
    /// fell asleep on the very value that a wake call had announced before, to no sleeper.
    LostWakeUp(Stuck),
    /// The threads go on and on, and none comes to its end.
    Livelock(Stuck),
    /// All threads ended, and a value that has to be given back was not: an
    /// [`Arc`](crate::sync::Arc), for one.
    Leak(String),
    /// With the same choices as in an execution before, the model has done something else. So no
    /// exploration of it means anything.
    NotDeterministic(String),
    /// The machine was used in a way it cannot answer for.
    Misuse(String),
}

/// What each thread that has not ended is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck(pub(super) Vec<String>);

impl Verdict {
    pub(super) fn of_difference(NotDeterministic { before, now }: &NotDeterministic) -> Self {
        Self::NotDeterministic(format!(
            "with the same choices the question was first: {before}, and now: {now}. A model must not depend on the \
             clock, on random numbers or the hash of a `HashMap`, on a static that its executions change, nor on \
             addresses: which of them are equal is the same in each execution with `ulocks_vm::alloc::Allocator`"
        ))
    }

    pub(super) fn of_fault(fault: &Fault, text: String) -> Self {
        match fault {
            Fault::Race { .. } => Self::Race(text),
            Fault::Unpublished { .. } => Self::Unpublished(text),
            Fault::Dead { .. } | Fault::Freed { .. } => Self::Dead(text),
        }
    }

    /// What kind of fault it is, in two words.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Panic(_) => "panic",
            Self::Race(_) => "data race",
            Self::Unpublished(_) => "unordered initialisation",
            Self::Dead(_) => "use after the end",
            Self::Deadlock(_) => "deadlock",
            Self::LostWakeUp(_) => "lost wake-up",
            Self::Livelock(_) => "livelock",
            Self::Leak(_) => "leak",
            Self::NotDeterministic(_) => "not deterministic",
            Self::Misuse(_) => "misuse",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind();
        match self {
            Self::Race(text) | Self::Unpublished(text) | Self::Dead(text) => f.write_str(text),
            Self::Panic(text) | Self::Leak(text) | Self::NotDeterministic(text) | Self::Misuse(text) => {
                write!(f, "{kind}: {text}")
            }
            Self::Deadlock(stuck) => write!(f, "{kind}: nobody can go on: {stuck}"),
            Self::LostWakeUp(stuck) => {
                write!(f, "{kind}: nobody can go on, and a wake-up is missing: {stuck}")
            }
            Self::Livelock(stuck) => {
                write!(f, "{kind}: the limit of steps is reached and nothing ends: {stuck}")
            }
        }
    }
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}
