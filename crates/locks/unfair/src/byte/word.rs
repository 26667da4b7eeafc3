//! The byte of a [`ByteMutex`](crate::ByteMutex): two bits of the lock's, six of the user's.

use core::fmt;

/// A value of a byte in which the bits `LOCKED` and `PARKED` are a lock's.
///
/// | `LOCKED` | `PARKED` | meaning |
/// |---|---|---|
/// | 0 | 0 | free; no thread is owed a wake-up |
/// | 1 | 0 | held; a release owes no thread a wake-up |
/// | 1 | 1 | held; a release wakes one waiter |
/// | 0 | 1 | never |
///
/// `LOCKED` is exact. `PARKED` may be set although no waiter is in the queue, and is never clear
/// while one is there, unless a release on its way to the lot or a debtor will see to it. What the
/// other bits mean is the user's affair.
#[derive(Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub struct ByteState<const LOCKED: u8 = 0b01, const PARKED: u8 = 0b10>(pub u8);

impl<const LOCKED: u8, const PARKED: u8> ByteState<LOCKED, PARKED> {
    /// The lock's bits.
    pub const LOCK_BITS: u8 = {
        assert!(
            LOCKED.count_ones() == 1 && PARKED.count_ones() == 1 && LOCKED != PARKED,
            "LOCKED and PARKED have to be two different bits of a byte, as in <.., 0b01, 0b10>"
        );
        LOCKED | PARKED
    };
    /// The user's bits.
    pub const USER_BITS: u8 = !Self::LOCK_BITS;

    /// Whether a thread holds the lock.
    #[inline(always)]
    pub const fn is_locked(self) -> bool {
        self.0 & LOCKED != 0
    }

    /// Whether a thread holds the lock and owes a wake-up to another.
    #[inline(always)]
    pub const fn is_contended(self) -> bool {
        self.0 & Self::LOCK_BITS == Self::LOCK_BITS
    }

    /// What the user keeps in the byte.
    #[inline(always)]
    pub const fn user_bits(self) -> u8 {
        self.0 & Self::USER_BITS
    }

    /// The same with the bits `lock_bits` of the lock set as well.
    #[inline(always)]
    pub(super) const fn with(self, lock_bits: u8) -> Self {
        Self(self.0 | lock_bits)
    }
}

impl<const LOCKED: u8, const PARKED: u8> fmt::Debug for ByteState<LOCKED, PARKED> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.is_locked(), self.0 & PARKED != 0) {
            (false, false) => "UNLOCKED",
            (true, false) => "LOCKED",
            (true, true) => "LOCKED|PARKED",
            (false, true) => "invalid(PARKED)", // only a foreign hand on the lock's bits
        })?;
        match self.user_bits() {
            0 => Ok(()),
            bits => write!(f, " bits={bits:#010b}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type State = ByteState<0b0000_1000, 0b0100_0000>;

    const fn of(byte: u8) -> State {
        ByteState(byte)
    }

    #[test]
    fn two_bits_are_the_locks_and_six_the_users() {
        assert_eq!((State::LOCK_BITS, State::USER_BITS), (0b0100_1000, 0b1011_0111));
        assert_eq!(of(0xff).user_bits(), State::USER_BITS);
        assert_eq!(of(State::LOCK_BITS).user_bits(), 0);
        for users in [0, State::USER_BITS] {
            let free = of(users);
            let (held, contended) = (free.with(0b1000), free.with(State::LOCK_BITS));
            assert_eq!([free, held, contended].map(State::is_locked), [false, true, true]);
            assert_eq!([free, held, contended].map(State::is_contended), [false, false, true]);
            assert_eq!([free, held, contended].map(State::user_bits), [users; 3]);
            assert_eq!(held.with(0b0100_0000), contended);
        }
    }

    #[test]
    fn debug_names_the_bits() {
        let text = |byte| format!("{:?}", of(byte));
        assert_eq!([0, 0b1000, 0b0100_1000].map(text), ["UNLOCKED", "LOCKED", "LOCKED|PARKED"]);
        assert_eq!(text(0b0100_0000), "invalid(PARKED)");
        assert_eq!(text(0b1000_1001), "LOCKED bits=0b10000001");
    }
}
