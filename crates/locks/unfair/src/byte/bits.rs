//! The user's bits of a byte that a lock lives in.

use super::word::ByteState;
use core::fmt;
use ulocks_core::sync::AtomicU8;
use ulocks_core::sync::Ordering::{self, Relaxed};

/// The bits of a [`RawByteMutex`](crate::RawByteMutex)'s byte that are not the lock's: an atomic of
/// six bits, by default those in `0b1111_1100`.
///
/// They may be read and changed at any time, with or without the lock, from any thread; the lock
/// neither changes nor interprets them. Every change is a read-modify-write of the byte, so it
/// costs what a change of the lock costs, and takes the cache line away from spinning waiters.
/// Values have their bits where they are in the byte.
///
/// What is published by a bit follows the order of that operation, as with any atomic: a holder of
/// the lock needs no more than `Relaxed` for bits that are changed by holders only.
///
/// # Panics
/// A method that is given a bit of the lock's panics, [`fetch_and`](Self::fetch_and) excepted,
/// which never clears them.
///
/// # Examples
/// ```
/// use std::sync::atomic::Ordering::Relaxed;
/// use ulocks_unfair::RawByteMutex;
///
/// const DIRTY: u8 = 0b0000_0100;
/// const COLOUR: u8 = 0b1100_0000;
///
/// let header: RawByteMutex = RawByteMutex::with_bits(0b0100_0000);
/// header.bits().fetch_or(DIRTY, Relaxed);
/// assert_eq!(header.bits().load(Relaxed), 0b0100_0100);
/// header.bits().fetch_and(!DIRTY, Relaxed);
/// assert_eq!(header.bits().swap(0b1000_0000, Relaxed), 0b0100_0000);
/// assert_eq!(header.bits().load(Relaxed) & COLOUR, 0b1000_0000);
/// ```
#[derive(Clone, Copy)]
pub struct UserBits<'a, const LOCKED: u8 = 0b01, const PARKED: u8 = 0b10>(&'a AtomicU8);

impl<'a, const LOCKED: u8, const PARKED: u8> UserBits<'a, LOCKED, PARKED> {
    /// Which bits they are.
    pub const MASK: u8 = ByteState::<LOCKED, PARKED>::USER_BITS;

    pub(super) const fn of(byte: &'a AtomicU8) -> Self {
        Self(byte)
    }

    /// The bits.
    #[inline]
    #[must_use]
    pub fn load(self, order: Ordering) -> u8 {
        self.0.load(order) & Self::MASK
    }

    /// Sets those that are set in `bits`; returns what they were.
    #[inline]
    #[track_caller]
    pub fn fetch_or(self, bits: u8, order: Ordering) -> u8 {
        self.0.fetch_or(Self::checked(bits), order) & Self::MASK
    }

    /// Clears those that are not set in `bits`; returns what they were.
    #[inline]
    pub fn fetch_and(self, bits: u8, order: Ordering) -> u8 {
        self.0.fetch_and(bits | !Self::MASK, order) & Self::MASK
    }

    /// Flips those that are set in `bits`; returns what they were.
    #[inline]
    #[track_caller]
    pub fn fetch_xor(self, bits: u8, order: Ordering) -> u8 {
        self.0.fetch_xor(Self::checked(bits), order) & Self::MASK
    }

    /// Replaces all of them by `bits`; returns what they were.
    #[inline]
    #[track_caller]
    pub fn swap(self, bits: u8, order: Ordering) -> u8 {
        let bits = Self::checked(bits);
        let mut seen = self.0.load(Relaxed);
        loop {
            match self.0.compare_exchange_weak(seen, seen & !Self::MASK | bits, order, Relaxed) {
                Ok(_) => return seen & Self::MASK,
                Err(now) => seen = now,
            }
        }
    }

    /// Replaces all of them by `new` if they are `current`; returns what they were, as an error if
    /// they were not. It does not fail because the lock's bits change.
    #[inline]
    #[track_caller]
    pub fn compare_exchange(
        self,
        current: u8,
        new: u8,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u8, u8> {
        let (current, new) = (Self::checked(current), Self::checked(new));
        let mut seen = self.0.load(failure);
        while seen & Self::MASK == current {
            match self.0.compare_exchange_weak(seen, seen & !Self::MASK | new, success, failure) {
                Ok(_) => return Ok(current),
                Err(now) => seen = now,
            }
        }
        Err(seen & Self::MASK)
    }

    #[inline(always)]
    #[track_caller]
    fn checked(bits: u8) -> u8 {
        assert!(
            bits & !Self::MASK == 0,
            "{bits:#010b} includes bits of the lock's: those in {:#010b} are the user's",
            Self::MASK
        );
        bits
    }
}

impl<const LOCKED: u8, const PARKED: u8> fmt::Debug for UserBits<'_, LOCKED, PARKED> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UserBits({:#010b})", self.load(Relaxed))
    }
}
