//! The two words of a throughput mutex: whether it is held and which waiter to wake, and the queue.

use core::fmt;
use ulocks_core::futex::Bits;

/// A value of the first word: four flags, and a hint.
///
/// | bits | name | meaning | set by | cleared by |
/// |---|---|---|---|---|
/// | 0 | `LOCKED` | held | an acquisition | the holder |
/// | 1 | `MARKED` | an outsider may be asleep; may be stale when set, never when clear | an outsider that is about to sleep, or has slept | an acquisition: the release before it has woken an outsider, or the head waiter |
/// | 2 | `ASLEEP` | the head waiter may be asleep | the head waiter | an acquisition: the release before it has woken the head waiter |
/// | 3 | `RESERVED` | only the head waiter may acquire | the head waiter | the head waiter, as it acquires or leaves |
/// | 16 to 31 | hint | the number of a CPU plus one; zero is unknown | an acquisition after spinning or sleeping; the head waiter, with `RESERVED` | any other acquisition |
///
/// The hint of a reserved mutex says where the head waiter sleeps. That of another says where the
/// holder acquired.
///
/// Flags that are set while the mutex is held stay set at the release. So a free word may be other
/// than zero. The next acquisition clears it.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ThroughputState(pub u32);

const HINT_SHIFT: u32 = 16;

/// The futex bit of outsiders, and of waiters that a condition variable requeues here.
pub(super) const OUTSIDE: Bits = Bits::one(0);
/// The futex bit of the head waiter.
pub(super) const HEAD: Bits = Bits::one(1);

impl ThroughputState {
    /// Free, and no thread waits.
    pub const UNLOCKED: Self = Self(0);
    /// Held. Never set or clear by mistake: it is the exclusion.
    pub const LOCKED: u32 = 1 << 0;
    /// An outsider may be asleep. May be set although none sleeps. Never clear on a mutex that is
    /// not open while one sleeps, unless a wake-up or a debtor is on its way (invariant 5).
    pub const MARKED: u32 = 1 << 1;
    /// The head waiter may be asleep. May be set although it is awake. Never clear on a locked
    /// mutex while it sleeps, unless a wake-up for it is on its way (invariant 4).
    pub const ASLEEP: u32 = 1 << 2;
    /// Only the head waiter may acquire. Never set without a head waiter that acquires or clears
    /// it; may be clear although the head waiter is due.
    pub const RESERVED: u32 = 1 << 3;

    pub(super) const fn has(self, bits: u32) -> bool {
        self.0 & bits != 0
    }

    pub(super) const fn with(self, bits: u32) -> Self {
        Self(self.0 | bits)
    }

    pub(super) const fn without(self, bits: u32) -> Self {
        Self(self.0 & !bits)
    }

    /// Held by a thread on `cpu`, if that is known.
    pub(super) fn held_on(cpu: Option<u32>) -> Self {
        Self(Self::LOCKED).with_hint(cpu)
    }

    /// Reserved for a head waiter on `cpu`, if that is known.
    pub(super) fn reserved_on(self, cpu: Option<u32>) -> Self {
        self.with(Self::RESERVED).with_hint(cpu)
    }

    fn with_hint(self, cpu: Option<u32>) -> Self {
        let hint = cpu.map_or(0, |cpu| cpu.saturating_add(1));
        let flags = self.0 & ((1 << HINT_SHIFT) - 1);
        Self(flags | if hint <= u32::from(u16::MAX) { hint << HINT_SHIFT } else { 0 })
    }

    /// Whether a thread holds the mutex.
    #[must_use]
    pub const fn is_locked(self) -> bool {
        self.has(Self::LOCKED)
    }

    /// Whether only the head waiter may acquire.
    #[must_use]
    pub const fn is_reserved(self) -> bool {
        self.has(Self::RESERVED)
    }

    /// Whether a thread that is not the head waiter may acquire.
    pub(super) const fn is_open(self) -> bool {
        !self.has(Self::LOCKED | Self::RESERVED)
    }

    /// Whether the release of this word wakes a waiter.
    pub(super) const fn owes_wake(self) -> bool {
        self.has(Self::LOCKED) && self.has(Self::MARKED | Self::ASLEEP)
    }

    /// The CPU where the head waiter was when it reserved, or else where the holder was when it
    /// acquired, if that is known.
    #[must_use]
    pub const fn hint(self) -> Option<u32> {
        (self.0 >> HINT_SHIFT).checked_sub(1)
    }
}

impl fmt::Debug for ThroughputState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(u32, &str); 4] = [
            (ThroughputState::LOCKED, "LOCKED"),
            (ThroughputState::MARKED, "MARKED"),
            (ThroughputState::ASLEEP, "ASLEEP"),
            (ThroughputState::RESERVED, "RESERVED"),
        ];
        let mut separator = if self.is_locked() { "" } else { "UNLOCKED" };
        f.write_str(separator)?;
        for (_, name) in NAMES.into_iter().filter(|&(bit, _)| self.has(bit)) {
            write!(f, "{}{name}", if separator.is_empty() { "" } else { "|" })?;
            separator = "|";
        }
        match self.hint() {
            Some(cpu) if self.is_locked() => write!(f, " on {cpu}"),
            _ => Ok(()),
        }
    }
}

/// A value of the second word: the queue of waiters that were woken and found the mutex taken.
///
/// | bits | name | meaning |
/// |---|---|---|
/// | 0 to 15 | `head` | the ticket of the head waiter |
/// | 16 to 31 | `tail` | the next ticket to draw; the queue is empty if it is `head` |
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Queue(pub(super) u32);

