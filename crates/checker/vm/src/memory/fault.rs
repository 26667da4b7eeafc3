//! What a program did that it must not: reported as a sentence that names both sides.

use crate::engine::At;
use core::fmt;

/// One side of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) thread: usize,
    pub(crate) what: What,
    pub(crate) at: At,
}

/// What an access was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    PlainRead,
    PlainWrite,
    Atomic,
    Create,
    Retire,
    Free,
}

/// Undefined behaviour, found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Two accesses conflict, and neither happens before the other. `second` was executed later.
    Race { first: Access, second: Access },
    /// An access to an atomic whose creation does not happen before it.
    Unpublished { access: Access, created: Access },
    /// An access to an atomic that has ended. `ended` is unknown once its place was taken by
    /// another.
    Dead { access: Access, ended: Option<Access> },
    /// An access to memory that was given back, or memory that is given back again.
    Freed { access: Access, freed: Access },
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PlainRead => "reads the data",
            Self::PlainWrite => "writes the data",
            Self::Atomic => "accesses the atomic",
            Self::Create => "creates the atomic",
            Self::Retire => "drops the atomic",
            Self::Free => "gives the memory back, after its operation",
        })
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread {} {} at {}", self.thread, self.what, self.at)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Race { first, second } => {
                write!(f, "data race: {second}, and nothing orders this after: {first}")
            }
            Self::Unpublished { access, created } => {
                write!(f, "unpublished atomic: {access}, and nothing orders this after: {created}")
            }
            Self::Dead { access, ended: Some(ended) } => {
                write!(f, "use after the end: {access}, but {ended}")
            }
            Self::Freed { access, freed } if access.what == What::Free => {
                write!(f, "memory given back twice: {access}, and before: {freed}")
            }
            Self::Freed { access, freed } => write!(f, "use after the end: {access}, but {freed}"),
            Self::Dead { access, ended: None } => {
                write!(f, "use after the end: {access}, which was dropped long ago")
            }
        }
    }
}
