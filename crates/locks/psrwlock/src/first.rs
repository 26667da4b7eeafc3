//! Readers first: what [`ReadersFirst`](crate::ReadersFirst) changes. The steps and numbers are
//! those of [`raw`](super::raw).
//!
//! Such a lock has one class. Its owner does not close the class by (close) while readers are
//! inside. It asks for it, (ask): the level is `ASKED` then. Readers may join those that are inside
//! until the last of them has left. Then the class is closed, (close asked), by the thread that
//! finds it so.
//!
//! | step | from | to | by |
//! |---|---|---|---|
//! | (ask) | `OWNED`, `L = 0`, the queue is empty | `L = ASKED` | the owner, in place of (close) |
//! | (arrive), (attempt) | `ASKED`, with readers | one more: inside | a reader |
//! | (depart) and (close asked) | `ASKED`, one reader | none, `L = 1` | the last reader |
//! | (close asked) | `ASKED`, no readers | `L = 1` | the owner; a reader that is about to sleep |
//!
//! - *Exclusion.* The owner is alone at `L = 1` only. (close asked) is a CAS of a word without
//!   readers. A reader that finds other readers by (arrive) is counted before (close asked), which
//!   fails then. Its neighbours may all be about to leave again: it is inside all the same.
//! - *No reader sleeps behind readers.* A reader that is about to sleep at `ASKED` makes (close
//!   asked), or finds readers and joins them. So a reader falls asleep at `L = 1` only, where none
//!   is inside. Others come in when the class opens, and whoever opens it wakes the sleepers.
//! - *Writers get their turn* when the last reader leaves: it closes the class by the same step. A
//!   reader whose look came before (ask) leaves `ASKED` without readers behind. The next thread to
//!   come closes it: a reader that finds it so is about to leave again, and is the last then.
//! - At `ASKED` the level counts as 1 for all that lower it, and for sleepers.

use crate::configuration::{Configuration, Fairness};
use crate::raw::{ATTEMPTS, RawPsRwLock};
use crate::word::State;
use ulocks_core::sync;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};

impl<D: Configuration> RawPsRwLock<D> {
    /// Whether readers join those that are inside, whatever writers wait.
    pub(crate) const READERS_FIRST: bool = D::Fairness::READERS_FIRST;

    /// Whether a reader of the class of that index is inside, if it found this word.
    #[inline(always)]
    pub(crate) fn admits(was: State, index: u32) -> bool {
        Self::LAYOUT.admits(was, index) || (Self::READERS_FIRST && Self::LAYOUT.joins(was))
    }

    /// (depart) while an owner asks; or, without a look before, of the only reader of a lock that
    /// no other thread uses or waits for. False if neither is so: nothing has happened then.
    #[inline(always)]
    pub(crate) fn depart_first(&self, index: u32) -> bool {
        let only = Self::LAYOUT.one(index);
        match self.state.compare_exchange(only, State::UNLOCKED.0, Release, Relaxed) {
            Ok(_) => true,
            Err(was) => State(was).is_asked() && self.depart_asked(index),
        }
    }

    /// (depart) while an owner asks, and (close asked) if this is the last reader. False if other
    /// threads have changed the word each time, or no owner asks any more: nothing has happened
    /// then.
    #[cold]
    pub(crate) fn depart_asked(&self, index: u32) -> bool {
        let (event, address) = (self.event.key(), core::ptr::from_ref(self).addr());
        let mut was = self.look();
        for _ in 0..ATTEMPTS {
            if !was.is_asked() {
                return false;
            }
            let less = State(was.0 - Self::LAYOUT.one(index));
            let now = if Self::LAYOUT.has_no_readers(less) { less.with_level(Self::CLASSES) } else { less };
            match self.state.compare_exchange(was.0, now.0, Release, Relaxed) {
                Ok(_) => {
                    if was.has(State::DRAINING) {
                        Self::depart_last(event, address, was, index);
                    }
                    return true;
                }
                Err(other) => was = State(other),
            }
        }
        false
    }

    /// (close asked), unless there are readers. Whether the level is not `ASKED` any more.
    ///
    /// The owner comes after each reader that was inside: it acquires what the last one released by
    /// (depart), also if another thread has made (close asked).
    #[cold]
    pub(crate) fn close_asked(&self) -> bool {
        let mut was = self.look();
        while was.is_asked() {
            if !Self::LAYOUT.has_no_readers(was) {
                return false;
            }
            match self.state.compare_exchange(was.0, was.with_level(Self::CLASSES).0, Relaxed, Relaxed) {
                Ok(_) => break,
                Err(other) => was = State(other),
            }
        }
        sync::fence(Acquire); // (depart)
        true
    }
}
