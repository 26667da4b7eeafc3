//! Why a queue takes or gives no message.

use crate::robust::mutex::Refused;
use core::fmt;

/// Why a [`Queue`](super::Queue) did not take a message, which it gives back. Its text says what to
/// do.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PushError<T> {
    /// No place was free, or none became free in time.
    Full(T),
    /// A thread has closed the queue.
    Closed(T),
    /// The mutex of the queue was refused: its memory was overwritten.
    Refused(T, Refused),
}

impl<T> PushError<T> {
    /// The message.
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(message) | Self::Closed(message) | Self::Refused(message, _) => message,
        }
    }

    /// The same error with another message.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> PushError<U> {
        match self {
            Self::Full(message) => PushError::Full(f(message)),
            Self::Closed(message) => PushError::Closed(f(message)),
            Self::Refused(message, refused) => PushError::Refused(f(message), refused),
        }
    }
}

impl<T> fmt::Display for PushError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(_) => f.write_str(
                "the queue is full: try again, wait with `push`, or give the queue a greater capacity",
            ),
            Self::Closed(_) => f.write_str(
                "a thread has closed the queue: stop pushing; `reopen` lets it take messages again",
            ),
            Self::Refused(_, refused) => write!(f, "the mutex of the queue: {refused}"),
        }
    }
}

/// Without the message, which need not have it.
impl<T> fmt::Debug for PushError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(_) => f.write_str("Full(..)"),
            Self::Closed(_) => f.write_str("Closed(..)"),
            Self::Refused(_, refused) => write!(f, "Refused(.., {refused:?})"),
        }
    }
}

impl<T> core::error::Error for PushError<T> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Refused(_, refused) => Some(refused),
            Self::Full(_) | Self::Closed(_) => None,
        }
    }
}

/// Why a [`Queue`](super::Queue) gave no message. Its text says what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PopError {
    /// No message was there, or none came in time.
    Empty,
    /// A thread has closed the queue, and all of its messages were taken.
    Closed,
    /// The mutex of the queue was refused: its memory was overwritten.
    Refused(Refused),
}

impl fmt::Display for PopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the queue is empty: try again, or wait with `pop`"),
            Self::Closed => {
                f.write_str("a thread has closed the queue, and no message is left in it: stop popping")
            }
            Self::Refused(refused) => write!(f, "the mutex of the queue: {refused}"),
        }
    }
}

impl core::error::Error for PopError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Refused(refused) => Some(refused),
            Self::Empty | Self::Closed => None,
        }
    }
}
