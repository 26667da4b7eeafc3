//! The word of a fair mutex of one process: who came last, and three bits.

use super::queue::Waiter;
use core::fmt;
use core::ptr;

/// A value of the word.
///
/// | part | meaning | set by | cleared by |
/// |---|---|---|---|
/// | `LOCKED` | somebody holds the mutex | who takes the free word; who tends the queue, for the oldest waiter | the holder |
/// | `TENDED` | somebody works on the queue: the *tender* | a release, or a waiter that leaves | the tender |
/// | `LEAVERS` | a waiter whose time is up asks the tender to let it go | that waiter, while `TENDED` is set | the tender |
/// | the rest | the newest waiter, null if there is none | an arrival | the tender |
///
/// Zero is a free mutex with an empty queue. `TENDED` alone is one too, which a waiter that left is
/// about to let go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct State(pub(super) *mut Waiter);

const LOCKED: usize = 1;
const TENDED: usize = 2;
const LEAVERS: usize = 4;
const BITS: usize = LOCKED | TENDED | LEAVERS;
const _: () =
    assert!(align_of::<Waiter>() > BITS, "the bits are those that the address of a waiter leaves free");

impl State {
    /// Free, and nobody in line.
    pub(super) const FREE: Self = Self(ptr::null_mut());
    /// Held, and nobody in line.
    pub(super) const HELD: Self = Self(ptr::without_provenance_mut(LOCKED));

    fn has(self, bit: usize) -> bool {
        self.0.addr() & bit != 0
    }

    fn with(self, bits: usize) -> Self {
        Self(self.0.map_addr(|address| address | bits))
    }

    fn without(self, bits: usize) -> Self {
        Self(self.0.map_addr(|address| address & !bits))
    }

    /// Whether somebody holds the mutex. It is not free otherwise unless nobody is in line, either.
    pub(super) fn is_locked(self) -> bool {
        self.has(LOCKED)
    }

    /// Whether somebody works on the queue.
    pub(super) fn is_tended(self) -> bool {
        self.has(TENDED)
    }

    /// Whether a waiter asks to be let go.
    pub(super) fn has_leavers(self) -> bool {
        self.has(LEAVERS)
    }

    /// The newest waiter, or null.
    pub(super) fn newest(self) -> *const Waiter {
        self.without(BITS).0
    }

    /// The same with `waiter` as the newest; null for an empty queue.
    pub(super) fn with_newest(self, waiter: *const Waiter) -> Self {
        Self(waiter.cast_mut().map_addr(|address| address | (self.0.addr() & BITS)))
    }

    pub(super) fn locked(self) -> Self {
        self.with(LOCKED)
    }

    pub(super) fn unlocked(self) -> Self {
        self.without(LOCKED)
    }

    pub(super) fn tended(self) -> Self {
        self.with(TENDED)
    }

    pub(super) fn untended(self) -> Self {
        self.without(TENDED)
    }

    pub(super) fn asked_by_leavers(self) -> Self {
        self.with(LEAVERS)
    }

    pub(super) fn without_leavers(self) -> Self {
        self.without(LEAVERS)
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::FREE {
            return f.write_str("FREE");
        }
        let waiters = !self.newest().is_null();
        let parts = [
            (self.is_locked(), "LOCKED"),
            (self.is_tended(), "TENDED"),
            (self.has_leavers(), "LEAVERS"),
            (waiters, "WAITERS"),
        ];
        let mut separator = "";
        for (_, name) in parts.into_iter().filter(|&(set, _)| set) {
            write!(f, "{separator}{name}")?;
            separator = "|";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::turn::Cpu;
    use super::*;

    #[test]
    fn bits_and_address_do_not_meet() {
        let waiter = Waiter::new(Cpu::new(None));
        let word = State::HELD.with_newest(&raw const waiter).tended().asked_by_leavers();
        assert!(word.is_locked() && word.is_tended() && word.has_leavers());
        assert_eq!(word.newest(), &raw const waiter);
        assert_eq!(word.unlocked().untended().without_leavers().0.cast_const(), &raw const waiter);
        assert_eq!(word.with_newest(ptr::null()).untended().without_leavers(), State::HELD);
        assert_eq!(State::HELD.unlocked(), State::FREE);
        let free = State::FREE.with_newest(&raw const waiter);
        assert!(!free.is_locked() && !free.is_tended() && !free.has_leavers());
    }

    #[test]
    fn debug_names_the_parts() {
        let waiter = Waiter::new(Cpu::new(None));
        assert_eq!(format!("{:?}", State::FREE), "FREE");
        assert_eq!(
            format!("{:?}", State::HELD.tended().with_newest(&raw const waiter)),
            "LOCKED|TENDED|WAITERS"
        );
    }
}
