//! The words of a lock: which readers and writers are inside, which classes are closed, which
//! threads wait.

use crate::class::{HANDLER, NAMES};
use core::fmt;
use ulocks_core::futex::Bits;

/// A value of the state word: a closed level, five flags, and a count of readers for each class.
///
/// | bits | name | meaning | set by | cleared by |
/// |---|---|---|---|---|
/// | 0 to 2 | level | the classes below it are closed: 0 none, the number of classes all; seven, `LEAVING`: all, and the owner is about to leave; six, `ASKED`: the one class is closed once its readers have left | (close), (close all), (close asked); `LEAVING`: (announce); `ASKED`: (ask) | (unlock), (step down), (leave), (reopen); `LEAVING`: (leave); `ASKED`: (close asked), (reopen) |
/// | 3 | `OWNED` | a thread has the write side: it writes, waits for readers to leave, or is an upgradable reader | (own), (close all) | (unlock), (step down), (leave), (reopen) |
/// | 4 | `DRAINING` | the owner waits, perhaps asleep, until readers have left or entered; at level 0 or `LEAVING` the owner is about to leave | (flag), (announce) of the owner; a fair release | the owner; (leave) |
/// | 5 | `WRITERS` | writers may sleep | (flag), (own) of a writer | a release, which then wakes one |
/// | 6 | `LOW` | readers below the top class may be queued | (flag) of a queued reader | the owner, when the class is open and the queue empty; a release, for a moment |
/// | 7 | `TOP` | readers of the top class may be queued | likewise | likewise |
/// | from 8 | counts | for each class, readers inside, and readers that have found it closed and are about to leave | (arrive), (attempt), (count itself) | (depart) |
/// | 62, 63 | sleepers | how many writers sleep, or have slept and are about to take the lock, modulo four; three stands for more. A hint; with four classes there is no room for it | (count sleeper) | (count sleeper) |
///
/// A flag may be stale when it is set, never when it is clear. The classes of a lock share the bits
/// from 8 on equally: four have 14 each, three 18, one 54.
///
/// No invariant rests on the number of sleepers. It says what `WRITERS` cannot say: whether a
/// writer certainly sleeps. A writer that has slept sets that flag again for others that it does
/// not know of. If there are none, the next writer would believe the flag and sleep, too. So two
/// threads would put each other to sleep for ever.
///
/// The number is too high only if a sleeping writer was killed. It may be too low if more than
/// three sleep at once. A writer that finds three does not count itself. If several find two at the
/// same time, the second takes the number back to zero, until the first of them leaves.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct State(pub u64);

pub(crate) const LEVEL: u64 = 7;
/// All classes are closed, and the owner is about to leave. Exact: set and cleared by the owner.
const LEAVING: u64 = LEVEL;
/// The owner waits for readers, and further ones may join them: see `ReadersFirst`. May be set
/// although the last reader has left; never clear while one is inside that the owner waits for.
const ASKED: u64 = 6;
const COUNTS_SHIFT: u32 = 8;
const COUNTS_BITS: u32 = 56;
const SLEEPERS_BITS: u32 = 2;
const SLEEPERS_SHIFT: u32 = u64::BITS - SLEEPERS_BITS;

impl State {
    /// Free, and no thread waits.
    pub const UNLOCKED: Self = Self(0);
    /// One more class is closed.
    pub(crate) const ONE_CLASS: u64 = 1;
    /// A thread has the write side. Never clear while there is an owner; also set while a fair
    /// release keeps the write side for a writer (`GRANTED`).
    pub const OWNED: u64 = 1 << 3;
    /// The owner waits for readers, or is about to leave. May be set although the owner is awake;
    /// never clear while it sleeps, but in the stage of signal handlers, which wake nobody.
    pub const DRAINING: u64 = 1 << 4;
    /// Writers may sleep. May be set although none does. Clear while one sleeps only until the
    /// writer that a release has woken sets it again.
    pub const WRITERS: u64 = 1 << 5;
    /// Readers below the top class may be queued. May be set although none is. Clear while one
    /// sleeps only within a release that is about to wake it, and that sets it again.
    pub const LOW: u64 = 1 << 6;
    /// Readers of the top class may be queued. Stale as `LOW` may be.
    pub const TOP: u64 = 1 << 7;
    /// Readers may be queued.
    pub(crate) const QUEUED: u64 = Self::LOW | Self::TOP;

    #[inline(always)]
    pub(crate) const fn has(self, flags: u64) -> bool {
        self.0 & flags != 0
    }

