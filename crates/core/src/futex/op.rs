//! `FUTEX_WAKE_OP`: change one word, wake the sleepers of another, and perhaps those of the first,
//! in one call.
//!
//! The kernel packs the change and the condition into 32 bits, with 12 signed bits for each
//! operand. A flag turns the operand of the change into a shift count; [`Change`] uses it for
//! single bits, so that flags high in the word work.

use super::{Futex, FutexKey, Scope, WakeOpError};
use crate::world::kernel;

/// What to do to the word. The operand is in -2048..=2047, or a single bit (`1 << n`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// `word = operand`
    Set(i32),
    /// `word = word.wrapping_add(operand)`
    Add(i32),
    /// `word |= operand`
    Or(i32),
    /// `word &= !operand`
    AndNot(i32),
    /// `word ^= operand`
    Xor(i32),
}

/// What the word's value before the change is compared with: as a signed number, to one in
/// -2048..=2047.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// `old == comparand`
    Equal(i32),
    /// `old != comparand`
    NotEqual(i32),
    /// `old < comparand`
    Less(i32),
    /// `old <= comparand`
    LessOrEqual(i32),
    /// `old > comparand`
    Greater(i32),
    /// `old >= comparand`
    GreaterOrEqual(i32),
}

impl Change {
    fn encode(self) -> Result<u32, WakeOpError> {
        let (operation, operand) = match self {
            Self::Set(operand) => (libc::FUTEX_OP_SET, operand),
            Self::Add(operand) => (libc::FUTEX_OP_ADD, operand),
            Self::Or(operand) => (libc::FUTEX_OP_OR, operand),
            Self::AndNot(operand) => (libc::FUTEX_OP_ANDN, operand),
            Self::Xor(operand) => (libc::FUTEX_OP_XOR, operand),
        };
        let (operation, operand) = match twelve_bits(operand) {
            Some(bits) => (operation, bits),
            None if operand.cast_unsigned().is_power_of_two() => {
                (operation | libc::FUTEX_OP_OPARG_SHIFT, operand.trailing_zeros())
            }
            None => return Err(WakeOpError::Operand(operand)),
        };
        Ok(operation.cast_unsigned() << 28 | operand << 12)
    }
}

impl Condition {
    fn encode(self) -> Result<u32, WakeOpError> {
        let (comparison, comparand) = match self {
            Self::Equal(comparand) => (libc::FUTEX_OP_CMP_EQ, comparand),
            Self::NotEqual(comparand) => (libc::FUTEX_OP_CMP_NE, comparand),
            Self::Less(comparand) => (libc::FUTEX_OP_CMP_LT, comparand),
            Self::LessOrEqual(comparand) => (libc::FUTEX_OP_CMP_LE, comparand),
            Self::Greater(comparand) => (libc::FUTEX_OP_CMP_GT, comparand),
            Self::GreaterOrEqual(comparand) => (libc::FUTEX_OP_CMP_GE, comparand),
        };
        let bits = twelve_bits(comparand).ok_or(WakeOpError::Comparand(comparand))?;
        Ok(comparison.cast_unsigned() << 24 | bits)
    }
}

fn twelve_bits(value: i32) -> Option<u32> {
    (-2048..=2047).contains(&value).then_some(value.cast_unsigned() & 0xfff)
}

impl<S: Scope> Futex<S> {
    /// Applies `change` to this word, wakes up to `count` sleepers of `key`, and up to `own_count`
    /// of its own if the value before the change met `condition`; returns how many were woken on
    /// both together.
    ///
    /// The change is one atomic read-modify-write, and the three steps are one for every other
    /// operation on the two futexes. Take it for a full barrier on neither side: order what must be
    /// ordered by accesses of your own.
    ///
    /// # Errors
    /// An operand that cannot be encoded and a count of zero are refused, and so is a futex that is
    /// not mapped (`key`: noticed for shared futexes only) or in use for priority inheritance.
    /// Nothing was changed then. Not under Miri.
    ///
    /// # Examples
    /// Release a lock and announce it in one call:
    /// ```
    /// use std::sync::atomic::Ordering::Relaxed;
    /// use ulocks_core::futex::{Change, Condition, Futex, Private};
    ///
    /// # if cfg!(miri) { return Ok(()) }
    /// let (lock, event) = (Futex::<Private>::new(2), Futex::<Private>::new(0));
    /// let woken = lock.wake_op(Change::Set(0), event.key(), 1, Condition::Greater(1), 1)?;
    /// assert_eq!((woken, lock.load(Relaxed)), (0, 0));
    /// # Ok::<(), ulocks_core::futex::WakeOpError>(())
    /// ```
    #[cfg_attr(ulocks_vm, track_caller)]
    pub fn wake_op(
        &self,
        change: Change,
        key: FutexKey<S>,
        count: u32,
        condition: Condition,
        own_count: u32,
    ) -> Result<u32, WakeOpError> {
        let encoded = change.encode()? | condition.encode()?;
        if count == 0 || own_count == 0 {
            return Err(WakeOpError::ZeroCount);
        }
        kernel::wake_op(self, encoded, own_count, key.address(), count, S::PRIVATE)
    }
}
