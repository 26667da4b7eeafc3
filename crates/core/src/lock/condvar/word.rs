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
/// | [`Spins`] | 9 | the waiters that spin, and the process to which they and `REQUEUING` belong. A registration counts a spinner, and the same waiter counts it out before it sleeps or as it leaves |
/// | `epoch` | 21 | changes with each grant |
///
/// `waiting` may be too high, after a waiter was killed, never too low. `granted` is never more
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

    /// Whether a thread of `process` is requeuing.
    pub(super) fn is_requeuing_in(self, process: u32) -> bool {
        self.is_requeuing() && self.spins().is_of(process)
    }

    fn spins(self) -> Spins {
        Spins((self.0 >> Self::SPINS_SHIFT) as u32 & ((1 << Spins::BITS) - 1))
    }

    fn with_spins(self, spins: Spins) -> Self {
        let mask = ((1_u64 << Spins::BITS) - 1) << Self::SPINS_SHIFT;
        Self(self.0 & !mask | u64::from(spins.0) << Self::SPINS_SHIFT)
    }

    /// As `process` finds it, which has none of the spinners and requeuers of its parent.
    fn seen_in(self, process: u32) -> Self {
        let requeuing = if self.spins().is_of(process) { 0 } else { Self::REQUEUING };
        Self(self.0 & !requeuing).with_spins(self.spins().seen_in(process))
    }

    pub(super) fn is_requeued(self) -> bool {
        self.0 & Self::REQUEUED != 0
    }

    pub(super) fn epoch(self) -> u32 {
        (self.0 >> Self::EPOCH_SHIFT) as u32
    }

    /// How many spin, in whichever process.
    pub(super) fn spinning(self) -> u32 {
        self.spins().spinning()
    }

    /// How many spin in `process`.
    pub(super) fn spinners(self, process: u32) -> u32 {
        self.spins().spinners(process)
    }

    pub(super) fn with_waiter(self) -> Self {
        Self(self.0 + Self::ONE_WAITING)
    }

    /// With a waiter that would spin in `process`, and whether it does.
    pub(super) fn with_spinner(self, process: u32) -> (Self, bool) {
        let (spins, spin) = self.spins().with_spinner(process);
        let base = if spin { self.seen_in(process) } else { self };
        (base.with_waiter().with_spins(spins), spin)
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

    /// With a thread of `process` that is requeuing.
    pub(super) fn requeuing_in(self, process: u32) -> Self {
        Self(self.seen_in(process).0 | Self::REQUEUING)
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
            assert!(spins && next.spinners(HERE) == nth);
            counts = next;
        }
        let (next, spins) = counts.with_spinner(HERE);
        assert!(!spins && next.spinners(HERE) == Spins::MOST);
        assert_eq!(next.waiting(), Spins::MOST + 1);
    }

    #[test]
    fn spinners_of_the_parent_do_not_spin_in_the_child() {
        let (parents, _) = Counts(0).with_spinner(HERE);
        let (parents, _) = parents.with_spinner(HERE);
        let child = HERE + 1;
        assert_eq!((parents.spinners(HERE), parents.spinners(child)), (2, 0));
        let (childs, spins) = parents.with_spinner(child);
        assert!(spins && childs.spinners(child) == 1 && childs.spinners(HERE) == 0);
    }

    #[test]
    fn the_last_waiter_leaves_the_mark_of_those_moved_while_some_are() {
        let moving = Counts(0).with_waiter().with_grants(1).requeuing_in(HERE);
        let left = Counts(moving.0 | Counts::REQUEUED).without_waiter(true);
        assert!(left.is_requeued(), "a sleeper may be moved to the mutex yet");
        assert!(!left.without_requeuing().is_requeued(), "no thread is left to be moved");
    }

    #[test]
    fn what_the_parent_requeues_the_child_does_not() {
        let parents = Counts(0).with_waiter().with_grants(1).requeuing_in(HERE);
        let child = HERE + 1;
        assert!(parents.is_requeuing_in(HERE) && !parents.is_requeuing_in(child));
        let (childs, _) = parents.with_spinner(child);
        assert!(!childs.is_requeuing() && childs.waiting() == 2);
        assert!(parents.requeuing_in(child).is_requeuing_in(child));
    }

    #[test]
    fn the_parts_do_not_touch() {
        let full = (0..Counts::MAX).fold(Counts(0), |counts, _| counts.with_waiter());
        assert_eq!((full.waiting(), full.granted(), full.epoch()), (Counts::MAX, 0, 0));
        let notified = full.with_grants(Counts::MAX).requeuing_in(HERE);
        assert_eq!((notified.waiting(), notified.granted(), notified.epoch()), (Counts::MAX, Counts::MAX, 1));
        assert!(notified.is_requeuing_in(HERE) && !notified.is_requeued() && notified.spinning() == 0);
        let last = Counts(u64::MAX << Counts::EPOCH_SHIFT).with_grants(0);
        assert_eq!(last.0, 0, "the epoch wraps around");
    }
}
