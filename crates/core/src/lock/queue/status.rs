//! What the thread of a queued node is told, and the CPUs that decide which waiter is woken ahead.

use core::fmt;

/// A value of [`Node::status`](super::Node::status).
///
/// | part | bits | meaning | set by |
/// |---|---|---|---|
/// | [`Kind`] | 3 | how far the wait has come | the table of `queue/mod.rs` says it |
/// | `last_cpu` | 12 | the CPU of the waiter when it queued, or last went to sleep, and whether it is bound to that | the waiter |
/// | `MOVED` | 1 | a notification has taken the waiter out of the queue of a condition variable. Its thread may clear it | the thread that has detached the node |
/// | `holder_cpu` | 12 | of a waiter that is `WokenAhead`: the last CPU of the granted waiter | the queue-lock holder |
/// | `LATE` | 1 | of a waiter that is `WokenAhead`: it was asleep, and has not looked since. Its thread clears it | the queue-lock holder |
/// | `TIRED` | 1 | of a waiter that is `Parked`: it has polled before, in vain | the waiter |
/// | `TASK` | 1 | the waiter is a task, and not answered | the task, at first |
/// | `TAKEN` | 1 | of a task that was answered: no other thread has its waker, or is about to take it | the thread that has answered a task that was `Parked`; a task that was polled meanwhile |
///
/// Both CPUs are hints; without a number one is unknown. With `LATE` and `TIRED` they decide which
/// waiter is woken ahead, and which spins. No position in the queue and no grant depends on them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Status(pub u32);

/// How far a wait has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// Queued and awake, on its way to sleep.
    Waiting = 0,
    /// Queued, and woken ahead if it slept: it is to be awake when its turn comes.
    WokenAhead = 1,
    /// Queued, and asleep or about to be.
    Parked = 2,
    /// Its time is up. It is asleep or about to be, until the answer.
    Leaving = 3,
    /// Detached with the mutex, or with its permits.
    Granted = 4,
    /// Detached without them.
    Removed = 5,
    /// Detached, as the candidate: it may contend, and no other waiter is woken meanwhile.
    Chosen = 6,
    /// Detached from a condition variable: it acquires the mutex as an arriving thread.
    Notified = 7,
}

const KIND_BITS: u32 = 3;
const CPU_BITS: u32 = 12;
const LAST_SHIFT: u32 = KIND_BITS;
const HOLDER_SHIFT: u32 = LAST_SHIFT + CPU_BITS;
const MOVED: u32 = 1 << (HOLDER_SHIFT + CPU_BITS);
const LATE: u32 = MOVED << 1;
const TIRED: u32 = LATE << 1;
const TASK: u32 = TIRED << 1;
const TAKEN: u32 = TASK << 1;
const _: () = assert!(TAKEN == 1 << 31 && (Kind::Notified as u32) < 1 << KIND_BITS);

impl Status {
    /// Of a thread that queues on the CPU `last`.
    pub fn waiting(last: Cpu) -> Self {
        Self(last.0 << LAST_SHIFT)
    }

    /// The same with the kind `kind`, which is not `WokenAhead`.
    pub fn with(self, kind: Kind) -> Self {
        Self(kind as u32 | self.last_cpu().0 << LAST_SHIFT | self.0 & (MOVED | TASK))
    }

    /// The same, woken ahead while a waiter is granted whose last CPU is `holder`.
    pub fn woken_ahead(self, holder: Cpu) -> Self {
        let late = if self.is(Kind::Parked) { LATE } else { self.0 & LATE };
        Self(self.with(Kind::WokenAhead).0 | holder.0 << HOLDER_SHIFT | late)
    }

    /// The same, after polls in vain.
    pub fn tired(self) -> Self {
        Self(self.0 | TIRED)
    }

    /// Whether a waiter that is granted now was to be awake, and sleeps again.
    pub fn is_tired(self) -> bool {
        self.is(Kind::Parked) && self.0 & TIRED != 0
    }

    /// Whether a waiter that is granted now was not woken, or does not run yet.
    pub fn is_late(self) -> bool {
        self.is(Kind::Parked) && !self.is_tired() && !self.is_task() || self.0 & LATE != 0
    }

    /// What a waiter that has woken up leaves of its status.
    pub fn not_late() -> u32 {
        !LATE
    }

    /// Asleep, or about to be, on the CPU `last`.
    pub fn parked(last: Cpu) -> Self {
        Self::waiting(last).with(Kind::Parked)
    }

    /// Of a task that is being polled, and has its waker.
    pub(super) fn polled() -> Self {
        Self(Kind::Waiting as u32 | TASK)
    }

    /// Of a task that waits to be woken, and has left its waker in its node.
    pub(super) fn unpolled() -> Self {
        Self(Kind::Parked as u32 | TASK)
    }

    /// The same answer to a task, whose waker is not in the hands of another thread any more.
    pub(super) fn taken(self) -> Self {
        Self(self.0 | TAKEN)
    }

    /// Whether the waiter is a task that is not answered.
    pub(super) fn is_task(self) -> bool {
        self.0 & TASK != 0
    }

    /// Whether the task is told its answer: no other thread will touch its node any more.
    pub(super) fn is_taken(self) -> bool {
        self.0 & TAKEN != 0
    }

    /// Whether a thread sleeps until the answer, or is about to.
    pub(super) fn is_asleep(self) -> bool {
        self.is(Kind::Parked) && !self.is_task() || self.is(Kind::Leaving)
    }

    /// Of a waiter that has detached its node itself.
    pub fn removed() -> Self {
        Self(Kind::Removed as u32)
    }

    /// The same, notified on a condition variable. A waiter that leaves is asleep, or about to be.
    pub fn moved(self) -> Self {
        let status = if self.is(Kind::Leaving) { self.with(Kind::Parked) } else { self };
        Self(status.0 | MOVED)
    }

