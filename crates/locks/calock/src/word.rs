//! The word of a calock: whether it is held, and what its waiters are doing.

use core::fmt;
use ulocks_core::futex::Bits;

/// A value of the word: nine flags and a count.
///
/// | bits | name | meaning | set by | cleared by |
/// |---|---|---|---|---|
/// | 0 | `LOCKED` | held, or granted to the promoted waiter | (take), (take parked) | (unlock), unless it grants |
/// | 1 | `AWAKE` | a waiter was woken, or is promoted and awake | (announce), (promote) | (take parked), (park), (give up) of that waiter |
/// | 2 | `STANDBY` | a parked waiter sleeps with a timer, for an interval at most | (park) | (take parked), (give up) of that waiter |
/// | 3 | `PROMOTED` | the next release hands the lock over to the waiter that set this | (promote) | (take parked), (give up) of that waiter |
/// | 4 | `WASTED` | a waiter was woken to contend and found the lock taken | (park) | (unlock) |
/// | 5 | `REQUEUED` | a waiter that a condition variable requeued here may be asleep | (requeue); (take parked), (park) of such a waiter | (unlock), which wakes one |
/// | 6 | `GRANTED` | no thread holds the lock; only the promoted waiter may take it | (unlock) | (take parked) of that waiter |
/// | 7 | `TO_STAND_BY` | the woken waiter is to be the standby, and not to contend | (announce) | with `AWAKE` |
/// | 8 | `SOLO` | one thread is active; an arriving thread that finds the lock taken parks at once | (unlock) | (unlock) |
/// | 9 to 31 | parked | how many waiters are asleep, about to sleep, or awake to try again | (park) | (take parked), (give up) |
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct State(pub u32);

/// The futex bits of sleepers.
pub(crate) mod sleepers {
    use super::Bits;

    /// A waiter that a condition variable requeued here: the first bit, as for all locks.
    pub(crate) const REQUEUED: Bits = Bits::one(0);
    /// A parked waiter.
    pub(crate) const PARKED: Bits = Bits::one(1);
    /// The promoted waiter.
    pub(crate) const PROMOTED: Bits = Bits::one(2);
}

/// The flags of [`State`], for the files of the protocol.
pub(crate) mod flags {
    use super::State;

    pub(crate) const LOCKED: u32 = State::LOCKED;
    pub(crate) const AWAKE: u32 = State::AWAKE;
    pub(crate) const STANDBY: u32 = State::STANDBY;
    pub(crate) const PROMOTED: u32 = State::PROMOTED;
    pub(crate) const WASTED: u32 = State::WASTED;
    pub(crate) const REQUEUED: u32 = State::REQUEUED;
    pub(crate) const GRANTED: u32 = State::GRANTED;
    pub(crate) const TO_STAND_BY: u32 = State::TO_STAND_BY;
    pub(crate) const SOLO: u32 = State::SOLO;
}

const PARKED_SHIFT: u32 = 9;
const ONE_PARKED: u32 = 1 << PARKED_SHIFT;

impl State {
    /// Free, and no thread waits.
    pub const UNLOCKED: Self = Self(0);
    /// Held, or granted. Never stale.
    pub const LOCKED: u32 = 1 << 0;
    /// A waiter was woken, or is promoted and awake. Never set for long without one (invariant 2).
    /// May be clear although a waiter is awake.
    pub const AWAKE: u32 = 1 << 1;
    /// A parked waiter sleeps with a timer, or is awake and will. Never set without one;
    /// may be clear although waiters are parked.
    pub const STANDBY: u32 = 1 << 2;
    /// The next release hands the lock over. Set only while `LOCKED` is; never without its waiter.
    pub const PROMOTED: u32 = 1 << 3;
    /// A waiter was woken to contend and found the lock taken. Advice to the plan: may be stale in
    /// either way.
    pub const WASTED: u32 = 1 << 4;
    /// A waiter that a condition variable requeued here may be asleep. May be set although none is;
    /// never clear for long while one is (invariant 6).
    pub const REQUEUED: u32 = 1 << 5;
    /// The promoted waiter may take the lock. Never set while a thread holds it.
    pub const GRANTED: u32 = 1 << 6;
    /// The woken waiter is to be the standby. Set only while `AWAKE` is.
    pub const TO_STAND_BY: u32 = 1 << 7;
    /// One thread is active alone. May be stale in either way.
    pub const SOLO: u32 = 1 << 8;

    pub(crate) const fn has(self, flags: u32) -> bool {
        self.0 & flags != 0
    }

    pub(crate) const fn with(self, flags: u32) -> Self {
        Self(self.0 | flags)
    }

    pub(crate) const fn without(self, flags: u32) -> Self {
        Self(self.0 & !flags)
    }

