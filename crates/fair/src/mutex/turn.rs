//! What a waiter of the line is told, and the CPUs that it and the tender go by.

use core::fmt;

/// A value of [`Waiter::turn`](super::queue::Waiter::turn).
///
/// | part | bits | meaning | set by |
/// |---|---|---|---|
/// | [`Kind`] | 3 | where the waiter stands | the table in `queue.rs` says who |
/// | `home` | 12 | the CPU of its thread when that came into line, or last went to sleep | that thread |
/// | `holder` | 12 | of who is `CALLED`: the home of the waiter that was granted last | the tender |
///
/// Both CPUs are hints. They decide who is woken ahead and who spins; nobody's place or grant hangs
/// on them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn(pub(super) u32);

/// Where a waiter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Kind {
    /// In line, awake, and on its way to sleep.
    Waiting = 0,
    /// In line and called by a tender: it was awake then, or was woken, and is to be awake when its
    /// turn comes.
    Called = 1,
    /// Asleep, or about to be.
    Parked = 2,
    /// Its time is up; asleep, or about to be, until the tender answers by `Granted` or `Left`.
    Leaving = 3,
    /// It holds the mutex.
    Granted = 4,
    /// It is out of line, without the mutex.
    Left = 5,
}

const KIND_BITS: u32 = 3;
const CPU_BITS: u32 = 12;
const HOME_SHIFT: u32 = KIND_BITS;
const HOLDER_SHIFT: u32 = HOME_SHIFT + CPU_BITS;
const _: () = assert!(HOLDER_SHIFT + CPU_BITS <= u32::BITS && (Kind::Left as u32) < 1 << KIND_BITS);

impl Turn {
    /// Of who comes into line, on the CPU `home`.
    pub(super) fn waiting(home: Cpu) -> Self {
        Self(home.0 << HOME_SHIFT)
    }

    /// The same with the kind `kind`, for whoever is not called.
    pub(super) fn with(self, kind: Kind) -> Self {
        Self(kind as u32 | self.home().0 << HOME_SHIFT)
    }

    /// The same, called while the one who was granted last is at home on `holder`.
    pub(super) fn called(self, holder: Cpu) -> Self {
        Self(self.with(Kind::Called).0 | holder.0 << HOLDER_SHIFT)
    }

    /// Asleep, on the CPU `home`.
    pub(super) fn parked(home: Cpu) -> Self {
        Self::waiting(home).with(Kind::Parked)
    }

    /// Whether it stands there.
    pub(super) fn is(self, kind: Kind) -> bool {
        self.0 & ((1 << KIND_BITS) - 1) == kind as u32
    }

    /// The CPU of the waiter when it came, or last went to sleep.
    pub(super) fn home(self) -> Cpu {
        Cpu(self.0 >> HOME_SHIFT & Cpu::MASK)
    }

    /// Of who is called: the home of the waiter that was granted last. Unknown of others.
    pub(super) fn holder(self) -> Cpu {
        Cpu(self.0 >> HOLDER_SHIFT & Cpu::MASK)
    }
}

/// A CPU, perhaps unknown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Cpu(u32);

impl Cpu {
    const MASK: u32 = (1 << CPU_BITS) - 1;

    /// The CPU of this number. On a machine with more than 4,095 some share one, which makes the
    /// hint a worse one.
    pub(super) fn new(number: Option<u32>) -> Self {
        Self(number.map_or(0, |number| 1 + number % Self::MASK))
    }

    /// Whether it is known.
    pub(super) fn is_known(self) -> bool {
        self.0 != 0
    }

    /// Whether both are known, and the same.
    pub(super) fn is(self, other: Self) -> bool {
        self.is_known() && self == other
    }
}

impl fmt::Debug for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("?"),
            known => write!(f, "{}", known - 1),
        }
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Kind::{Called, Granted, Leaving, Left, Parked, Waiting};
        match [Waiting, Called, Parked, Leaving, Granted, Left].into_iter().find(|&kind| self.is(kind)) {
            Some(kind) => write!(f, "{kind:?} home={:?} holder={:?}", self.home(), self.holder()),
            None => write!(f, "{:#x}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_do_not_meet() {
        for (home, holder) in [(None, Some(4_094)), (Some(4_094), None), (Some(0), Some(1))]
            .map(|(a, b)| (Cpu::new(a), Cpu::new(b)))
        {
            let turn = Turn::parked(home).called(holder);
            assert!(turn.is(Kind::Called) && turn.home() == home && turn.holder() == holder);
            let turn = turn.with(Kind::Left);
            assert!(turn.is(Kind::Left) && turn.home() == home && turn.holder() == Cpu::new(None));
        }
        assert_eq!(Turn::waiting(Cpu::new(None)), Turn(0));
    }

    #[test]
    fn what_is_unknown_is_not_the_same() {
        assert!(Cpu::new(Some(3)).is(Cpu::new(Some(3))) && !Cpu::new(Some(3)).is(Cpu::new(Some(4))));
        assert!(!Cpu::new(None).is(Cpu::new(None)) && !Cpu::new(None).is(Cpu::new(Some(0))));
    }

    #[test]
    fn debug_names_the_parts() {
        let turn = Turn::parked(Cpu::new(Some(1)));
        assert_eq!(format!("{turn:?}"), "Parked home=1 holder=?");
        assert_eq!(format!("{:?}", turn.called(Cpu::new(Some(0)))), "Called home=1 holder=0");
        assert_eq!(format!("{:?}", Turn(7)), "0x7");
    }
}