    /// Whether the waiter was notified, and does not know that yet perhaps.
    pub fn is_moved(self) -> bool {
        self.0 & MOVED != 0
    }

    /// Whether its kind is `kind`.
    pub fn is(self, kind: Kind) -> bool {
        self.0 & ((1 << KIND_BITS) - 1) == kind as u32
    }

    /// Whether the thread that detached the node has answered.
    pub fn is_answer(self) -> bool {
        self.0 & ((1 << KIND_BITS) - 1) >= Kind::Granted as u32
    }

    /// The CPU of the waiter when it queued, or last went to sleep.
    pub fn last_cpu(self) -> Cpu {
        Cpu(self.0 >> LAST_SHIFT & Cpu::ALL)
    }

    /// Of a waiter that is woken ahead: the last CPU of the granted waiter. Otherwise unknown.
    pub fn holder_cpu(self) -> Cpu {
        Cpu(self.0 >> HOLDER_SHIFT & Cpu::ALL)
    }
}

/// A CPU, perhaps unknown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cpu(u32);

impl Cpu {
    const ALL: u32 = (1 << CPU_BITS) - 1;
    const BOUND: u32 = 1 << (CPU_BITS - 1);
    const MASK: u32 = Self::BOUND - 1;
    /// No CPU is known.
    pub const UNKNOWN: Self = Self(0);

    /// The CPU of this number. Beyond 2,047 CPUs some share a value, which makes the hint worse.
    pub fn new(number: Option<u32>) -> Self {
        number.map_or(Self::UNKNOWN, |number| Self(1 + number % Self::MASK))
    }

    /// The same, of a thread that may run on no other one.
    pub fn bound(self) -> Self {
        Self(self.0 | Self::BOUND)
    }

    /// Whether its thread may run on no other one.
    pub fn is_bound(self) -> bool {
        self.0 & Self::BOUND != 0
    }

    /// Whether it is known.
    pub fn is_known(self) -> bool {
        self.0 & Self::MASK != 0
    }

    /// Whether both are known, and the same.
    pub fn is(self, other: Self) -> bool {
        self.is_known() && self.0 & Self::MASK == other.0 & Self::MASK
    }
}

impl fmt::Debug for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 & Self::MASK {
            0 => f.write_str("?"),
            known => write!(f, "{}", known - 1),
        }
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Kind::{Chosen, Granted, Leaving, Notified, Parked, Removed, Waiting, WokenAhead};
        const KINDS: [Kind; 8] = [Waiting, WokenAhead, Parked, Leaving, Granted, Removed, Chosen, Notified];
        let moved = if self.is_moved() { "|MOVED" } else { "" };
        match KINDS.into_iter().find(|&kind| self.is(kind)) {
            Some(kind) => {
                write!(f, "{kind:?}{moved} last={:?} holder={:?}", self.last_cpu(), self.holder_cpu())
            }
            None => write!(f, "{:#x}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_do_not_meet() {
        for (last, holder) in [(None, Some(2_046)), (Some(2_046), None), (Some(0), Some(1))]
            .map(|(a, b)| (Cpu::new(a).bound(), Cpu::new(b)))
        {
            let status = Status::parked(last).woken_ahead(holder);
            assert!(
                status.is(Kind::WokenAhead) && status.last_cpu() == last && status.holder_cpu() == holder
            );
            assert!(status.is_late() && !status.is_tired() && status.woken_ahead(last).is_late());
            let tired = Status::parked(last).tired();
            assert!(tired.is_tired() && !tired.is_late() && tired.last_cpu() == last);
            assert!(tired.woken_ahead(holder).is_late() && !tired.woken_ahead(holder).is_tired());
            let looked = Status(status.0 & Status::not_late());
            assert!(!looked.is_late() && !looked.woken_ahead(last).is_late() && looked.is(Kind::WokenAhead));
            let moved = status.with(Kind::Leaving).moved();
            assert!(moved.is(Kind::Parked) && moved.is_moved() && moved.last_cpu() == last);
            assert!(moved.woken_ahead(holder).is_moved() && !status.is_moved());
            let status = status.with(Kind::Removed);
            assert!(
                status.is(Kind::Removed) && status.last_cpu() == last && status.holder_cpu() == Cpu::UNKNOWN
            );
        }
        assert_eq!(Status::waiting(Cpu::UNKNOWN), Status(0));
        let task = Status::unpolled();
        assert!(task.is(Kind::Parked) && task.is_task() && !task.is_asleep() && !task.is_late());
        assert!(task.with(Kind::Leaving).is_task() && task.with(Kind::Leaving).is_asleep());
        assert!(Status::polled().is(Kind::Waiting) && Status::polled().is_task());
        let taken = Status(Kind::Granted as u32).taken();
        assert!(taken.is(Kind::Granted) && taken.is_answer() && taken.is_taken() && !taken.is_task());
    }

    #[test]
    fn what_is_unknown_is_not_the_same() {
        let three = Cpu::new(Some(3));
        assert!(three.is(Cpu::new(Some(3))) && !three.is(Cpu::new(Some(4))));
        assert!(three.bound().is(three) && three.bound().is_bound() && !three.is_bound());
        assert!(!Cpu::UNKNOWN.is(Cpu::UNKNOWN) && !Cpu::UNKNOWN.is(Cpu::new(Some(0))));
    }

    #[test]
    fn debug_names_the_parts() {
        let status = Status::parked(Cpu::new(Some(1)));
        assert_eq!(format!("{status:?}"), "Parked last=1 holder=?");
        assert_eq!(format!("{:?}", status.woken_ahead(Cpu::new(Some(0)))), "WokenAhead last=1 holder=0");
    }
}
