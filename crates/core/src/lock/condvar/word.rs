//! The counts of a condition variable: how many threads wait, how many of them spin, how many were
//! notified.

use crate::lock::spin::{PROBE, TRIES};
use core::fmt;

/// A value of the word `counts`.
///
/// | part | bits | law |
/// |---|---|---|
/// | `waiting` | 16 | threads between their registration and their leave, notified or not |
/// | `granted` | 16 | notifications given that no waiter has taken yet |
/// | `REQUEUING` | 1 | a notification may move sleepers to the mutex, and no waiter returns. Its grant sets the bit, and it clears it afterwards. Other notifications only wake meanwhile |
/// | `REQUEUED` | 1 | a thread may sleep on the mutex: every sleeper that leaves locks by `lock_requeued`. Set while `REQUEUING` is, cleared when no thread waits and `REQUEUING` is not set |
/// | `spinning` | 2 | waiters that spin: set by a registration, cleared by the same waiter before it sleeps or as it leaves |
/// | `process` | 2 | the process to which `spinning` and `REQUEUING` belong, see [`spin::process`](crate::spin::process) |
/// | `failed` | 5 | below `TRIES`: failed spins in a row. From `TRIES` on: waits since then that did not spin |
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
    /// The most waiters that spin at a time. On two CPUs one of them served 4 producers and 4
    /// consumers half as fast as three did.
    pub(super) const SPINNERS: u32 = 3;

    const ONE_WAITING: u64 = 1;
    const GRANTED_SHIFT: u32 = Self::FIELD_BITS;
    const ONE_GRANTED: u64 = 1 << Self::GRANTED_SHIFT;
    /// May be set after the last sleeper was moved, never clear while a notification may look at a
    /// mutex that it reached by `target`.
    const REQUEUING: u64 = 1 << 32;
    /// May be set although no waiter sleeps on the mutex, never clear while one does.
    pub(super) const REQUEUED: u64 = 1 << 33;
    const SPINNING_SHIFT: u32 = 34;
    const PROCESS_SHIFT: u32 = 36;
    const FAILED_SHIFT: u32 = 38;
    const EPOCH_SHIFT: u32 = 43;
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
        self.is_requeuing() && self.is_of(process)
    }

    fn is_of(self, process: u32) -> bool {
        self.field(Self::PROCESS_SHIFT, 3) == process & 3
    }

    /// As `process` finds it, which has none of the spinners and requeuers of its parent.
    fn seen_in(self, process: u32) -> Self {
        if self.is_of(process) {
            return self;
        }
        Self(self.0 & !Self::REQUEUING).with_field(Self::SPINNING_SHIFT, 3, 0).with_field(
            Self::PROCESS_SHIFT,
            3,
            process,
        )
    }

    pub(super) fn is_requeued(self) -> bool {
        self.0 & Self::REQUEUED != 0
    }

    pub(super) fn epoch(self) -> u32 {
        (self.0 >> Self::EPOCH_SHIFT) as u32
    }

    fn field(self, shift: u32, most: u32) -> u32 {
        (self.0 >> shift) as u32 & most
    }

    fn with_field(self, shift: u32, most: u32, value: u32) -> Self {
        Self(self.0 & !(u64::from(most) << shift) | u64::from(value & most) << shift)
    }

    /// How many spin, in whichever process.
    pub(super) fn spinning(self) -> u32 {
        self.field(Self::SPINNING_SHIFT, 3)
    }

    /// How many spin in `process`.
    pub(super) fn spinners(self, process: u32) -> u32 {
        if self.is_of(process) { self.spinning() } else { 0 }
    }

    fn failed(self) -> u32 {
        self.field(Self::FAILED_SHIFT, PROBE)
    }

    fn with_failed(self, failed: u32) -> Self {
        self.with_field(Self::FAILED_SHIFT, PROBE, failed)
    }

    pub(super) fn with_waiter(self) -> Self {
        Self(self.0 + Self::ONE_WAITING)
    }

    /// With a waiter that would spin in `process`, and whether it does.
    pub(super) fn with_spinner(self, process: u32) -> (Self, bool) {
        let next = self.with_waiter();
        if (TRIES..PROBE).contains(&self.failed()) {
            return (next.with_failed(self.failed() + 1), false);
        }
        let others = self.spinners(process);
        if others == Self::SPINNERS {
            return (next, false);
        }
        let next = next.seen_in(process);
        (next.with_field(Self::SPINNING_SHIFT, 3, others + 1), true)
    }

    /// Without a spinner, which was notified or whose spin failed.
    pub(super) fn without_spinner(self, notified: bool) -> Self {
        let failed = match self.failed() {
            _ if notified => 0,
            failed if failed >= TRIES => TRIES,
            failed => failed + 1,
        };
        // Zero only in a child whose one thread forked, in a signal handler, from inside of the
        // spin.
        self.with_field(Self::SPINNING_SHIFT, 3, self.spinning().saturating_sub(1)).with_failed(failed)
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
        assert_eq!((notified.failed(), notified.spinning(), notified.granted()), (0, 0, 0));
        assert!(notified.with_spinner(HERE).1);
    }

    #[test]
    fn only_so_many_spin() {
        let mut counts = Counts(0);
        for nth in 1..=Counts::SPINNERS {
            let (next, spins) = counts.with_spinner(HERE);
            assert!(spins && next.spinners(HERE) == nth);
            counts = next;
        }
        let (next, spins) = counts.with_spinner(HERE);
        assert!(!spins && next.spinners(HERE) == Counts::SPINNERS);
        assert_eq!(next.waiting(), Counts::SPINNERS + 1);
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
