//! A semaphore: one word, with the value, flags, and the process that operated on it last.

use core::fmt;

/// The greatest value of a semaphore.
pub const MOST: i32 = 32_767;

/// The word of a semaphore, as it was read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Word(pub u64);

impl Word {
    /// The holder of the array lock changes the word, or reads several at one moment.
    pub const BUSY: u64 = 1 << 16;
    /// A sleeping set names the semaphore, or a process has an adjustment for it.
    pub const WATCHED: u64 = 1 << 17;
    /// The array is removed.
    pub const REMOVED: u64 = 1 << 18;
    const FLAGS: u64 = 0xffff << 16;

    /// The value.
    #[inline]
    pub fn value(self) -> i32 {
        (self.0 & 0xffff) as i32
    }

    /// The process.
    #[inline]
    pub fn process(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Whether a single operation may change it without the array lock.
    #[inline]
    pub fn is_plain(self) -> bool {
        self.0 & Self::FLAGS == 0
    }

    /// Whether all of these flags are set.
    #[inline]
    pub fn has(self, flags: u64) -> bool {
        self.0 & flags == flags
    }

    /// The same flags, another value and process.
    #[inline]
    #[must_use]
    pub fn with(self, value: i32, process: u32) -> Self {
        Self(self.0 & Self::FLAGS | u64::from(value as u16) | u64::from(process) << 32)
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {}", self.value(), self.process())?;
        for (flag, name) in [(Self::BUSY, "BUSY"), (Self::WATCHED, "WATCHED"), (Self::REMOVED, "REMOVED")] {
            if self.has(flag) {
                write!(f, " {name}")?;
            }
        }
        Ok(())
    }
}
