//! The state word of a semaphore.

use crate::op::{Action, Op};
use core::fmt;

/// A semaphore's value, and flags for what is in the way of changing it by one compare-exchange.
///
/// ```text
/// | 31           5 |   4    |    3    |  2   |      1       |  0   |
/// | value, 27 bits | CLOSED | COMPLEX | ZERO | SUBTRACTIONS | LOCK |
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct State(pub u32);

impl State {
    /// A thread has locked the cell, or it is a follower (`pass.rs`): no other thread writes this
    /// word, or learns its value. It may be set although no thread is in a call; it is never clear
    /// while a word is half changed.
    pub const LOCK: u32 = 1;
    /// Sets wait here until the value is greater. Of a word without `LOCK` it is exact: it may be
    /// neither set while the queue is empty, nor clear while a set is in it.
    pub const SUBTRACTIONS: u32 = 1 << 1;
    /// Sets wait here until the value is zero, or stop for an aged set. Exact like `SUBTRACTIONS`.
    pub const ZERO: u32 = 1 << 2;
    /// A complex set is queued here, or watches this value: a session that changes it needs the
    /// array lock. Exact like `SUBTRACTIONS`.
    pub const COMPLEX: u32 = 1 << 3;
    /// The array was closed. It may be clear for a moment in some cells of an array that is being
    /// closed; it never becomes clear again.
    pub const CLOSED: u32 = 1 << 4;

    const SHIFT: u32 = 5;
    /// The greatest value that fits.
    pub const GREATEST: u32 = u32::MAX >> Self::SHIFT;

    pub const fn with_value(value: u32) -> Self {
        Self(value << Self::SHIFT)
    }

    pub const fn value(self) -> u32 {
        self.0 >> Self::SHIFT
    }

    pub const fn has(self, flags: u32) -> bool {
        self.0 & flags != 0
    }

    /// Whether the cell is locked, and nothing else is the matter.
    pub const fn is_only_locked(self) -> bool {
        self.0 & ((1 << Self::SHIFT) - 1) == Self::LOCK
    }

    /// The same flags and another value.
    pub const fn set(self, value: u32) -> Self {
        Self(self.0 & ((1 << Self::SHIFT) - 1) | value << Self::SHIFT)
    }

    /// The word after `op`, if that can proceed.
    #[inline]
    pub fn after(self, op: &Op, limit: u32) -> Result<Self, Stop> {
        let value = self.value();
        match op.action {
            Action::WaitZero if value != 0 => Err(Stop::Blocks),
            Action::WaitZero => Ok(self),
            Action::Sub if value < op.amount => Err(Stop::Blocks),
            Action::Sub => Ok(Self(self.0 - (op.amount << Self::SHIFT))),
            Action::Add if op.amount > limit - value => Err(Stop::OutOfRange),
            Action::Add => Ok(Self(self.0 + (op.amount << Self::SHIFT))),
        }
    }

    /// The word before `op`, which was performed on it.
    #[inline]
    pub const fn before(self, op: &Op) -> Self {
        match op.action {
            Action::WaitZero => self,
            Action::Sub => Self(self.0 + (op.amount << Self::SHIFT)),
            Action::Add => Self(self.0 - (op.amount << Self::SHIFT)),
        }
    }

    /// The word after `op`, if that can proceed and no flag is in its way: the cell is not locked,
    /// and no waiting set can proceed afterwards.
    #[inline]
    pub fn alone(self, op: &Op, limit: u32) -> Option<Self> {
        let in_the_way = match op.action {
            Action::Add => Self::LOCK | Self::CLOSED | Self::COMPLEX | Self::SUBTRACTIONS,
            Action::Sub | Action::WaitZero => Self::LOCK | Self::CLOSED | Self::COMPLEX,
        };
        let next = self.after(op, limit).ok()?;
        let becomes_zero = next.value() == 0 && self.value() != 0;
        (!(self.has(in_the_way) || becomes_zero && self.has(Self::ZERO))).then_some(next)
    }

