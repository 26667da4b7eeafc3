//! The word of a barging mutex: three values.

use core::fmt;

/// A value of the word.
///
/// | value | name | meaning |
/// |---|---|---|
/// | 0 | `UNLOCKED` | free; no thread is owed a wake-up |
/// | 1 | `LOCKED` | held; a release owes no thread a wake-up |
/// | 2 | `CONTENDED` | held; a release wakes one sleeper |
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BargingState(pub u32);

impl BargingState {
    /// Free.
    pub const UNLOCKED: Self = Self(0);
    /// Held, and no thread is owed a wake-up. Never while a waiter sleeps, unless a wake-up or a
    /// waiter that is awake is about to end that (invariant 3).
    pub const LOCKED: Self = Self(1);
    /// Held, and a release wakes one sleeper. May stand although no thread sleeps, for one wake-up
    /// in vain.
    pub const CONTENDED: Self = Self(2);
}

impl fmt::Debug for BargingState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::UNLOCKED => f.write_str("UNLOCKED"),
            Self::LOCKED => f.write_str("LOCKED"),
            Self::CONTENDED => f.write_str("CONTENDED"),
            // Only a foreign hand on shared memory writes anything else.
            Self(other) => write!(f, "invalid({other:#x})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_names_the_state() {
        let text = |state| format!("{state:?}");
        let named = [BargingState::UNLOCKED, BargingState::LOCKED, BargingState::CONTENDED].map(text);
        assert_eq!(named, ["UNLOCKED", "LOCKED", "CONTENDED"]);
        assert_eq!(text(BargingState(0x10)), "invalid(0x10)");
    }
}
