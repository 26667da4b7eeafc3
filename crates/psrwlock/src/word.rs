//! The words of a lock: who is inside, who is shut out, who waits.

use crate::class::{HANDLER, NAMES};
use core::fmt;
use ulocks_core::futex::Bits;

/// A value of the state word: a gate, five flags, and a count of readers for each class.
///
/// | bits | name | meaning | set by | cleared by |
/// |---|---|---|---|---|
/// | 0 to 2 | gate | classes below it are shut out; 0 is open, the number of classes is closed to all; seven, `NEXT`, is closed to all, too, and a writer spins for the lock | the owner, plus one at a time, or at once if nobody is inside; `NEXT` in place of closed by the writer that spins | the owner, on its release or when it gives up; a reader, if there is no owner |
/// | 3 | `OWNED` | somebody has the write side: it writes, waits for readers to leave, or holds an upgradable read lock | who takes it | that one |
/// | 4 | `DRAINING` | the owner sleeps, or is about to, until readers have left or have come in; with the gate at 0 or at `NEXT`, the owner is about to leave | the owner | the owner |
/// | 5 | `WRITERS` | writers may sleep | a writer, before it sleeps; a writer that has slept, with `OWNED` | a release, which then wakes one |
/// | 6 | `LOW` | readers below the top class may wait in line | a reader in line, before it sleeps | the owner, when the class is open and nobody is in line; and for a moment in a release |
/// | 7 | `TOP` | readers of the top class may wait in line | likewise | likewise |
/// | from 8 | counts | readers inside, class by class, and those that have just found it shut and are about to take themselves out | a reader, on its way in | that one, on its way out |
/// | 62, 63 | sleepers | how many writers sleep, or have slept and are on their way, three for more, modulo four: a hint; with four classes there is no room for it | a writer, before it sleeps, unless there are three | that one, when it is the owner or gives up |
///
/// Each flag may be stale when it is set, never when it is clear. The classes of a lock share the
/// bits from 8 on equally: four have 14 each, three 18, one 54.
///
/// Nothing rests on the number of sleepers. It says what `WRITERS` cannot say: whether a writer
/// sleeps for certain. A writer that has slept leaves that flag behind for others that it does not
/// know of. If there are none, the next that comes would take the flag at its word and sleep, too,
/// and so two threads would put each other to sleep for ever. The number is above the truth only if
/// a writer that slept was killed. It may be below the truth if more than three sleep at once: a
/// writer that finds three does not count itself, and of several that find two at the same time the
/// second takes the number back to zero, until the first of them leaves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct State(pub u64);

pub(crate) const GATE: u64 = 7;
/// Closed to all, and a writer spins for the lock.
const NEXT: u64 = GATE;
const COUNTS_SHIFT: u32 = 8;
const COUNTS_BITS: u32 = 56;
const SLEEPERS_BITS: u32 = 2;
const SLEEPERS_SHIFT: u32 = u64::BITS - SLEEPERS_BITS;

impl State {
    /// Free, and nobody waits.
    pub const UNLOCKED: Self = Self(0);
    /// One class more is shut out.
    pub(crate) const ONE_CLASS: u64 = 1;
    /// Somebody has the write side.
    pub const OWNED: u64 = 1 << 3;
    /// The owner sleeps.
    pub const DRAINING: u64 = 1 << 4;
    /// Writers may sleep.
    pub const WRITERS: u64 = 1 << 5;
    /// Readers below the top class may wait in line.
    pub const LOW: u64 = 1 << 6;
    /// Readers of the top class may wait in line.
    pub const TOP: u64 = 1 << 7;
    /// Readers may wait in line.
    pub(crate) const IN_LINE: u64 = Self::LOW | Self::TOP;

    #[inline(always)]
    pub(crate) const fn has(self, flags: u64) -> bool {
        self.0 & flags != 0
    }

