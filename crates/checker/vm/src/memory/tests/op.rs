//! What little programs are made of, and what comes of them. Also for the test beside loom.

use core::fmt;
use core::sync::atomic::Ordering;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Op {
    Load(usize, Ordering),
    Store(usize, u64, Ordering),
    Swap(usize, u64, Ordering),
    Add(usize, u64, Ordering),
    Cas {
        x: usize,
        expected: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
        weak: bool,
    },
    Fence(Ordering),
    /// Stores what an operation of the thread before has returned: the one of this number, of those
    /// that return something.
    Copy(usize, usize, Ordering),
    /// The thread goes on if that operation has read this value, and ends otherwise.
    If(usize, u64),
}

pub(super) type Program = Vec<Vec<Op>>;

/// What the operations of each thread returned, and the last value of each word in modification
/// order. A load and a read-modify-write return the value read; a failed exchange returns it with
/// [`FAILED`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Outcome {
    pub(super) reads: Vec<Vec<u64>>,
    pub(super) last: Vec<u64>,
}

pub(super) const FAILED: u64 = 1 << 40;

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Load(x, order) => write!(f, "r{x} {order:?}"),
            Self::Store(x, value, order) => write!(f, "w{x}={value} {order:?}"),
            Self::Swap(x, value, order) => write!(f, "swap{x}={value} {order:?}"),
            Self::Add(x, value, order) => write!(f, "add{x}+{value} {order:?}"),
            Self::Cas { x, expected, new, success, failure, weak } => {
                let weak = if weak { "weak " } else { "" };
                write!(f, "{weak}cas{x} {expected}->{new} {success:?}/{failure:?}")
            }
            Self::Fence(order) => write!(f, "fence {order:?}"),
            Self::Copy(x, read, order) => write!(f, "w{x}=r{read} {order:?}"),
            Self::If(read, value) => write!(f, "if r{read}=={value}"),
        }
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for reads in &self.reads {
            let show = |&read: &u64| match read & FAILED {
                0 => read.to_string(),
                _ => format!("{} (fails)", read & !FAILED),
            };
            write!(f, "[{}] ", reads.iter().map(show).collect::<Vec<_>>().join(", "))?;
        }
        write!(f, "last {:?}", self.last)
    }
}

impl Op {
    pub(super) fn loc(&self) -> Option<usize> {
        match *self {
            Self::Load(x, _)
            | Self::Store(x, ..)
            | Self::Swap(x, ..)
            | Self::Add(x, ..)
            | Self::Copy(x, ..)
            | Self::Cas { x, .. } => Some(x),
            Self::Fence(_) | Self::If(..) => None,
        }
    }
}

pub(super) fn words(program: &Program) -> usize {
    program.iter().flatten().filter_map(Op::loc).max().map_or(0, |x| x + 1)
}