    /// How many classes are closed, from the lowest on.
    #[must_use]
    #[inline(always)]
    pub const fn level(self) -> u32 {
        (self.0 & LEVEL) as u32
    }

    /// The change of a word at level 0 that makes it [asked](Self::is_asked).
    pub(crate) const ASK: u64 = ASKED;

    /// Whether the one class closes when its readers have left, and may be joined until then.
    #[inline(always)]
    pub(crate) const fn is_asked(self) -> bool {
        self.0 & LEVEL == ASKED
    }

    /// Whether the owner is about to leave, so that no thread may fall asleep on the event. An
    /// owner that sleeps until queued readers have entered looks the same.
    #[inline(always)]
    pub(crate) const fn is_leaving(self) -> bool {
        self.has(Self::OWNED) && self.has(Self::DRAINING) && matches!(self.0 & LEVEL, 0 | LEAVING)
    }

    /// This word with the level at `level`.
    #[inline(always)]
    pub(crate) const fn with_level(self, level: u32) -> Self {
        Self(self.0 & !LEVEL | level as u64)
    }

    /// Whether a thread has the write side.
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
        write!(f, "level={}", self.level())?;
        for (_, name) in NAMES.into_iter().filter(|&(flag, _)| self.has(flag)) {
            write!(f, "|{name}")?;
        }
        write!(f, " counts={:#x}", self.0 >> COUNTS_SHIFT)
    }
}

/// Where the classes of a set are in the state word. The *index* of a class is its position among
/// the classes of the set.
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

    /// The name of the class of this index.
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

    /// How many classes are closed, from the lowest on.
    #[inline(always)]
    pub(crate) const fn level(self, state: State) -> u32 {
        if state.level() >= ASKED as u32 { self.classes() } else { state.level() }
    }

    #[inline(always)]
    const fn bits(self) -> u32 {
        let counts = if self.has_sleepers() { COUNTS_BITS - SLEEPERS_BITS } else { COUNTS_BITS };
        counts / self.classes()
    }

    /// Whether there is room for the number of sleeping writers.
    #[inline(always)]
    const fn has_sleepers(self) -> bool {
        COUNTS_BITS % self.classes() >= SLEEPERS_BITS || self.classes() < 3
    }

    /// This word without the number of sleeping writers.
    #[inline(always)]
    pub(crate) const fn without_sleepers(self, state: State) -> State {
        if self.has_sleepers() { State(state.0 << SLEEPERS_BITS >> SLEEPERS_BITS) } else { state }
    }

    /// Whether there are no readers of any class inside.
    #[inline(always)]
    pub(crate) const fn has_no_readers(self, state: State) -> bool {
        self.without_sleepers(state).has_no_readers()
    }

    /// Whether a writer sleeps that no thread is about to wake, as far as the word can tell.
    #[inline(always)]
    pub(crate) const fn has_sleeper(self, state: State) -> bool {
        state.has(State::WRITERS) && (!self.has_sleepers() || state.0 >> SLEEPERS_SHIFT != 0)
    }

    /// One sleeping writer. These bits are the highest, so an overflowing sum is one modulo four.
    pub(crate) const ONE_SLEEPER: u64 = 1 << SLEEPERS_SHIFT;

    /// Whether one more sleeping writer can be counted.
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

    /// The bit of the count that is set from as many readers on as are allowed: half of its range.
    #[inline(always)]
    pub(crate) const fn full(self, index: u32) -> u64 {
        self.one(index) << (self.bits() - 1)
    }

    /// Whether a reader of the class of this index is inside, if it found this word.
    #[inline(always)]
    pub(crate) const fn admits(self, state: State, index: u32) -> bool {
        state.level() <= index && !state.has(self.full(index))
    }

    /// The same at `ASKED`: it joins those that are inside, or about to leave again.
    #[inline(always)]
    pub(crate) const fn joins(self, state: State) -> bool {
        state.is_asked() && !self.has_no_readers(state) && !state.has(self.full(0))
    }

    /// The word of a lock that is being written and for which no thread waits.
    #[inline(always)]
    pub(crate) const fn written(self) -> State {
        State(State::OWNED | self.classes() as u64)
    }

    /// The flag of the queue in which readers of the class of this index wait.
    #[inline(always)]
    pub(crate) const fn queue(self, index: u32) -> u64 {
        if index > 0 && index == self.top() { State::TOP } else { State::LOW }
    }
}

