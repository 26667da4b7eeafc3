//! Why a directory gives no lock.

use super::entry::NAME_BYTES;
use crate::robust::mutex::Refused;
use core::fmt;

/// Why a `Directory` did not give what was asked for. Its text says what to do.
///
/// Each of them leaves the directory as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DirectoryError {
    /// The name is empty, longer than 64 bytes, or contains a zero byte.
    Name {
        /// How many bytes it has.
        bytes: usize,
    },
    /// No entry has the name.
    NotFound,
    /// The entry of the name has another type.
    WrongType {
        /// The type that was asked for.
        asked: String,
        /// The type of the entry, as the program that made it called it.
        found: String,
    },
    /// All entries are taken.
    Full {
        /// How many there are.
        entries: usize,
    },
    /// The arena has no room for the value.
    NoRoom {
        /// How many bytes the value takes.
        needed: u64,
        /// How many are left.
        left: u64,
    },
    /// A lock in the value has fewer slots than the region has participants.
    TooFewSlots {
        /// How many participants the region has.
        participants: usize,
        /// How many the lock has room for: its `SLOTS`.
        slots: usize,
    },
    /// The directory contradicts itself: memory was overwritten.
    Corrupt {
        /// The entry, if the damage is in one.
        entry: Option<usize>,
        /// The part that is wrong.
        what: &'static str,
    },
    /// The lock of the directory was refused: the caller holds it already, or it is corrupt.
    Lock(Refused),
}

impl fmt::Display for DirectoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name { bytes } => write!(
                f,
                "the name has {bytes} bytes: give one of 1 to {NAME_BYTES} bytes, without a zero byte"
            ),
            Self::NotFound => {
                f.write_str("the directory has no entry of that name: check the spelling, or create it")
            }
            Self::WrongType { asked, found } if asked == found => write!(
                f,
                "the entry is a {found} too, but of another layout: build all programs that share it from \
                 the same types and the same version of ulocks-shm, or give the new layout another name"
            ),
            Self::WrongType { asked, found } => write!(
                f,
                "the entry is a {found}, and a {asked} was asked for: ask for the type it was created with, \
                 or use another name"
            ),
            Self::Full { entries } => write!(
                f,
                "all {entries} entries of the directory are taken: make it larger, and create the region \
                 again"
            ),
            Self::NoRoom { needed, left } => write!(
                f,
                "the value takes {needed} bytes, and the directory has {left} left: make it larger, and \
                 create the region again"
            ),
            Self::TooFewSlots { participants, slots } => write!(
                f,
                "the region has {participants} participants, and a lock of the value has room for {slots}: \
                 give the lock more `SLOTS`, as in `RwLock<T, {participants}>`, or create the region with \
                 fewer `participants`"
            ),
            Self::Corrupt { entry: Some(entry), what } => write!(
                f,
                "entry {entry} of the directory is damaged: {what} is wrong; restore the file, or remove it \
                 and create the region again"
            ),
            Self::Corrupt { entry: None, what } => write!(
                f,
                "the directory is damaged: {what} is wrong; restore the file, or remove it and create the \
                 region again"
            ),
            Self::Lock(Refused::Deadlock) => f.write_str(
                "the caller is preparing a value of this directory, and uses the directory meanwhile: find \
                 the other value first",
            ),
            Self::Lock(refused) => write!(f, "the lock of the directory: {refused}"),
        }
    }
}

impl core::error::Error for DirectoryError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Lock(refused) => Some(refused),
            _ => None,
        }
    }
}
