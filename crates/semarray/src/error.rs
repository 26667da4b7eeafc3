//! Why a set of operations was not performed.

use core::fmt;

/// Why a set of operations was not performed. Whatever the reason: nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Error {
    /// The set cannot proceed now, and was not to wait: the operation that stopped it is one
    /// without waiting, or the whole set was tried only. A set that sleeps ends so too, when the
    /// operation at which it stops is one without waiting.
    WouldBlock,
    /// The deadline passed first.
    TimedOut,
    /// A signal handler ran while the set slept, and the caller wanted to know.
    Interrupted,
    /// An operation would have made the value of semaphore `index` greater than the array's limit,
    /// `limit`; or it is an operation on more than `limit`, which can never proceed.
    ValueOutOfRange {
        /// The semaphore.
        index: usize,
        /// The greatest value it can have.
        limit: u32,
    },
    /// There is no semaphore `index`: the array has `len`, from 0 on.
    IndexOutOfRange {
        /// The index that was asked for; 4,294,967,295 if that was even greater.
        index: usize,
        /// How many semaphores there are.
        len: usize,
    },
    /// The set has `len` operations, and the array takes sets of at most `most`;
    /// [`Builder::max_ops`](crate::Builder::max_ops) makes arrays that take longer ones.
    SetTooLong {
        /// How many operations the set has.
        len: usize,
        /// How many it may have.
        most: usize,
    },
    /// There are `len` semaphores, and `values` values for them.
    WrongNumber {
        /// How many values there were.
        values: usize,
        /// How many semaphores there are.
        len: usize,
    },
    /// Values cannot be as great as `limit`.
    LimitOutOfRange {
        /// The limit that was asked for.
        limit: u32,
        /// The greatest there is.
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
                write!(f, "{values} values for {len} semaphores: there is to be one for each")
            }
            Self::LimitOutOfRange { limit, greatest } => {
                write!(f, "a limit of {limit}: values can be {greatest} at most")
            }
            Self::Closed => write!(f, "the array was closed"),
        }
    }
}

impl core::error::Error for Error {}
