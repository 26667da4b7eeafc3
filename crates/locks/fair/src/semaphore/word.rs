//! The word of a semaphore: how many permits are free, how many threads wait, what is going on in
//! the queue, and whether the semaphore is closed.

use core::fmt;

/// A value of the word.
///
/// | bits | name | law |
/// |---|---|---|
/// | 30 | permits | the free ones; each thread may change them. With `CLOSED` they only grow |
/// | 30 | waiters | threads in the queue, or on their way into it; while there are any, permits are taken for them only |
/// | 1 | `QUEUE_LOCKED` | there is a queue-lock holder, which alone touches links. Only with waiters |
/// | 1 | `ARRIVED` | a node was pushed meanwhile. Only with `QUEUE_LOCKED` |
/// | 1 | `LEAVERS` | a waiter wants to leave. Only with `QUEUE_LOCKED` |
/// | 1 | `CLOSED` | set by (close), never cleared: no permits are taken, and no thread comes |
///
/// So a word below `ONE_WAITER` is a plain count of an open semaphore, and the fast paths need one
/// comparison.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct State(pub u64);

const PERMIT_BITS: u32 = 30;
const WAITER_BITS: u32 = 30;

impl State {
    const PERMITS_MASK: u64 = (1 << PERMIT_BITS) - 1;
    const ONE_WAITER: u64 = 1 << PERMIT_BITS;
    const WAITERS_MASK: u64 = ((1 << WAITER_BITS) - 1) << PERMIT_BITS;
    const FLAGS_SHIFT: u32 = PERMIT_BITS + WAITER_BITS;

    /// The most permits there can be.
    pub const MAX_PERMITS: u32 = Self::PERMITS_MASK as u32;
    /// The most threads that can wait.
    pub const MAX_WAITERS: u32 = (1 << WAITER_BITS) - 1;

    pub const QUEUE_LOCKED: u64 = 1 << Self::FLAGS_SHIFT;
    pub const ARRIVED: u64 = 1 << (Self::FLAGS_SHIFT + 1);
    pub const LEAVERS: u64 = 1 << (Self::FLAGS_SHIFT + 2);
    pub const CLOSED: u64 = 1 << 63;

    #[inline]
    pub fn permits(self) -> u32 {
        (self.0 & Self::PERMITS_MASK) as u32
    }

    #[inline]
    pub fn waiters(self) -> u32 {
        ((self.0 & Self::WAITERS_MASK) >> PERMIT_BITS) as u32
    }

    /// Whether the semaphore is open and has no waiters.
    #[inline]
    pub fn is_plain(self) -> bool {
        self.0 < Self::ONE_WAITER
    }

    /// Whether (close) was made.
    #[inline]
    pub fn is_closed(self) -> bool {
        self.has(Self::CLOSED)
    }

    #[inline]
    pub fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }

    pub fn with(self, flag: u64) -> Self {
        Self(self.0 | flag)
    }

    pub fn without(self, flags: u64) -> Self {
        Self(self.0 & !flags)
    }

    /// After an arriving thread has taken `count` permits; `None` if it may not.
    #[inline(always)]
    pub fn taken(self, count: u32) -> Option<Self> {
        (self.is_plain() && self.0 >= u64::from(count)).then(|| Self(self.0 - u64::from(count)))
    }

    /// After `count` permits were given; `None` if there would be more than there can be.
    #[inline]
    pub fn given(self, count: u32) -> Option<Self> {
        let fits = u64::from(self.permits()) + u64::from(count) <= u64::from(Self::MAX_PERMITS);
        fits.then(|| Self(self.0 + u64::from(count)))
    }

    /// With one more waiter; `None` if there are as many as there can be.
    pub fn with_waiter(self) -> Option<Self> {
        (self.waiters() < Self::MAX_WAITERS).then(|| Self(self.0 + Self::ONE_WAITER))
    }

    /// After `waiters` have left the queue with `permits` together, without flags; closed stays
    /// closed. A count that is too low stays at zero: the word is out of date then, since a waiter
    /// has come after it was read, and (settle) fails.
    pub fn departed(self, waiters: u32, permits: u32) -> Self {
        let waiters = u64::from(self.waiters().saturating_sub(waiters));
        let permits = u64::from(self.permits().saturating_sub(permits));
        Self(permits | waiters << PERMIT_BITS | self.0 & Self::CLOSED)
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "permits={}", self.permits())?;
        if self.waiters() > 0 {
            write!(f, " waiters={}", self.waiters())?;
        }
        let flags = [
            (Self::QUEUE_LOCKED, "QUEUE_LOCKED"),
            (Self::ARRIVED, "ARRIVED"),
            (Self::LEAVERS, "LEAVERS"),
            (Self::CLOSED, "closed"),
        ];
        for (_, name) in flags.into_iter().filter(|&(flag, _)| self.has(flag)) {
            write!(f, " {name}")?;
        }
        Ok(())
    }
}

const _: () = assert!(State(0).0 == 0 && State::MAX_PERMITS == (1 << 30) - 1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_count_is_taken_and_given_within_its_bounds() {
        let three = State(3);
        assert_eq!(three.taken(3), Some(State(0)));
        assert_eq!(three.taken(4), None);
        assert_eq!(three.given(State::MAX_PERMITS - 3), Some(State(u64::from(State::MAX_PERMITS))));
        assert_eq!(three.given(State::MAX_PERMITS - 2), None);
        assert_eq!(State(0).given(u32::MAX), None);
    }

    #[test]
    fn with_somebody_in_line_nobody_else_takes() {
        let state = State(5).with_waiter().unwrap();
        assert_eq!((state.permits(), state.waiters()), (5, 1));
        assert_eq!(state.taken(1), None);
        assert_eq!(state.with(State::QUEUE_LOCKED | State::LEAVERS).departed(1, 2), State(3));
    }

    #[test]
    fn the_line_has_an_end() {
        let full = State(u64::from(State::MAX_WAITERS) << PERMIT_BITS);
        assert_eq!(full.with_waiter(), None);
        assert_eq!(full.departed(1, 0).with_waiter(), Some(full));
    }

    #[test]
    fn the_flags_stay_apart_from_the_counts() {
        let flags = [State::QUEUE_LOCKED, State::ARRIVED, State::LEAVERS];
        assert_eq!(flags, [1 << 60, 1 << 61, 1 << 62]);
        assert_eq!(State::CLOSED, 1 << 63);
        assert_eq!(State::MAX_WAITERS, State::MAX_PERMITS);
    }

    #[test]
    fn what_is_closed_stays_closed() {
        let closed = State(5).with_waiter().unwrap().with(State::LEAVERS | State::CLOSED);
        assert_eq!((closed.permits(), closed.waiters(), closed.is_plain()), (5, 1, false));
        assert!(closed.with_waiter().unwrap().is_closed());
        let gone = closed.departed(1, 0);
        assert_eq!([gone, closed.departed(9, 0)], [State(5).with(State::CLOSED); 2]);
        assert_eq!(gone.taken(1), None);
        assert_eq!(gone.given(2), Some(State(7).with(State::CLOSED)));
        assert_eq!(format!("{closed:?} {gone:?}"), "permits=5 waiters=1 LEAVERS closed permits=5 closed");
    }
}
