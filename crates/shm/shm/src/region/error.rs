//! Why there is no region.

use super::header::{self, MOST_PARTICIPANTS};
use std::fmt;
use std::io;

/// Why a region cannot be created or opened. Its text says what to do.
///
/// Each of them leaves a file that was there as it was, but for an unfinished one, whose creator
/// has died.
#[derive(Debug)]
#[non_exhaustive]
pub enum RegionError {
    /// The system refused a step.
    Io {
        /// The step.
        step: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// There is no such file.
    NotFound,
    /// The folder that a new file was to be in does not exist.
    NoFolder,
    /// [`create`](super::Options::create) found a file of that name.
    AlreadyExists,
    /// It is a directory, a device, a pipe or a socket.
    NotRegular,
    /// The file or the descriptor does not permit writing.
    ReadOnly,
    /// The disk, the quota or the limit on the size of files leaves no room for the region.
    NoSpace {
        /// How many bytes the region takes.
        needed: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The file is shorter than the region, or than a header.
    Truncated {
        /// How many bytes the file should have, at least.
        expected: u64,
        /// How many it has.
        found: u64,
    },
    /// The file is longer than the region that its header describes.
    WrongSize {
        /// How many bytes the file should have.
        expected: u64,
        /// How many it has.
        found: u64,
    },
    /// The file is of another format, or of a machine with another order of bytes.
    WrongMagic {
        /// The first eight bytes.
        found: u64,
    },
    /// The region is of another version of this crate.
    WrongVersion {
        /// The version of the format that this program knows.
        expected: u64,
        /// The version of the file.
        found: u64,
    },
    /// The region has a root of another type, or is of a machine of another kind.
    WrongLayout {
        /// The hash of the root's layout in this program.
        expected: u64,
        /// That of the file.
        found: u64,
    },
    /// The file is empty, or its creator has not finished.
    HalfInitialised,
    /// The file system gives files of whole huge pages only (hugetlbfs).
    HugePages,
    /// The header contradicts itself.
    Corrupt {
        /// The part that is wrong.
        what: &'static str,
    },
    /// A region without participants was asked for.
    NoParticipants,
    /// There is no room for so many participants.
    TooManyParticipants {
        /// How many were asked for.
        asked: u32,
    },
    /// A lock of the root has fewer slots than the region has participants.
    TooFewSlots {
        /// How many participants the region has, or was to have.
        participants: u32,
        /// How many the lock has room for: its `SLOTS`.
        slots: usize,
    },
    /// Another process creates or resets the region, for longer than this one waits.
    Busy,
    /// Processes are attached to a region that is to be repaired.
    InUse,
}

impl RegionError {
    /// The error of a system call that was made for `step`.
    pub(super) fn of(step: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.raw_os_error() {
            Some(libc::ENOENT) => Self::NotFound,
            Some(libc::EEXIST) => Self::AlreadyExists,
            Some(libc::EISDIR | libc::ENXIO) => Self::NotRegular,
            Some(libc::EACCES | libc::EROFS) => Self::ReadOnly,
            _ => Self::Io { step, source },
        }
    }
}

impl fmt::Display for RegionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { step, source } => write!(f, "cannot {step}: {source}"),
            Self::NotFound => f.write_str("there is no such file: create the region first"),
            Self::NoFolder => {
                f.write_str("the folder of the file does not exist: make it, or check the path")
            }
            Self::AlreadyExists => f.write_str(
                "a file of that name exists: open it, or choose another name; remove it only if it is a region \
                 that no process uses any more",
            ),
            Self::NotRegular => {
                f.write_str("it is not a regular file: give the path of a file, for example in /dev/shm")
            }
            Self::ReadOnly => f.write_str(
                "it may not be written, and each user of its locks writes: grant this process write \
                 permission, or pass on a descriptor that is open for reading and writing",
            ),
            Self::NoSpace { needed, source } => {
                write!(f, "there is no room for {needed} bytes: {source}; free some, or raise the limit")
            }
            Self::Truncated { expected, found } if *expected == header::BYTES as u64 => write!(
                f,
                "the file has {found} bytes, at least {expected} are needed: it is no region; check the path"
            ),
            Self::Truncated { expected, found } => write!(
                f,
                "the file has {found} bytes, its region has {expected}: it was cut off; if no process uses \
                 it, remove it and create the region again"
            ),
            Self::WrongSize { expected, found } => write!(
                f,
                "the file has {found} bytes, its region has {expected}: something was appended; restore \
                 it, or remove it and create the region again"
            ),
            Self::WrongMagic { found } => write!(
                f,
                "it begins with {found:#018x} and not as a region does: check the path; a region of a \
                 machine with another order of bytes cannot be used here"
            ),
            Self::WrongVersion { expected, found } => write!(
                f,
                "the region has format {found}, this program knows format {expected}: build all programs \
                 that share it with the same version of ulocks-shm, and create it again"
            ),
            Self::WrongLayout { expected, found } => write!(
                f,
                "the layout of the root is {found:#018x} in the file and {expected:#018x} in this program: \
                 build all programs that share it from the same types for the same kind of machine; after a \
                 change of the types, create it again"
            ),
            Self::HalfInitialised => f.write_str(
                "the file is empty, or the creator of its region died before it was done: `create_or_open` \
                 makes the region",
            ),
            Self::HugePages => f.write_str(
                "the file system gives files of whole huge pages only, and a region has another size: use \
                 another one, for example /dev/shm",
            ),
            Self::Corrupt { what } => write!(
                f,
                "the header is damaged: {what} is wrong; restore the file, or remove it and create the \
                 region again"
            ),
            Self::NoParticipants => {
                write!(f, "a region has no participants: give a number from 1 to {MOST_PARTICIPANTS}")
            }
            Self::TooManyParticipants { asked } => {
                write!(f, "{asked} participants are too many: give a number from 1 to {MOST_PARTICIPANTS}")
            }
            Self::TooFewSlots { participants, slots } => write!(
                f,
                "the region has {participants} participants, and a lock of its root has room for {slots}: give \
                 the lock more `SLOTS`, as in `RwLock<T, {participants}>`, or create the region with fewer \
                 `participants`"
            ),
            Self::InUse => f.write_str(
                "processes are attached to it, and only a region that nobody uses can be repaired: end them, \
                 or let them detach; a program that ends leaves its robust locks to the others",
            ),
            Self::Busy => f.write_str(
                "another process is creating or resetting the region: try again, or wait for longer; if it \
                 is stopped, continue it or end it",
            ),
        }
    }
}

impl std::error::Error for RegionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } | Self::NoSpace { source, .. } => Some(source),
            _ => None,
        }
    }
}