/// A position in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket(u16);

impl Ticket {
    pub(super) const fn number(self) -> u16 {
        self.0
    }
}

impl Queue {
    pub(super) const fn head(self) -> Ticket {
        Ticket(self.0 as u16)
    }

    const fn tail(self) -> Ticket {
        Ticket((self.0 >> 16) as u16)
    }

    pub(super) const fn length(self) -> u16 {
        self.tail().0.wrapping_sub(self.head().0)
    }

    pub(super) fn is_head(self, ticket: Ticket) -> bool {
        self.length() > 0 && self.head() == ticket
    }

    /// One more waiter, and its ticket; `None` if the queue is full.
    pub(super) fn with_one_more(self) -> Option<(Self, Ticket)> {
        let tail = self.tail();
        let longer = Self(u32::from(tail.0.wrapping_add(1)) << 16 | u32::from(self.head().0));
        (self.length() < u16::MAX).then_some((longer, tail))
    }

    /// The queue, which is not empty, without its head.
    pub(super) fn without_head(self) -> Self {
        Self(self.0 & !0xffff | u32::from(self.head().0.wrapping_add(1)))
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {}", self.length(), self.head().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_first_in_first_out() {
        let (one, first) = Queue(0).with_one_more().unwrap();
        let (two, second) = one.with_one_more().unwrap();
        assert!(two.is_head(first) && !two.is_head(second) && two.length() == 2);
        let last = two.without_head();
        assert!(last.is_head(second) && !last.is_head(first) && last.length() == 1);
        let empty = last.without_head();
        assert!(empty.length() == 0 && !empty.is_head(second) && !empty.is_head(empty.head()));
        assert!(!Queue(0).is_head(first));
    }

    #[test]
    fn tickets_wrap_around() {
        let (mut queue, _) = Queue(0).with_one_more().unwrap();
        for _ in 0..150_000 {
            let (longer, ticket) = queue.with_one_more().unwrap();
            assert!(!longer.is_head(ticket) && longer.length() == 2);
            queue = longer.without_head();
            assert!(queue.is_head(ticket));
        }
    }

    #[test]
    fn a_full_queue_takes_no_waiter() {
        let mut queue = Queue(0xfffe_fffe);
        for _ in 0..u16::MAX {
            queue = queue.with_one_more().unwrap().0;
        }
        assert_eq!((queue.length(), queue.with_one_more()), (u16::MAX, None));
        assert_eq!(queue.head(), Ticket(0xfffe));
    }

    #[test]
    fn a_hint_is_a_cpu_or_nothing() {
        assert_eq!(ThroughputState::held_on(Some(0)).hint(), Some(0));
        assert_eq!(ThroughputState::held_on(Some(65_534)).hint(), Some(65_534));
        for unknown in [None, Some(65_535), Some(u32::MAX)] {
            assert_eq!(ThroughputState::held_on(unknown), ThroughputState(ThroughputState::LOCKED));
        }
    }

    #[test]
    fn a_reservation_replaces_the_hint_and_leaves_the_flags() {
        let held = ThroughputState::held_on(Some(3)).with(ThroughputState::MARKED);
        let reserved = held.reserved_on(Some(7));
        assert_eq!(reserved.hint(), Some(7));
        assert_eq!(reserved.0 & 0xffff, held.0 & 0xffff | ThroughputState::RESERVED);
        assert_eq!(held.reserved_on(None).hint(), None);
    }

    #[test]
    fn the_flags_say_whose_the_mutex_is() {
        use ThroughputState as Word;
        let flags = [Word::LOCKED, Word::MARKED, Word::ASLEEP, Word::RESERVED];
        assert_eq!(flags, [1, 2, 4, 8]);
        for word in (0..16).map(Word) {
            let has = |flag| word.0 & flag != 0;
            assert_eq!(word.is_locked(), has(Word::LOCKED));
            assert_eq!(word.is_reserved(), has(Word::RESERVED));
            assert_eq!(word.is_open(), !has(Word::LOCKED) && !has(Word::RESERVED));
            assert_eq!(word.owes_wake(), has(Word::LOCKED) && (has(Word::MARKED) || has(Word::ASLEEP)));
            for flag in flags {
                assert_eq!(word.with(flag).0, word.0 - (word.0 & flag) + flag, "{word:?} with {flag}");
                assert_eq!(word.without(flag).0, word.0 - (word.0 & flag), "{word:?} without {flag}");
            }
        }
        assert_eq!((OUTSIDE, HEAD), (Bits::one(0), Bits::one(1)));
    }

    #[test]
    fn debug_names_the_flags() {
        let text = |word: ThroughputState| format!("{word:?}");
        assert_eq!(text(ThroughputState::UNLOCKED), "UNLOCKED");
        assert_eq!(text(ThroughputState(ThroughputState::RESERVED)), "UNLOCKED|RESERVED");
        assert_eq!(
            text(ThroughputState::held_on(Some(3)).with(ThroughputState::MARKED)),
            "LOCKED|MARKED on 3"
        );
        let released = ThroughputState::held_on(Some(3)).without(ThroughputState::LOCKED);
        assert_eq!(text(released), "UNLOCKED");
        let (one, _) = Queue(0x7_0007).with_one_more().unwrap();
        assert_eq!(format!("{one:?}"), "1 from 7");
    }
}
