//! Why a set of operations was not performed.

use core::fmt;

/// Why a call failed. Whatever the reason, no value has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Error {
    /// The set cannot proceed now and does not wait. Either the operation that stops it is one
    /// [without waiting](crate::Op::no_wait), or the call only tries. A waiting set fails so, too,
    /// when it stops at an operation without waiting.
    WouldBlock,
    /// The deadline passed first.
    TimedOut,
    /// A signal handler ran while the set slept in an interruptible call.
    Interrupted,
    /// An operation would make the value of semaphore `index` greater than `limit`, the limit of
    /// the array. Or its amount is greater than `limit`, so that it can never proceed.
    ValueOutOfRange {
        /// The semaphore.
        index: usize,
        /// The greatest value it can have.
        limit: u32,
    },
    /// There is no semaphore `index`: the array has `len`, from 0 on.
    IndexOutOfRange {
        /// The index of the operation; 4,294,967,295 if it was even greater.
        index: usize,
        /// How many semaphores there are.
        len: usize,
    },
    /// The set has `len` operations, and the array takes sets of at most `most`.
    /// [`Builder::max_ops`](crate::Builder::max_ops) allows longer sets.
    SetTooLong {
        /// How many operations the set has.
        len: usize,
        /// How many operations a set may have.
        most: usize,
    },
    /// The call has `values` values for `len` semaphores.
    WrongNumber {
        /// How many values the call has.
        values: usize,
        /// How many semaphores there are.
        len: usize,
    },
    /// A value cannot be as great as `limit`.
    LimitOutOfRange {
        /// The limit that the builder asked for.
        limit: u32,
        /// The greatest limit there is.
        greatest: u32,
    },
    /// The array was closed.
    Closed,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::WouldBlock => write!(f, "the set cannot proceed without waiting"),
            Self::TimedOut => write!(f, "the deadline passed before the set could proceed"),
            Self::Interrupted => write!(f, "a signal handler ran while the set waited"),
            Self::ValueOutOfRange { index, limit } => {
                write!(
                    f,
                    "semaphore {index} cannot go beyond {limit}; a builder makes arrays with another limit"
                )
            }
            Self::IndexOutOfRange { index, len } => {
                write!(f, "no semaphore {index}: the array has {len}, from 0 on")
            }
            Self::SetTooLong { len, most } => {
                write!(
                    f,
                    "{len} operations in a set: the array takes at most {most}; a builder makes arrays that take more"
                )
            }
            Self::WrongNumber { values, len } => {
                write!(f, "{values} values for {len} semaphores: each needs one")
            }
            Self::LimitOutOfRange { limit, greatest } => {
                write!(f, "a limit of {limit}: values can be {greatest} at most")
            }
            Self::Closed => write!(f, "the array was closed"),
        }
    }
}

impl core::error::Error for Error {}
