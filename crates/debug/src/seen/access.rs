//! In what way a lock is held, or asked for.

use core::fmt;
use serde::Serialize;

/// In what way a lock is held, or asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub enum Access {
    /// As the holder of a mutex.
    Exclusive,
    /// As a writer.
    Write,
    /// To become the writer, as the upgradable reader. It waits for readers only.
    Upgrade,
    /// To read, and perhaps to become the writer. It excludes writers and others like it.
    Upgradable,
    /// To read, in the class of this rank. A lock without classes has the rank 0.
    Read(u8),
    /// To read, also past a writer that waits for readers.
    Recursive,
    /// To take permits of a semaphore. They have no holder.
    Permits,
    /// To do what others wait for, as the owner of a promise, or to wait for that.
    Promise,
}

/// How many classes of readers are told apart.
const RANKS: u8 = 4;

impl Access {
    /// Whether a thread with this access may keep one waiting that asks for the other.
    ///
    /// A reader keeps a reader waiting if a writer comes between: the second waits for the writer,
    /// and the writer for the first. A writer that waits for readers of a lower class has not shut
    /// out the second one yet. A writer that waits for an upgradable reader has shut out none.
    pub(crate) const fn blocks(self, asked: Self) -> bool {
        match (self, asked) {
            (Self::Read(held), Self::Read(asked)) => held >= asked,
            (held, Self::Upgrade) => held.is_shared(),
            (Self::Upgradable, Self::Read(_)) | (Self::Permits, _) | (_, Self::Permits) => false,
            (Self::Read(_) | Self::Upgradable | Self::Recursive, Self::Recursive) => false,
            _ => true,
        }
    }

    pub(crate) const fn is_shared(self) -> bool {
        matches!(self, Self::Read(_) | Self::Recursive)
    }

    /// Whether readers keep it waiting only if a writer comes between.
    pub(crate) const fn joins_readers(self) -> bool {
        self.is_shared() || matches!(self, Self::Upgradable)
    }

    /// Whether it excludes all others.
    #[inline]
    pub(crate) const fn is_alone(self) -> bool {
        matches!(self, Self::Exclusive | Self::Write)
    }

    /// Whether no two threads have a lock in such ways at once.
    pub(crate) const fn is_gate(self) -> bool {
        self.is_alone() || matches!(self, Self::Upgradable)
    }

    /// Whether it shuts out readers while it waits for others.
    pub(crate) const fn shuts_out(self) -> bool {
        matches!(self, Self::Write | Self::Upgrade)
    }

    /// A number below 11: seven times it is the rotation of a hash.
    #[inline]
    pub(crate) const fn code(self) -> u32 {
        match self {
            Self::Exclusive => 0,
            Self::Write => 1,
            Self::Upgradable => 2,
            Self::Recursive => 3,
            Self::Permits => 4,
            Self::Upgrade => 5,
            Self::Read(rank) => 6 + (rank % RANKS) as u32,
            Self::Promise => 6 + RANKS as u32,
        }
    }

    pub(crate) const fn from_code(code: u32) -> Self {
        match code {
            0 => Self::Exclusive,
            1 => Self::Write,
            2 => Self::Upgradable,
            3 => Self::Recursive,
            4 => Self::Permits,
            5 => Self::Upgrade,
            10 => Self::Promise,
            _ => Self::Read((code - 6) as u8 % RANKS),
        }
    }
}

/// Nothing for a mutex; otherwise words that follow the name of a lock.
impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exclusive => Ok(()),
            Self::Write => f.write_str(" to write"),
            Self::Upgrade => f.write_str(" to write, as the upgradable reader"),
            Self::Upgradable => f.write_str(" to read and perhaps write"),
            Self::Read(0) => f.write_str(" to read"),
            Self::Read(rank) => write!(f, " to read in class {rank}"),
            Self::Recursive => f.write_str(" to read recursively"),
            Self::Permits => f.write_str(" for permits"),
            Self::Promise => f.write_str(" as a promise"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_stands_for_one_access() {
        use Access::*;
        for access in
            [Exclusive, Write, Upgrade, Upgradable, Recursive, Permits, Promise, Read(0), Read(1), Read(3)]
        {
            assert_eq!(Access::from_code(access.code()), access);
        }
    }

    #[test]
    fn readers_keep_readers_of_their_class_and_below_waiting() {
        use Access::*;
        assert!(Read(0).blocks(Read(0)) && Read(2).blocks(Read(1)) && Recursive.blocks(Read(0)));
        assert!(!Read(0).blocks(Read(1)) && !Read(0).blocks(Recursive) && !Recursive.blocks(Recursive));
        assert!(!Upgradable.blocks(Read(0)) && Read(0).blocks(Upgradable) && Upgradable.blocks(Upgradable));
        assert!(Write.blocks(Recursive) && Recursive.blocks(Write) && Exclusive.blocks(Exclusive));
        assert!(Read(2).blocks(Upgrade) && Recursive.blocks(Upgrade) && !Upgradable.blocks(Upgrade));
        assert!(!Permits.blocks(Exclusive) && !Exclusive.blocks(Permits));
    }
}
