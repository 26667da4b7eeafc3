//! Bugs that tests put into the memory, to show that they would find them. Outside of tests there
//! are none.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bug {
    /// A read-modify-write does not continue a release sequence.
    ReleaseSequence,
    /// Two read-modify-writes may read one message.
    TakenTwice,
    /// A store may go between a read-modify-write and what it has read.
    StoreBetween,
    /// A thread may read an older message than it has read.
    ForgottenReads,
    /// SC fences are ordered by execution: the one view of all fences.
    FencesInOrder,
    /// SC fences are ordered by happens-before, not by `eco`.
    FencesWithoutEco,
    /// Reading, or writing, behind what an SC fence has seen does not come before it.
    NoWayBack,
    /// All of happens-before is part of `psc`, as in C++11.
    AllOfHappensBefore,
    /// `hb|loc` is no part of `psc`.
    NotOnOneWord,
    /// SC events are dropped that not all threads know.
    EarlySweep,
}

/// At most one bug.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seed(#[cfg(test)] pub(super) Option<Bug>);

impl Seed {
    #[cfg(test)]
    pub(super) fn has(self, bug: Bug) -> bool {
        self.0 == Some(bug)
    }

    #[cfg(not(test))]
    pub(super) fn has(self, _: Bug) -> bool {
        false
    }
}