/// The futex bit of readers of the class of this index that sleep.
pub(crate) const fn readers(index: u32) -> Bits {
    Bits::one(index)
}
/// The bit of a sleeping writer.
pub(crate) const WRITERS: Bits = Bits::one(30);
/// The bit of an owner that waits.
pub(crate) const OWNER: Bits = Bits::one(31);

/// A value of the second word: how many readers are in each of the two queues, and whether the
/// write side is kept.
///
/// | bits | name | changed by |
/// |---|---|---|
/// | 0 to 13 | low | a reader below the top class, as it joins the queue and as it leaves it |
/// | 14 to 26 | top | a reader of the top class, likewise |
/// | 27 to 30 | row | the row of slots that the lock has, or 0 | set by a reader inside; cleared by an owner |
/// | 31 | `GRANTED`: the write side is kept, `OWNED`, for a waiting writer | set by a fair release; cleared by (take grant) |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Queues(pub(crate) u32);

impl Queues {
    const LOW_BITS: u32 = 14;
    const TOP_BITS: u32 = 13;
    /// The write side is kept for a waiting writer. Never set while a thread is the owner, but for
    /// the releasing thread until it has left.
    pub(crate) const GRANTED: u32 = 1 << 31;

    /// How many rows there are, with the number 0 of none.
    pub(crate) const ROWS: usize = 16;
    const ROW_SHIFT: u32 = Self::LOW_BITS + Self::TOP_BITS;
    /// The bits of the row.
    pub(crate) const ROW: u32 = (Self::ROWS as u32 - 1) << Self::ROW_SHIFT;

    /// The number of the row that the lock has, or zero.
    #[inline(always)]
    pub(crate) const fn row(self) -> u8 {
        ((self.0 & Self::ROW) >> Self::ROW_SHIFT) as u8
    }

    /// This word, which has no row, with that row.
    pub(crate) const fn with_row(self, number: u8) -> Self {
        Self(self.0 | (number as u32) << Self::ROW_SHIFT)
    }

    const fn shift(queue: u64) -> u32 {
        if queue == State::LOW { 0 } else { Self::LOW_BITS }
    }

    /// How many readers may be in the queue of that flag at once; one more panics. That is three
    /// quarters of the range: a reader that is refused is counted for a moment, too.
    pub(crate) const fn limit(queue: u64) -> u32 {
        if queue == State::LOW { 12_000 } else { 6_000 }
    }

    /// One reader in the queue of that flag.
    #[inline(always)]
    pub(crate) const fn one(queue: u64) -> u32 {
        1 << Self::shift(queue)
    }

    /// How many readers are in the queue of that flag.
    pub(crate) const fn waiting(self, queue: u64) -> u32 {
        let bits = if queue == State::LOW { Self::LOW_BITS } else { Self::TOP_BITS };
        self.0 >> Self::shift(queue) & ((1 << bits) - 1)
    }

    /// Whether the write side is kept for one of the writers that wait.
    pub(crate) const fn is_granted(self) -> bool {
        self.0 & Self::GRANTED != 0
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
            assert!(layout.written().level() == layout.classes() && layout.classes() <= 4);
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
            // Of two writers that have found room for one.
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
        let leaving = State(owner.0 | LEAVING);
        assert!(owner.is_leaving() && leaving.is_leaving() && layout.level(leaving) == 2);
        for level in 1..=2 {
            assert!(
                !owner.with_level(level).is_leaving(),
                "the owner waits for readers of class {}",
                level - 1
            );
        }
        assert!(!State(State::DRAINING).is_leaving() && !State(State::OWNED).is_leaving());
    }

    #[test]
    fn an_index_is_a_position_in_the_set() {
        let layout = Layout::of(BULK | NESTED | HANDLER);
        assert_eq!((layout.index(0), layout.index(2), layout.index(3)), (0, 1, 2));
        assert_eq!((layout.top(), layout.is_handler(1), layout.is_handler(2)), (1, false, true));
        assert_eq!((layout.queue(0), layout.queue(1)), (State::LOW, State::TOP));
        assert_eq!((layout.name(1), layout.name(2)), ("Nested", "Handler"));
        assert_eq!(Layout::of(URGENT).queue(0), State::LOW, "a single class has no class above it");
    }

    #[test]
    fn debug_names_the_parts() {
        assert_eq!(format!("{:?}", State::UNLOCKED), "level=0 counts=0x0");
        let state = State(2 | State::OWNED | State::LOW | 5 << 8);
        assert_eq!(format!("{state:?}"), "level=2|OWNED|LOW counts=0x5");
    }
}
