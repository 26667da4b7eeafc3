//! What a thread's next operation touches, and which operations may change places.
//!
//! [`Exhaustive`](super::Exhaustive) leaves out an order of two operations if the other order leads
//! to the same states. The question it asks is one-sided. Suppose that at some state all executions
//! that begin with operation `a` have been tried, and now `e` of another thread runs instead. May
//! `a` still be left out after `e`? Yes, if every state that `e, a` leads to is also one that
//! `a, e` leads to, with whatever answers to their inner choices. [`is_covered`] and
//! [`is_covered_if_newest`] say when.
//!
//! # In the view machine: [`is_covered`]
//! An operation there may read an old message and a store may go to an earlier place, so that what
//! was done *first* forces little. On one word, with "covered" meaning that `a` may be left out
//! after `e`:
//!
//! | `a` left out \ `e` ran | `Read` | `Write` | `Update` |
//! |---|---|---|---|
//! | `Read` | covered: reads change no word | **no**: `e, a` may read what `e` wrote | **no**: likewise |
//! | `Write` | covered: after `a`, `e` may read an older message still | covered: the later one takes an earlier place | covered: after `a`, `e` may update an older message still |
//! | `Update` | covered: as `Write` | **no**: `e, a` may update what `e` wrote | **no**: likewise |
//!
//! `Read`, `Write` and `Update` of different words touch nothing in common. Which thread sees which
//! message, and which placements the axiom on sequentially consistent events allows, is a property
//! of the graph of events, not of the order in which the graph was built.
//!
//! An operation for which it matters what is the newest message at the time is no mere `Read` or
//! `Update`. The kernel's look at a futex has the footprint of a `Futex`. Operations of locks and
//! channels, and those of a thread that may not read old messages any more, are
//! [`Newest`](Footprint::Newest): they keep their order with all accesses of the word.
//!
//! # With newest values only: [`is_covered_if_newest`]
//! Loads read the newest message and stores go last, so the order of two operations on one word
//! matters unless both read.
//!
//! # In all of them
//! - [`Local`](Footprint::Local) and [`Fence`](Footprint::Fence) change places with everything: no
//!   other thread can tell when they happen. Where one of them can run, it is the only one that has
//!   to be tried.
//! - [`Futex`](Footprint::Futex) operations keep their order among themselves, and with any
//!   operation on the words they read or write.
//! - [`Clock`](Footprint::Clock) operations keep theirs among themselves and with `Futex`, whose
//!   deadlines pass.
//! - [`Everything`](Footprint::Everything) changes places with nothing but the first two.
//!
//! A footprint has to name all that an operation may touch, whatever it reads or is answered. Where
//! that is not known before it runs, it is `Everything`.
//!
//! Sources: A. Mazurkiewicz, *Trace Theory*, 1987. P. Godefroid, *Partial-Order Methods for the
//! Verification of Concurrent Systems*, LNCS 1032, 1996, chapter 5.

/// What one operation may touch. Words are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Footprint {
    /// Nothing that another thread can see or change.
    Local,
    /// Reads a word.
    Read(u32),
    /// Writes a word, and does not read it.
    Write(u32),
    /// Reads a word and may write it.
    Update(u32),
    /// Orders the accesses of its own thread.
    Fence,
    /// Reads the newest value of a word and may write it, or waits until it can.
    Newest(u32),
    /// Sleeps or wakes, and reads or writes these words. See [`Footprint::futex`].
    Futex { words: [Option<u32>; 2] },
    /// Reads the time, or lets it pass.
    Clock,
    /// Anything.
    Everything,
}

impl Footprint {
    /// A futex operation that reads or writes `words`; `Everything` if there are more than two.
    pub(crate) fn futex(words: &[u32]) -> Self {
        match *words {
            [] => Self::Futex { words: [None, None] },
            [word] => Self::Futex { words: [Some(word), None] },
            [first, second] => Self::Futex { words: [Some(first), Some(second)] },
            _ => Self::Everything,
        }
    }

    /// Whether no other thread can tell when it happens.
    pub(crate) fn is_invisible(self) -> bool {
        matches!(self, Self::Local | Self::Fence)
    }

    /// What is tried first: the invisible, then what leaves most to be left out after it.
    pub(super) fn turn(self) -> u8 {
        match self {
            Self::Local | Self::Fence => 0,
            Self::Write(_) => 1,
            Self::Update(_) => 2,
            Self::Newest(_) | Self::Futex { .. } | Self::Clock | Self::Everything => 3,
            Self::Read(_) => 4,
        }
    }

    /// The word of an access.
    fn word(self) -> Option<u32> {
        match self {
            Self::Read(word) | Self::Write(word) | Self::Update(word) | Self::Newest(word) => Some(word),
            _ => None,
        }
    }

