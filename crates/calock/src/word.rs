//! The word of a calock: who holds it, and what the others are about.

use core::fmt;
use ulocks_core::futex::Bits;

/// A value of the word: nine flags and a count.
///
/// | bits | name | meaning | set by | cleared by |
/// |---|---|---|---|---|
/// | 0 | `LOCKED` | held, or handed to the promoted | who acquires | the holder, unless it hands the lock over |
/// | 1 | `AWAKE` | somebody was woken, or is promoted and awake | the holder, before it rings; who is promoted | who was woken, as it acquires, parks again or gives up |
/// | 2 | `SENTINEL` | one of those parked naps, for an interval at most | who parks and finds it clear, unless it has just come past others | that one, as it acquires or gives up; in shared memory a waiter that takes it for dead owns it then |
/// | 3 | `PROMOTED` | the next release hands the lock to one that was parked too long | that one | that one, as it acquires or gives up |
/// | 4 | `IN_VAIN` | somebody was woken and found the lock taken | that one, as it parks again | the next release |
/// | 5 | `MOVED` | somebody whom a condition variable moved here may be asleep | one of those, as it acquires or parks; a notification that moves it | the next release, which wakes one |
/// | 6 | `GRANTED` | nobody holds the lock, but the promoted may take it, and nobody else | a release | the promoted, as it acquires; in shared memory a waiter that takes it for dead |
/// | 7 | `HEIR` | whoever was woken is to be the sentinel, and not to contend | the holder, with `AWAKE` | with `AWAKE` |
/// | 8 | `HOT` | one thread circulates, and whoever finds the lock taken parks at once | a release past somebody parked | a release |
/// | 9 to 31 | parked | waiters that are asleep, will be at once, or have been and try again | who parks | who acquires after that or gives up |
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct State(pub u32);

/// What those sleep with who were parked, what the promoted one sleeps with; bit 0 is for those
/// whom a condition variable moves here.
pub(crate) const MOVED: Bits = Bits::one(0);
pub(crate) const PARKED: Bits = Bits::one(1);
pub(crate) const PROMOTED: Bits = Bits::one(2);
/// The same between processes, where others may have taken the promotion back.
pub(crate) const PROMOTED_PERHAPS: Bits = match Bits::new(PARKED.get() | PROMOTED.get()) {
    Some(bits) => bits,
    None => PROMOTED,
};

const PARKED_SHIFT: u32 = 9;
const ONE_PARKED: u32 = 1 << PARKED_SHIFT;

impl State {
    /// Free, and nobody waits.
    pub const UNLOCKED: Self = Self(0);
    /// Held.
    pub const LOCKED: u32 = 1 << 0;
    /// Somebody who was parked is awake.
    pub const AWAKE: u32 = 1 << 1;
    /// One of those parked sleeps for one interval only.
    pub const SENTINEL: u32 = 1 << 2;
    /// The next release hands the lock to one that was parked too long.
    pub const PROMOTED: u32 = 1 << 3;
    /// Somebody was woken and found the lock taken.
    pub const IN_VAIN: u32 = 1 << 4;
    /// Somebody whom a condition variable moved here may be asleep.
    pub const MOVED: u32 = 1 << 5;
    /// The lock is handed to the promoted, who has not taken it yet.
    pub const GRANTED: u32 = 1 << 6;
    /// Whoever was woken is to be the sentinel.
    pub const HEIR: u32 = 1 << 7;
    /// One thread circulates, and whoever finds the lock taken parks at once.
    pub const HOT: u32 = 1 << 8;

    pub(crate) const fn has(self, flags: u32) -> bool {
        self.0 & flags != 0
    }

    pub(crate) const fn with(self, flags: u32) -> Self {
        Self(self.0 | flags)
    }

    pub(crate) const fn without(self, flags: u32) -> Self {
        Self(self.0 & !flags)
    }

    /// Whether somebody holds the lock, or it is handed to somebody.
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

    /// The same without what a waiter has in it.
    pub(crate) const fn without_waiter(self, mine: Mine) -> Self {
        Self(self.0 - mine.count()).without(mine.flags)
    }

    /// The same with what a waiter has in it.
    pub(crate) const fn with_waiter(self, mine: Mine) -> Self {
        Self(self.0 + mine.count()).with(mine.flags)
    }
}

/// What a waiter has in the word, and takes out of it when it leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mine {
    /// It counts as parked.
    pub(crate) parked: bool,
    /// `SENTINEL` and `PROMOTED`.
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

    /// Whether this waiter sleeps for one interval only.
    pub(crate) const fn is_sentinel(self) -> bool {
        self.flags & State::SENTINEL != 0
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
            (State::SENTINEL, "SENTINEL"),
            (State::PROMOTED, "PROMOTED"),
            (State::IN_VAIN, "IN_VAIN"),
            (State::MOVED, "MOVED"),
            (State::GRANTED, "GRANTED"),
            (State::HEIR, "HEIR"),
            (State::HOT, "HOT"),
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
        let others = State(State::LOCKED | State::MOVED | (7 * ONE_PARKED));
        let mine = Mine { parked: true, flags: State::SENTINEL | State::PROMOTED };
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
            S::SENTINEL,
            S::PROMOTED,
            S::IN_VAIN,
            S::MOVED,
            S::GRANTED,
            S::HEIR,
            S::HOT,
        ];
        assert_eq!(flags, core::array::from_fn(|bit| 1 << bit));
        let all = State(flags.iter().sum());
        assert_eq!((all.parked(), all.flags()), (0, all.0));
        let crowd = State(all.0 + 3 * ONE_PARKED);
        assert_eq!((crowd.parked(), crowd.flags()), (3, all.0));
        for flag in flags {
            assert!(!crowd.without(flag).has(flag) && crowd.without(flag).with(flag) == crowd);
        }
        assert_eq!([MOVED, PARKED, PROMOTED], [Bits::one(0), Bits::one(1), Bits::one(2)]);
        assert_eq!(PROMOTED_PERHAPS.get(), 0b110);
    }

    #[test]
    fn a_lock_that_is_handed_over_is_open_to_one() {
        let granted = State(State::LOCKED | State::PROMOTED | State::GRANTED);
        let promoted = Mine { parked: true, flags: State::PROMOTED };
        assert!(!Mine::default().may_take(granted) && promoted.may_take(granted));
        assert!(!promoted.may_take(granted.without(State::GRANTED)), "it is held still");
        assert!(Mine::default().may_take(State(State::SENTINEL | ONE_PARKED)));
    }

    #[test]
    fn debug_names_the_parts() {
        assert_eq!(format!("{:?}", State::UNLOCKED), "UNLOCKED");
        assert_eq!(
            format!("{:?}", State(State::LOCKED | State::SENTINEL | (9 * ONE_PARKED))),
            "LOCKED|SENTINEL parked=9"
        );
    }
}
