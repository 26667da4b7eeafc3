//! The counts of a condition variable: how many threads wait, how many of them spin, how many were
//! notified.

use super::spins::Spins;
use core::fmt;

/// A value of the word `counts`.
///
/// | part | bits | law |
/// |---|---|---|
/// | `waiting` | 16 | threads between their registration and their leave, notified or not |
/// | `granted` | 16 | notifications given that no waiter has taken yet |
/// | `REQUEUING` | 1 | a notification may move sleepers to the mutex, and no waiter returns. Its grant sets the bit, and it clears it afterwards. Other notifications only wake meanwhile |
/// | `REQUEUED` | 1 | a thread may sleep on the mutex: every sleeper that leaves locks by `lock_requeued`. Set while `REQUEUING` is, cleared when no thread waits and `REQUEUING` is not set |
/// | [`Spins`] | 9 | the waiters that spin, and in one process the one whose all this is (Invariant 7). A registration counts a spinner, and the same waiter counts it out before it sleeps or as it leaves |
/// | `epoch` | 21 | changes with each grant |
///
/// `waiting` may be too high, after a waiter was killed, never too low; a waiter in a copy of its
/// process does not count (Invariant 7). `granted` is never more
/// than the eligible waiters (Invariant 3). `failed` is a hint: no wake-up relies on it.
#[derive(Clone, Copy)]
pub(super) struct Counts(pub(super) u64);

impl Counts {
    const FIELD_BITS: u32 = 16;
    /// The most that fits into `waiting` or `granted`.
    pub(super) const MAX: u32 = (1 << Self::FIELD_BITS) - 1;

    const ONE_WAITING: u64 = 1;
    const GRANTED_SHIFT: u32 = Self::FIELD_BITS;
    const ONE_GRANTED: u64 = 1 << Self::GRANTED_SHIFT;
    /// May be set after the last sleeper was moved, never clear while a notification may look at a
    /// mutex that it reached by `target`.
    const REQUEUING: u64 = 1 << 32;
    /// May be set although no waiter sleeps on the mutex, never clear while one does.
    pub(super) const REQUEUED: u64 = 1 << 33;
    const SPINS_SHIFT: u32 = 34;
    const EPOCH_SHIFT: u32 = Self::SPINS_SHIFT + Spins::BITS;
    const ONE_EPOCH: u64 = 1 << Self::EPOCH_SHIFT;

    pub(super) fn waiting(self) -> u32 {
        self.0 as u32 & Self::MAX
    }

    pub(super) fn granted(self) -> u32 {
        (self.0 >> Self::GRANTED_SHIFT) as u32 & Self::MAX
    }

    pub(super) fn is_requeuing(self) -> bool {
        self.0 & Self::REQUEUING != 0
    }

    /// Whether all this is of `process`.
    pub(super) fn is_of(self, process: u32) -> bool {
        self.spins().is_of(process)
    }

    fn spins(self) -> Spins {
        Spins((self.0 >> Self::SPINS_SHIFT) as u32 & ((1 << Spins::BITS) - 1))
    }

    fn with_spins(self, spins: Spins) -> Self {
        let mask = ((1_u64 << Spins::BITS) - 1) << Self::SPINS_SHIFT;
        Self(self.0 & !mask | u64::from(spins.0) << Self::SPINS_SHIFT)
    }

    /// As `process` finds it, which has none of the threads of its parent. The epoch goes on.
    pub(super) fn seen_in(self, process: u32) -> Self {
        let counted =
            if self.is_of(process) { self.0 } else { self.0 >> Self::SPINS_SHIFT << Self::SPINS_SHIFT };
        Self(counted).with_spins(self.spins().seen_in(process))
    }

    pub(super) fn is_requeued(self) -> bool {
        self.0 & Self::REQUEUED != 0
    }

    pub(super) fn epoch(self) -> u32 {
        (self.0 >> Self::EPOCH_SHIFT) as u32
    }

    pub(super) fn spinning(self) -> u32 {
        self.spins().spinning()
    }

    pub(super) fn with_waiter(self) -> Self {
        Self(self.0 + Self::ONE_WAITING)
    }

    /// With a waiter that would spin in `process`, and whether it does.
    pub(super) fn with_spinner(self, process: u32) -> (Self, bool) {
        let (spins, spin) = self.spins().with_spinner(process);
        (self.with_waiter().with_spins(spins), spin)
    }

    /// Without a spinner, which was notified or whose spin failed.
    pub(super) fn without_spinner(self, notified: bool) -> Self {
        self.with_spins(self.spins().without_spinner(notified))
    }

    /// The epoch wraps around.
    pub(super) fn with_grants(self, count: u32) -> Self {
        let grants = Self::ONE_GRANTED * u64::from(count);
        Self(self.0.wrapping_add(grants).wrapping_add(Self::ONE_EPOCH))
    }

    pub(super) fn with_requeuing(self) -> Self {
        Self(self.0 | Self::REQUEUING)
    }