    /// How many classes are shut out, the lowest ones.
    #[must_use]
    #[inline(always)]
    pub const fn gate(self) -> u32 {
        (self.0 & GATE) as u32
    }

    /// Whether a writer spins for what is being written.
    #[inline(always)]
    pub(crate) const fn is_next(self) -> bool {
        self.0 & GATE == NEXT
    }

    /// Whether the owner is about to leave: nobody may fall asleep. An owner that sleeps until
    /// readers have gone in looks the same, and so does one that is woken by the last reader, for a
    /// moment; a thread that does not sleep then loses nothing.
    #[inline(always)]
    pub(crate) const fn is_leaving(self) -> bool {
        self.has(Self::OWNED) && self.has(Self::DRAINING) && (self.0 & GATE == 0 || self.is_next())
    }

    /// The same with the gate at `gate`.
    #[inline(always)]
    pub(crate) const fn with_gate(self, gate: u32) -> Self {
        Self(self.0 & !GATE | gate as u64)
    }

    /// What is being written, with a writer that spins for it.
    #[inline(always)]
    pub(crate) const fn with_next(self) -> Self {
        Self(self.0 | NEXT)
    }

    /// Whether somebody has the write side.
    #[must_use]
    #[inline(always)]
    pub const fn is_owned(self) -> bool {
        self.has(Self::OWNED)
    }

    /// Whether there are no readers of any class inside.
    #[must_use]
    #[inline(always)]
    pub const fn has_no_readers(self) -> bool {
        self.0 >> COUNTS_SHIFT == 0
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(u64, &str); 5] = [
            (State::OWNED, "OWNED"),
            (State::DRAINING, "DRAINING"),
            (State::WRITERS, "WRITERS"),
            (State::LOW, "LOW"),
            (State::TOP, "TOP"),
        ];
        write!(f, "gate={}", self.gate())?;
        for (_, name) in NAMES.into_iter().filter(|&(flag, _)| self.has(flag)) {
            write!(f, "|{name}")?;
        }
        write!(f, " counts={:#x}", self.0 >> COUNTS_SHIFT)
    }
}

/// Where the classes of a set are in the state word. A class has an *index* there, its place among
/// those of the set.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    set: u8,
}

impl Layout {
    pub(crate) const fn of(set: u8) -> Self {
        assert!(set != 0 && set < 16, "a set of classes is made of BULK, URGENT, NESTED and HANDLER");
        assert!(set != HANDLER, "a lock that only signal handlers read needs a class of threads too");
        Self { set }
    }

    /// How many classes there are.
    #[inline(always)]
    pub(crate) const fn classes(self) -> u32 {
        self.set.count_ones()
    }

    /// Whether the class of this rank is among them.
    pub(crate) const fn contains(self, rank: u32) -> bool {
        self.set >> rank & 1 == 1
    }

    /// The index of the class of this rank.
    pub(crate) const fn index(self, rank: u32) -> u32 {
        (self.set & ((1 << rank) - 1)).count_ones()
    }

