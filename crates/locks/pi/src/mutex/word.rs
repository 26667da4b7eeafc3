//! The word of a priority-inheriting mutex, whose form the kernel prescribes.

use core::fmt;
use ulocks_core::futex::{OWNER_DIED, TID_MASK, WAITERS};

/// A value of the word.
///
/// | bits | name | set by | cleared by |
/// |---|---|---|---|
/// | 0 to 29 | the owner's thread id, 0 if free | the owner, or the kernel on its behalf | the owner, or the kernel on its behalf |
/// | 30 | `OWNER_DIED`: the owner before this one ended without unlocking | the kernel, at the hand-over | the kernel, at the release by call |
/// | 31 | `WAITERS`: the kernel keeps a queue; the release is a call | the kernel, when a waiter enqueues, and at a hand-over | the kernel, at a release that finds no waiter |
///
/// `WAITERS` may be stale: the waiters may have timed out. That costs the owner one system call. It
/// is never missing while there is a waiter.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct State(pub u32);

impl State {
    /// Free; no thread waits.
    pub const UNLOCKED: Self = Self(0);

    /// The id of the thread that owns the mutex; 0 if none does.
    #[must_use]
    pub const fn owner(self) -> u32 {
        self.0 & TID_MASK
    }

    /// Whether the kernel may have waiters.
    #[must_use]
    pub const fn has_waiters(self) -> bool {
        self.0 & WAITERS != 0
    }

    /// Whether the owner before this one ended without unlocking.
    #[must_use]
    pub const fn owner_died(self) -> bool {
        self.0 & OWNER_DIED != 0
    }

    /// Whether the word is user space's to change: the kernel has marked nothing.
    #[must_use]
    pub const fn is_unmarked(self) -> bool {
        self.0 & !TID_MASK == 0
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.owner() {
            0 => f.write_str("UNLOCKED")?,
            owner => write!(f, "owner={owner}")?,
        }
        if self.has_waiters() {
            f.write_str(" WAITERS")?;
        }
        if self.owner_died() {
            f.write_str(" OWNER_DIED")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_it_is() {
        let shown = |word| format!("{:?}", State(word));
        assert_eq!(shown(0), "UNLOCKED");
        assert_eq!(shown(7), "owner=7");
        assert_eq!(shown(7 | WAITERS), "owner=7 WAITERS");
        assert_eq!(shown(7 | WAITERS | OWNER_DIED), "owner=7 WAITERS OWNER_DIED");
        assert!(
            State(7).is_unmarked() && !State(7 | WAITERS).is_unmarked() && !State(OWNER_DIED).is_unmarked()
        );
    }
}
