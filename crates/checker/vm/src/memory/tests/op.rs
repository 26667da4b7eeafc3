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
    /// Loads the word whose [`ADDRESS`] that operation has read. If it has read none, the thread
    /// ends.
    LoadAt(usize, Ordering),
    /// Stores to that word.
    StoreAt(usize, u64, Ordering),
    /// Loads the word until it has this value, and yields in between.
    Await(usize, u64, Ordering),
    Yield,
}

pub(super) type Program = Vec<Vec<Op>>;

/// What the operations of each thread returned, and the last value of each word in modification
/// order. A load and a read-modify-write return the value read; a failed exchange returns it with
/// [`FAILED`], and a wait that never ends returns the newest value with [`BLOCKED`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Outcome {
    pub(super) reads: Vec<Vec<u64>>,
    pub(super) last: Vec<u64>,
}

pub(super) const FAILED: u64 = 1 << 40;
pub(super) const BLOCKED: u64 = 1 << 41;
/// The address of the first word; those of the others follow.
pub(super) const ADDRESS: u64 = 1 << 20;

/// The word of which this is the address.
pub(super) fn pointee(value: u64) -> Option<usize> {
    (ADDRESS..FAILED).contains(&value).then(|| (value - ADDRESS) as usize)
}

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
            Self::LoadAt(read, order) => write!(f, "r*r{read} {order:?}"),
            Self::StoreAt(read, value, order) => write!(f, "w*r{read}={value} {order:?}"),
            Self::Await(x, value, order) => write!(f, "await{x}=={value} {order:?}"),
            Self::Yield => write!(f, "yield"),
        }
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for reads in &self.reads {
            let show = |&read: &u64| match read & (FAILED | BLOCKED) {
                0 => read.to_string(),
                FAILED => format!("{} (fails)", read & !FAILED),
                _ => format!("{} (for ever)", read & !BLOCKED),
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
            | Self::Await(x, ..)
            | Self::Cas { x, .. } => Some(x),
            Self::Fence(_) | Self::If(..) | Self::LoadAt(..) | Self::StoreAt(..) | Self::Yield => None,
        }
    }

    /// Whether it returns something.
    pub(super) fn returns(&self) -> bool {
        match self {
            Self::Load(..)
            | Self::Swap(..)
            | Self::Add(..)
            | Self::Cas { .. }
            | Self::LoadAt(..)
            | Self::Await(..) => true,
            Self::Store(..)
            | Self::Copy(..)
            | Self::StoreAt(..)
            | Self::Fence(_)
            | Self::If(..)
            | Self::Yield => false,
        }
    }
}

/// How many words a program has: those it names, and those whose address it stores.
pub(super) fn words(program: &Program) -> usize {
    let named = program.iter().flatten().flat_map(|op| match *op {
        Op::Store(x, value, _) | Op::Swap(x, value, _) => [Some(x), pointee(value)],
        Op::StoreAt(_, value, _) => [None, pointee(value)],
        op => [op.loc(), None],
    });
    named.flatten().max().map_or(0, |x| x + 1)
}