    /// What the class of this index is called.
    pub(crate) fn name(self, index: u32) -> &'static str {
        let of_set = (0..4).filter(|&rank| self.contains(rank));
        of_set.map(|rank| NAMES[rank as usize]).nth(index as usize).unwrap_or("?")
    }

    /// The index of the highest class of threads.
    #[inline(always)]
    pub(crate) const fn top(self) -> u32 {
        (self.set & !HANDLER).count_ones() - 1
    }

    /// Whether the class of this index is that of signal handlers.
    #[inline(always)]
    pub(crate) const fn is_handler(self, index: u32) -> bool {
        index > self.top()
    }

    /// How many classes are shut out, the lowest ones.
    #[inline(always)]
    pub(crate) const fn gate(self, state: State) -> u32 {
        if state.is_next() { self.classes() } else { state.gate() }
    }

    /// What is left without the mark of a writer that spins.
    #[inline(always)]
    pub(crate) const fn without_next(self, state: State) -> State {
        state.with_gate(self.gate(state))
    }

    #[inline(always)]
    const fn bits(self) -> u32 {
        let counts = if self.has_sleepers() { COUNTS_BITS - SLEEPERS_BITS } else { COUNTS_BITS };
        counts / self.classes()
    }

    /// Whether there is room for the number of writers that sleep.
    #[inline(always)]
    const fn has_sleepers(self) -> bool {
        COUNTS_BITS % self.classes() >= SLEEPERS_BITS || self.classes() < 3
    }

    /// What is left without the number of writers that sleep.
    #[inline(always)]
    pub(crate) const fn without_sleepers(self, state: State) -> State {
        if self.has_sleepers() { State(state.0 << SLEEPERS_BITS >> SLEEPERS_BITS) } else { state }
    }

    /// Whether there are no readers of any class inside.
    #[inline(always)]
    pub(crate) const fn has_no_readers(self, state: State) -> bool {
        self.without_sleepers(state).has_no_readers()
    }

    /// Whether a writer sleeps that nobody has been told to wake, as far as that can be told.
    #[inline(always)]
    pub(crate) const fn has_sleeper(self, state: State) -> bool {
        state.has(State::WRITERS) && (!self.has_sleepers() || state.0 >> SLEEPERS_SHIFT != 0)
    }

    /// One writer that sleeps. Nothing is above these bits, so that a sum that does not fit is one
    /// modulo four.
    pub(crate) const ONE_SLEEPER: u64 = 1 << SLEEPERS_SHIFT;

    /// Whether one writer more that sleeps can be counted.
    pub(crate) const fn counts_sleeper(self, state: State) -> bool {
        self.has_sleepers() && state.0 >> SLEEPERS_SHIFT < (1 << SLEEPERS_BITS) - 1
    }

    /// One reader of the class of this index.
    #[inline(always)]
    pub(crate) const fn one(self, index: u32) -> u64 {
        1 << (COUNTS_SHIFT + index * self.bits())
    }

    /// How many readers of the class of this index there are.
    #[inline(always)]
    pub(crate) const fn count(self, state: State, index: u32) -> u64 {
        state.0 >> (COUNTS_SHIFT + index * self.bits()) & ((1 << self.bits()) - 1)
    }

    /// What is set where readers are as many as are allowed, or more: half of what the count can
    /// hold.
    #[inline(always)]
    pub(crate) const fn full(self, index: u32) -> u64 {
        self.one(index) << (self.bits() - 1)
    }

    /// Whether a reader of the class of this index that found the word like this is inside.
    #[inline(always)]
    pub(crate) const fn admits(self, state: State, index: u32) -> bool {
        state.gate() <= index && !state.has(self.full(index))
    }

    /// The word of a lock that is being written and for which nobody waits.
    #[inline(always)]
    pub(crate) const fn written(self) -> State {
        State(State::OWNED | self.classes() as u64)
    }

    /// The flag of the line in which readers of the class of this index wait.
    #[inline(always)]
    pub(crate) const fn line(self, index: u32) -> u64 {
        if index > 0 && index == self.top() { State::TOP } else { State::LOW }
    }
}

/// What readers of the class of an index sleep with, what writers do, what the owner does, and what
/// a thread does that no other thread wakes.
pub(crate) const fn readers(index: u32) -> Bits {
    Bits::one(index)
}
pub(crate) const NOBODY: Bits = Bits::one(28);
/// The bit of a thread that waits for news of readers. Not that of the owner: a wake-up of one
/// owner must not go to a thread that holds old news.
pub(crate) const SIFTING: Bits = Bits::one(27);
/// The bit of a thread that waits for news of the write side.
pub(crate) const PENDING: Bits = Bits::one(29);
pub(crate) const WRITERS: Bits = Bits::one(30);
pub(crate) const OWNER: Bits = Bits::one(31);
/// The bits that the last reader of a class wakes.
pub(crate) const DRAINED: Bits = match Bits::new(OWNER.get() | SIFTING.get()) {
    Some(bits) => bits,
    None => OWNER,
};