    /// What is counted too low, which only foreign writes to shared memory can bring about, stays
    /// at zero.
    pub(super) fn without_waiter(self, takes_grant: bool) -> Self {
        let mut next = self.0;
        if takes_grant && self.granted() > 0 {
            next -= Self::ONE_GRANTED;
        }
        if self.waiting() > 0 {
            next -= Self::ONE_WAITING;
        }
        Self(next).tidied()
    }

    pub(super) fn without_requeuing(self) -> Self {
        Self(self.0 & !Self::REQUEUING).tidied()
    }

    /// Without `REQUEUED`, if that is not needed any more (Invariant 5).
    fn tidied(self) -> Self {
        let needed = self.waiting() > 0 || self.is_requeuing();
        if needed { self } else { Self(self.0 & !Self::REQUEUED) }
    }
}

impl fmt::Debug for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requeued = if self.is_requeued() { " REQUEUED" } else { "" };
        let (waiting, spinning, granted) = (self.waiting(), self.spinning(), self.granted());
        write!(f, "waiting={waiting} spinning={spinning} granted={granted}{requeued} epoch={}", self.epoch())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::spin::{PROBE, TRIES};

    const HERE: u32 = 5;

    /// A waiter that registers for a spin and gives up: what is left of it but its `waiting`.
    fn fails(counts: Counts) -> Counts {
        let (spinning, spins) = counts.with_spinner(HERE);
        let slept = if spins { spinning.without_spinner(false) } else { spinning };
        slept.without_waiter(false)
    }

    #[test]
    fn failing_spins_become_rare() {
        let mut counts = Counts(0);
        let mut spun = Vec::new();
        for wait in 0..100 {
            if counts.with_spinner(HERE).1 {
                spun.push(wait);
            }
            counts = fails(counts);
        }
        let every = PROBE - TRIES + 1;
        let after = |probes| TRIES - 1 + probes * every;
        assert_eq!(spun, [0, 1, 2, after(1), after(2), after(3)]);
    }

    #[test]
    fn a_spin_that_was_notified_makes_waiters_spin_again() {
        let probing = (0..PROBE).fold(Counts(0), |counts, _| fails(counts));
        let (spinning, spins) = probing.with_spinner(HERE);
        assert!(spins);
        let notified = spinning.with_grants(1).without_spinner(true).without_waiter(true);
        assert_eq!((notified.spins().failed(), notified.spinning(), notified.granted()), (0, 0, 0));
        assert!(notified.with_spinner(HERE).1);
    }

    #[test]
    fn only_so_many_spin() {
        let mut counts = Counts(0);
        for nth in 1..=Spins::MOST {
            let (next, spins) = counts.with_spinner(HERE);
            assert!(spins && next.spinning() == nth);
            counts = next;
        }
        let (next, spins) = counts.with_spinner(HERE);
        assert!(!spins && next.spinning() == Spins::MOST);
        assert_eq!(next.waiting(), Spins::MOST + 1);
    }

    #[test]
    fn a_child_has_none_of_the_threads_of_its_parent() {
        let parents = Counts(0).seen_in(HERE).with_spinner(HERE).0.with_spinner(HERE).0.with_waiter();
        let parents = Counts(parents.with_grants(2).with_requeuing().0 | Counts::REQUEUED);
        let child = HERE + 1;
        assert!(parents.is_of(HERE) && !parents.is_of(child));
        let own = parents.seen_in(child);
        for (childs, spins) in [(own.with_waiter(), 0), (own.with_spinner(child).0, 1)] {
            assert!(childs.is_of(child) && !childs.is_requeuing() && !childs.is_requeued());
            let counted = (childs.waiting(), childs.granted(), childs.spinning(), childs.epoch());
            assert_eq!(counted, (1, 0, spins, parents.epoch()));
        }
    }

    #[test]
    fn the_last_waiter_leaves_the_mark_of_those_moved_while_some_are() {
        let moving = Counts(0).with_waiter().with_grants(1).with_requeuing();
        let left = Counts(moving.0 | Counts::REQUEUED).without_waiter(true);
        assert!(left.is_requeued(), "a sleeper may be moved to the mutex yet");
        assert!(!left.without_requeuing().is_requeued(), "no thread is left to be moved");
    }

    #[test]
    fn the_parts_do_not_touch() {
        let full = (0..Counts::MAX).fold(Counts(0), |counts, _| counts.with_waiter());
        assert_eq!((full.waiting(), full.granted(), full.epoch()), (Counts::MAX, 0, 0));
        let notified = full.with_grants(Counts::MAX).with_requeuing();
        assert_eq!((notified.waiting(), notified.granted(), notified.epoch()), (Counts::MAX, Counts::MAX, 1));
        assert!(notified.is_requeuing() && !notified.is_requeued() && notified.spinning() == 0);
        let last = Counts(u64::MAX << Counts::EPOCH_SHIFT).with_grants(0);
        assert_eq!(last.0, 0, "the epoch wraps around");
    }
}