    /// Whether the two touch nothing in common, so that each order gives the same states; two
    /// accesses of one word do.
    fn is_apart_from(self, other: Self) -> bool {
        use Footprint::{Clock, Everything, Fence, Futex, Local};
        match (self, other) {
            (Local | Fence, _) | (_, Local | Fence) => true,
            (Everything, _) | (_, Everything) => false,
            (Clock | Futex { .. }, Clock | Futex { .. }) => false,
            (Futex { words }, access) | (access, Futex { words }) => !words.contains(&access.word()),
            (Clock, _) | (_, Clock) => true,
            (one, another) => one.word() != another.word(),
        }
    }
}

/// Whether one order of two operations covers the other, as [`is_covered`] says.
pub(crate) type Relation = fn(left_out: Footprint, ran: Footprint) -> bool;

/// Whether, where `left_out` has been tried, it need not be tried again after `ran`: the view
/// machine, with stale reads and earlier places.
pub(crate) fn is_covered(left_out: Footprint, ran: Footprint) -> bool {
    use Footprint::{Read, Update, Write};
    left_out.is_apart_from(ran)
        || matches!(
            (left_out, ran),
            (Read(_) | Write(_) | Update(_), Read(_)) | (Write(_), Write(_) | Update(_))
        )
}

/// As [`is_covered`], where loads read the newest message and stores go last.
pub(crate) fn is_covered_if_newest(left_out: Footprint, ran: Footprint) -> bool {
    use Footprint::Read;
    left_out.is_apart_from(ran) || matches!((left_out, ran), (Read(_), Read(_)))
}

#[cfg(test)]
mod tests {
    use super::Footprint::{Clock, Everything, Fence, Local, Newest, Read, Update, Write};
    use super::*;

    fn all() -> Vec<Footprint> {
        let (none, one, two) = (Footprint::futex(&[]), Footprint::futex(&[1]), Footprint::futex(&[1, 2]));
        vec![
            Local,
            Fence,
            Read(1),
            Write(1),
            Update(1),
            Read(2),
            Write(2),
            Update(2),
            Newest(1),
            none,
            one,
            two,
            Clock,
            Everything,
        ]
    }

    /// The pairs `(left_out, ran)` that are covered, over all footprints; what changes places with
    /// everything aside.
    fn covered(relation: Relation) -> Vec<(Footprint, Footprint)> {
        let visible: Vec<_> = all().into_iter().filter(|footprint| !footprint.is_invisible()).collect();
        let pairs = visible.iter().flat_map(|&a| visible.iter().map(move |&b| (a, b)));
        pairs.filter(|&(a, b)| relation(a, b)).collect()
    }

    fn both_ways(pairs: &[(Footprint, Footprint)]) -> Vec<(Footprint, Footprint)> {
        pairs.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).collect()
    }

    fn apart() -> Vec<(Footprint, Footprint)> {
        let (none, one) = (Footprint::futex(&[]), Footprint::futex(&[1]));
        let accesses = |word| [Read(word), Write(word), Update(word)];
        let mut pairs = Vec::new();
        for a in accesses(1) {
            pairs.extend(accesses(2).map(|b| (a, b)));
            pairs.extend([(a, none), (a, Clock)]);
        }
        for a in accesses(2) {
            pairs.extend([(a, none), (a, one), (a, Clock), (a, Newest(1))]);
        }
        pairs.extend([(Newest(1), none), (Newest(1), Clock)]);
        both_ways(&pairs)
    }

    fn same(mut a: Vec<(Footprint, Footprint)>, mut b: Vec<(Footprint, Footprint)>) {
        let key = |pair: &(Footprint, Footprint)| format!("{pair:?}");
        a.sort_by_key(key);
        b.sort_by_key(key);
        assert_eq!(a, b);
    }

    #[test]
    fn with_newest_values_reads_change_places_and_what_is_apart_does() {
        let mut expected = apart();
        expected.extend([(Read(1), Read(1)), (Read(2), Read(2))]);
        same(covered(is_covered_if_newest), expected);
    }

    #[test]
    fn in_the_view_machine_a_write_covers_and_so_does_what_runs_before_a_mere_read() {
        let mut expected = apart();
        for word in [1, 2] {
            expected.extend([Read(word), Write(word), Update(word)].map(|left_out| (left_out, Read(word))));
            expected.extend([Write(word), Update(word)].map(|ran| (Write(word), ran)));
        }
        same(covered(is_covered), expected);
    }

    #[test]
    fn what_no_other_thread_can_see_changes_places_with_everything() {
        for relation in [is_covered, is_covered_if_newest] {
            for other in all() {
                for invisible in [Local, Fence] {
                    assert!(
                        relation(invisible, other) && relation(other, invisible),
                        "{invisible:?} {other:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn more_words_than_fit_are_everything() {
        assert_eq!(Footprint::futex(&[1, 2, 3]), Everything);
    }
}
