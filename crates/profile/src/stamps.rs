//! What a thread waits for, and what it holds: since when, and where that is counted. The table of
//! the thread has it, and only that thread uses it.

use crate::sums::Entry;
use core::cell::Cell;

/// How many held locks of a thread have stamps. Further ones are acquired, and their holds are not
/// counted.
const MOST: usize = 64;

/// A hold, or what is left of one.
#[derive(Clone, Copy)]
struct Hold {
    /// The address of the lock; 0 if the hold has ended.
    lock: usize,
    /// When it began, in ticks.
    began: u64,
    /// Where it is counted. It stays, since the next hold is mostly another one of that lock.
    entry: Option<&'static Entry>,
}

pub(crate) struct Stamps {
    /// The lock that the thread waits for, and since when.
    wait: Cell<Option<(usize, u64)>>,
    /// A stack; the place of a lock that was released out of order is empty.
    holds: [Cell<Hold>; MOST],
    height: Cell<usize>,
}

impl Stamps {
    pub const fn new() -> Self {
        let holds = [const { Cell::new(Hold { lock: 0, began: 0, entry: None }) }; MOST];
        Self { wait: Cell::new(None), holds, height: Cell::new(0) }
    }

    pub fn begin_wait(&self, lock: usize, now: u64) {
        self.wait.set(Some((lock, now)));
    }

    /// Since when the thread has waited for `lock`. The wait has ended.
    pub fn end_wait(&self, lock: usize) -> Option<u64> {
        let (waited_for, began) = self.wait.take()?;
        (waited_for == lock).then_some(began)
    }

    /// Where the last hold at the height of the next one is counted.
    #[inline]
    pub fn last_entry(&self) -> Option<&'static Entry> {
        self.holds.get(self.height.get())?.get().entry
    }

    /// `lock` is no 0.
    #[inline]
    pub fn begin_hold(&self, lock: usize, began: u64, entry: &'static Entry) {
        let height = self.height.get();
        if let Some(place) = self.holds.get(height) {
            place.set(Hold { lock, began, entry: Some(entry) });
            self.height.set(height + 1);
        }
    }

    /// The last hold of `lock`, which ends: when it began, and where it is counted.
    #[inline]
    pub fn end_hold(&self, lock: usize) -> Option<(u64, &'static Entry)> {
        let holds = &self.holds[..self.height.get()];
        let index = holds.iter().rposition(|hold| hold.get().lock == lock)?;
        let hold = holds[index].get();
        holds[index].set(Hold { lock: 0, ..hold });
        let height = holds.iter().rposition(|hold| hold.get().lock != 0).map_or(0, |last| last + 1);
        self.height.set(height);
        Some((hold.began, hold.entry?))
    }

    /// The thread ends.
    pub fn clear(&self) {
        self.wait.set(None);
        self.holds.iter().for_each(|hold| hold.set(Hold { lock: 0, began: 0, entry: None }));
        self.height.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;
    use crate::sums::{Key, Table};

    #[test]
    fn holds_end_in_any_order() {
        static NAME: Name = Name::new("holds");
        let entry =
            Table::take("stamps").entry(&Key { class: &NAME, place: NAME.place, lock: 0, holder: None });
        let stamps = Stamps::new();
        for (lock, began) in [(1, 10), (2, 20), (1, 30), (3, 40)] {
            stamps.begin_hold(lock, began, entry);
        }
        let end = |lock| stamps.end_hold(lock).map(|hold| hold.0);
        assert_eq!(
            [end(2), end(1), end(3), end(2), end(1), end(1)],
            [Some(20), Some(30), Some(40), None, Some(10), None]
        );
        assert!(stamps.last_entry().is_some());
        for lock in 1..70 {
            stamps.begin_hold(lock, lock as u64, entry);
        }
        assert_eq!([end(64), end(65), end(1)], [Some(64), None, Some(1)]);
        assert_eq!(stamps.height.get(), 63);
        stamps.clear();
        assert_eq!(end(2), None);
    }

    #[test]
    fn a_wait_is_that_of_its_lock() {
        let stamps = Stamps::new();
        stamps.begin_wait(1, 10);
        assert_eq!(stamps.end_wait(2), None);
        assert_eq!(stamps.end_wait(1), None);
        stamps.begin_wait(1, 20);
        assert_eq!((stamps.end_wait(1), stamps.end_wait(1)), (Some(20), None));
    }
}