/// A value of the second word: how many readers wait in each of the two lines, and how many writers
/// have gone past them.
///
/// | bits | name | changed by |
/// |---|---|---|
/// | 0 to 13 | low | a reader below the top class, as it joins the line and as it leaves it |
/// | 14 to 26 | top | a reader of the top class, likewise |
/// | 27 | `AWAITED`: a write in steps asks for the write side | see (Q) in [`pending`](crate::pending) |
/// | 28 to 30 | passed | the owner |
/// | 31 | `GRANTED`: the write side is kept, `OWNED`, for one of the writers that wait | a fair release, (K); the writer that takes it |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lines(pub(crate) u32);

impl Lines {
    const LOW_BITS: u32 = 14;
    const TOP_BITS: u32 = 13;
    /// A write in steps asks for the write side.
    pub(crate) const AWAITED: u32 = 1 << 27;
    pub(crate) const ONE_PASSED: u32 = 1 << 28;
    /// The write side is kept for one of the writers that wait.
    pub(crate) const GRANTED: u32 = 1 << 31;

    const fn shift(line: u64) -> u32 {
        if line == State::LOW { 0 } else { Self::LOW_BITS }
    }

    /// The most readers that may wait in the line of that flag at once; one more panics. Three
    /// quarters of the room: readers that are refused are counted for a moment, too.
    pub(crate) const fn limit(line: u64) -> u32 {
        if line == State::LOW { 12_000 } else { 6_000 }
    }

    /// One reader in the line of that flag.
    #[inline(always)]
    pub(crate) const fn one(line: u64) -> u32 {
        1 << Self::shift(line)
    }

    /// How many wait in the line of that flag.
    pub(crate) const fn waiting(self, line: u64) -> u32 {
        let bits = if line == State::LOW { Self::LOW_BITS } else { Self::TOP_BITS };
        self.0 >> Self::shift(line) & ((1 << bits) - 1)
    }

    /// Whether a write in steps asks for the write side.
    pub(crate) const fn is_awaited(self) -> bool {
        self.0 & Self::AWAITED != 0
    }

    /// Whether the write side is kept for one of the writers that wait.
    pub(crate) const fn is_granted(self) -> bool {
        self.0 & Self::GRANTED != 0
    }

