//! Whose turn it is, and since when: by this a waiter between processes tells that another is dead.
//! See "Deaths" in `raw.rs`.
//!
//! The time is that of the monotonic clock. Processes in time namespaces with different offsets may
//! take the living for dead, which costs places, or the dead for living. With an interval of more
//! than half an hour the dead are never found, because the time that is noted goes round.

use crate::word::{Mine, State};
use core::time::Duration;
use ulocks_core::time::Deadline;

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The holder's, which may hold for long; or there is no sentinel, and the next waiter that
    /// parks is it.
    Nobody,
    /// The sentinel's. If it lives, it is promoted after an interval, or leaves.
    Sentinel,
    /// The promoted waiter's. The lock is handed to it. If it lives, it takes the lock at once.
    Promoted,
}

/// The turn of one waiter.
///
/// It is noted in a word of the lock:
///
/// | bits | meaning |
/// |---|---|
/// | 0 and 1 | whose |
/// | 2 to 9 | how often a sentinel or promoted waiter had left, modulo 256: another turn has another number |
/// | 10 to 31 | when the turn was noted, in milliseconds of the monotonic clock, modulo 2^22 |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) whose: Whose,
    promotions: u32,
}

const PROMOTIONS: u32 = 0xff;
const PROMOTIONS_SHIFT: u32 = 2;
const TIME_SHIFT: u32 = 10;
/// By how many milliseconds a waiter that looks at the clock later may be ahead.
const AHEAD: u32 = 10_000;
const TIMES: u32 = 1 << (u32::BITS - TIME_SHIFT);

impl Turn {
    /// The turn in `was`.
    pub(crate) fn of(was: State, promotions: u32) -> Self {
        let whose = if was.has(State::GRANTED) {
            Whose::Promoted
        } else if was.has(State::SENTINEL) && !was.has(State::PROMOTED) {
            Whose::Sentinel
        } else {
            Whose::Nobody
        };
        Self { whose, promotions }
    }

    /// Whether it is the turn of another than the waiter that has `mine` in the word.
    pub(crate) fn concerns(self, mine: Mine) -> bool {
        match self.whose {
            Whose::Nobody => false,
            Whose::Sentinel => !mine.is_sentinel(),
            Whose::Promoted => !mine.is_promoted(),
        }
    }

    /// The time, as it is noted.
    pub(crate) fn now() -> u32 {
        Deadline::after(Duration::ZERO).since_zero().as_millis() as u32 % TIMES
    }

    const fn bits(self) -> u32 {
        (self.promotions & PROMOTIONS) << PROMOTIONS_SHIFT | self.whose as u32
    }

    /// What is noted of a turn that is seen first at `now`.
    pub(crate) const fn noted(self, now: u32) -> u32 {
        now << TIME_SHIFT | self.bits()
    }

    /// Whether `noted` is this turn.
    pub(crate) const fn is(self, noted: u32) -> bool {
        noted % (1 << TIME_SHIFT) == self.bits()
    }

    /// How long ago it was `noted`. Zero if that is in the future, because another waiter looked at
    /// the clock later.
    pub(crate) fn lasted(noted: u32, now: u32) -> Duration {
        let lasted = now.wrapping_sub(noted >> TIME_SHIFT) % TIMES;
        Duration::from_millis(if lasted < TIMES - AHEAD { lasted.into() } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENTINEL: State = State(State::LOCKED | State::SENTINEL);

    #[test]
    fn a_turn_is_known_by_its_owner_and_its_number() {
        let turn = Turn::of(SENTINEL, 300);
        let noted = turn.noted(7);
        assert!(turn.is(noted) && Turn::of(SENTINEL.with(State::HOT), 300).is(noted));
        assert!(!Turn::of(SENTINEL, 301).is(noted));
        assert!(!Turn::of(SENTINEL.with(State::PROMOTED), 300).is(noted));
        assert!(!Turn::of(SENTINEL.with(State::PROMOTED | State::GRANTED), 300).is(noted));
    }

    #[test]
    fn a_waiter_does_not_take_itself_for_dead() {
        let sentinel = Mine { parked: true, flags: State::SENTINEL };
        let promoted = Mine { parked: true, flags: State::PROMOTED };
        let turn = Turn::of(SENTINEL, 0);
        assert!(!turn.concerns(sentinel) && turn.concerns(promoted) && turn.concerns(Mine::default()));
        let turn = Turn::of(SENTINEL.with(State::PROMOTED | State::GRANTED), 0);
        assert!(turn.concerns(sentinel) && !turn.concerns(promoted));
        assert!(!Turn::of(State(State::LOCKED), 0).concerns(Mine::default()));
    }

    #[test]
    fn time_goes_round() {
        let turn = Turn::of(SENTINEL, 5);
        let lasted = |noted, now| Turn::lasted(turn.noted(noted), now).as_millis();
        assert_eq!((lasted(3, 10), lasted(TIMES - 2, 5), lasted(10, 9)), (7, 7, 0));
    }
}