    /// Whether `op` certainly cannot proceed now: no thread has locked the cell and may be changing
    /// the value.
    pub fn blocks(self, op: &Op, limit: u32) -> bool {
        !self.has(Self::LOCK | Self::CLOSED)
            && op.amount <= limit
            && self.after(op, limit) == Err(Stop::Blocks)
    }
}

/// Why an operation cannot proceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It cannot proceed now.
    Blocks,
    /// It would exceed the limit.
    OutOfRange,
    /// The array was closed.
    Closed,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (Self::LOCK, "LOCK"),
            (Self::SUBTRACTIONS, "SUBTRACTIONS"),
            (Self::ZERO, "ZERO"),
            (Self::COMPLEX, "COMPLEX"),
            (Self::CLOSED, "CLOSED"),
        ];
        write!(f, "{}", self.value())?;
        names.iter().filter(|(bit, _)| self.has(*bit)).try_for_each(|(_, name)| write!(f, " {name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_and_the_flags_do_not_meet() {
        let all = State(State::LOCK | State::SUBTRACTIONS | State::ZERO | State::COMPLEX | State::CLOSED);
        assert_eq!(all.set(State::GREATEST).value(), State::GREATEST);
        assert_eq!(all.set(State::GREATEST).set(0), all);
        assert_eq!(format!("{:?}", all.set(3)), "3 LOCK SUBTRACTIONS ZERO COMPLEX CLOSED");
    }

    #[test]
    fn an_operation_is_undone_by_before() {
        for op in [Op::add(0, 2), Op::sub(0, 2), Op::add(0, 0)] {
            let word = State(State::ZERO).set(5);
            assert_eq!(word.after(&op, 7).unwrap().before(&op), word);
        }
        assert_eq!(State::with_value(5).after(&Op::add(0, u32::MAX), 7), Err(Stop::OutOfRange));
        assert_eq!(State::with_value(5).after(&Op::add(0, 3), 7), Err(Stop::OutOfRange));
        assert_eq!(State::with_value(0).after(&Op::wait_zero(0), 7), Ok(State::with_value(0)));
        assert_eq!(State::with_value(5).after(&Op::sub(0, u32::MAX), 7), Err(Stop::Blocks));
        assert_eq!(State::with_value(5).after(&Op::wait_zero(0), 7), Err(Stop::Blocks));
    }

    #[test]
    fn an_uncontended_change_completes_no_set() {
        let with = |flags, value| State(flags).set(value);
        let alone = |word: State, op| word.alone(&op, 9).is_some();
        assert!(
            alone(with(State::ZERO, 1), Op::add(0, 1)) && !alone(with(State::SUBTRACTIONS, 1), Op::add(0, 1))
        );
        assert!(alone(with(State::SUBTRACTIONS, 1), Op::sub(0, 1)), "an arriving set is tried first");
        assert!(alone(with(State::ZERO, 2), Op::sub(0, 1)) && !alone(with(State::ZERO, 1), Op::sub(0, 1)));
        for flag in [State::LOCK, State::COMPLEX, State::CLOSED] {
            assert!(
                [Op::add(0, 1), Op::sub(0, 1), Op::sub(0, 0)].iter().all(|op| !alone(with(flag, 1), *op))
            );
            assert!(!alone(with(flag, 0), Op::wait_zero(0)));
        }
        let blocks = |word: State, op| word.blocks(&op, 9);
        assert!(
            blocks(with(State::COMPLEX, 1), Op::sub(0, 2)) && !blocks(with(State::COMPLEX, 1), Op::sub(0, 1))
        );
        assert!(!blocks(with(State::LOCK, 1), Op::sub(0, 2)), "the holder of the cell may be adding");
        assert!(!blocks(with(0, 1), Op::sub(0, 10)), "that is an error");
    }
}