    /// How many writers have gone past the lower line since somebody is in it.
    pub(crate) const fn passed(self) -> u32 {
        self.0 >> 28 & 7
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::{BULK, NESTED, URGENT};

    #[test]
    fn the_classes_of_a_set_do_not_overlap() {
        for set in 1..16_u8 {
            if set == HANDLER {
                continue;
            }
            let layout = Layout::of(set);
            let mut all = (State::TOP << 1) - 1;
            if layout.has_sleepers() {
                all |= !0 << SLEEPERS_SHIFT;
            }
            for index in 0..layout.classes() {
                let field = layout.full(index) | (layout.full(index) - layout.one(index));
                assert_eq!(all & field, 0, "set {set:#b}, class {index}");
                assert_eq!(layout.count(State(field), index), (1 << layout.bits()) - 1);
                all |= field;
            }
            assert!(layout.written().gate() == layout.classes() && layout.classes() <= 4);
        }
    }

    #[test]
    fn the_classes_of_a_lock_share_the_bits_equally() {
        let bits = |set| Layout::of(set).bits();
        // As the docs of `State` say; two bits are for sleepers, unless there are four classes.
        let four = BULK | URGENT | NESTED | HANDLER;
        assert_eq!([BULK, BULK | URGENT, BULK | URGENT | NESTED, four].map(bits), [54, 27, 18, 14]);
        for set in [BULK, BULK | URGENT, BULK | URGENT | NESTED, four] {
            let layout = Layout::of(set);
            let flags = State((State::TOP << 1) - 1);
            let sleepers = if layout.has_sleepers() { Layout::ONE_SLEEPER } else { 0 };
            assert!(layout.has_no_readers(State(flags.0 | sleepers)) && flags.has_no_readers());
            for index in 0..layout.classes() {
                let one = State(flags.0 | sleepers | layout.one(index));
                assert!(!layout.has_no_readers(one) && !one.has_no_readers(), "class {index}");
            }
        }
    }

    #[test]
    fn three_sleepers_stand_for_more() {
        for set in [BULK, BULK | URGENT, BULK | URGENT | NESTED] {
            let layout = Layout::of(set);
            let readers = (layout.full(0) - layout.one(0)) | layout.full(layout.classes() - 1);
            let mut state = State(readers);
            assert!(!layout.has_sleeper(State(readers | State::WRITERS)));
            for _ in 0..3 {
                assert!(layout.counts_sleeper(state));
                state = State(state.0 + Layout::ONE_SLEEPER);
                assert!(layout.has_sleeper(State(state.0 | State::WRITERS)) && !layout.has_sleeper(state));
                assert_eq!(layout.without_sleepers(state).0, readers);
            }
            assert!(!layout.counts_sleeper(state));
            // Of two that have found room for one.
            let none = State(state.0.wrapping_add(Layout::ONE_SLEEPER));
            assert_eq!(none.0, readers);
            assert_eq!(none.0.wrapping_sub(Layout::ONE_SLEEPER), state.0);
        }
        let four = Layout::of(BULK | URGENT | NESTED | HANDLER);
        assert!(!four.counts_sleeper(State::UNLOCKED) && four.has_sleeper(State(State::WRITERS)));
        assert!(!four.has_no_readers(State(four.one(3) << 12)), "that bit is a count's");
    }

    #[test]
    fn an_owner_that_leaves_is_not_one_that_waits_for_readers() {
        let layout = Layout::of(BULK | URGENT);
        let owner = State(State::OWNED | State::DRAINING);
        assert!(
            owner.is_leaving() && layout.written().with_next().0 | State::DRAINING == owner.with_next().0
        );
        assert!(owner.with_next().is_leaving());
        for gate in 1..=2 {
            assert!(!owner.with_gate(gate).is_leaving(), "it waits for readers of class {}", gate - 1);
        }
        assert!(!State(State::DRAINING).is_leaving() && !State(State::OWNED).is_leaving());
    }

    #[test]
    fn an_index_is_a_place_among_those_of_the_set() {
        let layout = Layout::of(BULK | NESTED | HANDLER);
        assert_eq!((layout.index(0), layout.index(2), layout.index(3)), (0, 1, 2));
        assert_eq!((layout.top(), layout.is_handler(1), layout.is_handler(2)), (1, false, true));
        assert_eq!((layout.line(0), layout.line(1)), (State::LOW, State::TOP));
        assert_eq!((layout.name(1), layout.name(2)), ("Nested", "Handler"));
        assert_eq!(Layout::of(URGENT).line(0), State::LOW, "a single class has no class above it");
    }

    #[test]
    fn debug_names_the_parts() {
        assert_eq!(format!("{:?}", State::UNLOCKED), "gate=0 counts=0x0");
        let state = State(2 | State::OWNED | State::LOW | 5 << 8);
        assert_eq!(format!("{state:?}"), "gate=2|OWNED|LOW counts=0x5");
    }

    #[test]
    fn who_is_next_is_no_class() {
        let layout = Layout::of(BULK | URGENT);
        let written = layout.written();
        assert!(!written.is_next() && written.with_next().is_next());
        assert_eq!(layout.gate(written.with_next()), 2);
        assert_eq!(layout.without_next(written.with_next()), written);
        assert_eq!(written.with_next().with_gate(0).0, State::OWNED);
        let four = Layout::of(BULK | URGENT | NESTED | HANDLER).written();
        assert!(!four.is_next() && !Layout::of(HANDLER | BULK).admits(four.with_next(), 1));
    }
}