    /// Whether the lock is held or granted.
    #[must_use]
    pub const fn is_locked(self) -> bool {
        self.has(Self::LOCKED)
    }

    /// How many waiters are parked.
    #[must_use]
    pub const fn parked(self) -> u32 {
        self.0 >> PARKED_SHIFT
    }

    /// The flags alone.
    pub(crate) const fn flags(self) -> u32 {
        self.0 & (ONE_PARKED - 1)
    }

    /// This word without the count and flags of a waiter.
    pub(crate) const fn without_waiter(self, mine: Mine) -> Self {
        Self(self.0 - mine.count()).without(mine.flags)
    }

    /// This word with the count and flags of a waiter.
    pub(crate) const fn with_waiter(self, mine: Mine) -> Self {
        Self(self.0 + mine.count()).with(mine.flags)
    }
}

/// What a waiter has in the word, and clears when it leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mine {
    /// It counts as parked.
    pub(crate) parked: bool,
    /// `STANDBY` and `PROMOTED`.
    pub(crate) flags: u32,
}

impl Mine {
    const fn count(self) -> u32 {
        if self.parked { ONE_PARKED } else { 0 }
    }

    /// Whether the next release hands the lock to this waiter.
    pub(crate) const fn is_promoted(self) -> bool {
        self.flags & State::PROMOTED != 0
    }

    /// Whether this waiter is the standby.
    pub(crate) const fn is_standby(self) -> bool {
        self.flags & State::STANDBY != 0
    }

    /// Whether this waiter may take a lock in `state`.
    pub(crate) const fn may_take(self, state: State) -> bool {
        !state.is_locked() || (self.is_promoted() && state.has(State::GRANTED))
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(u32, &str); 8] = [
            (State::AWAKE, "AWAKE"),
            (State::STANDBY, "STANDBY"),
            (State::PROMOTED, "PROMOTED"),
            (State::WASTED, "WASTED"),
            (State::REQUEUED, "REQUEUED"),
            (State::GRANTED, "GRANTED"),
            (State::TO_STAND_BY, "TO_STAND_BY"),
            (State::SOLO, "SOLO"),
        ];
        f.write_str(if self.is_locked() { "LOCKED" } else { "UNLOCKED" })?;
        for (_, name) in NAMES.into_iter().filter(|&(flag, _)| self.has(flag)) {
            write!(f, "|{name}")?;
        }
        if self.parked() > 0 {
            write!(f, " parked={}", self.parked())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_waiter_puts_in_it_takes_out() {
        let others = State(State::LOCKED | State::REQUEUED | (7 * ONE_PARKED));
        let mine = Mine { parked: true, flags: State::STANDBY | State::PROMOTED };
        let both = others.with_waiter(mine);
        assert_eq!(both.parked(), 8);
        assert_eq!(both.without_waiter(mine), others);
    }

    #[test]
    fn the_flags_stay_apart_from_one_another_and_from_the_count() {
        type S = State;
        let flags = [
            S::LOCKED,
            S::AWAKE,
            S::STANDBY,
            S::PROMOTED,
            S::WASTED,
            S::REQUEUED,
            S::GRANTED,
            S::TO_STAND_BY,
            S::SOLO,
        ];
        assert_eq!(flags, core::array::from_fn(|bit| 1 << bit));
        let all = State(flags.iter().sum());
        assert_eq!((all.parked(), all.flags()), (0, all.0));
        let crowd = State(all.0 + 3 * ONE_PARKED);
        assert_eq!((crowd.parked(), crowd.flags()), (3, all.0));
        for flag in flags {
            assert!(!crowd.without(flag).has(flag) && crowd.without(flag).with(flag) == crowd);
        }
        assert_eq!(
            [sleepers::REQUEUED, sleepers::PARKED, sleepers::PROMOTED],
            [Bits::one(0), Bits::one(1), Bits::one(2)]
        );
    }

    #[test]
    fn a_lock_that_is_handed_over_is_open_to_one() {
        let granted = State(State::LOCKED | State::PROMOTED | State::GRANTED);
        let promoted = Mine { parked: true, flags: State::PROMOTED };
        assert!(!Mine::default().may_take(granted) && promoted.may_take(granted));
        assert!(!promoted.may_take(granted.without(State::GRANTED)), "it is held still");
        assert!(Mine::default().may_take(State(State::STANDBY | ONE_PARKED)));
    }

    #[test]
    fn debug_names_the_parts() {
        assert_eq!(format!("{:?}", State::UNLOCKED), "UNLOCKED");
        assert_eq!(
            format!("{:?}", State(State::LOCKED | State::STANDBY | (9 * ONE_PARKED))),
            "LOCKED|STANDBY parked=9"
        );
    }
}
