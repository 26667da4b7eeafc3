//! What a plain lock's meter knows of the calling thread: since when it waits, and since when it
//! holds which lock. The table of the thread has it, and only that thread uses it.

use crate::sums::Entry;
use core::cell::Cell;

/// How many held locks of a thread have stamps: the last ones. A hold may have no end here, as that
/// of a guard that was forgotten.
const MOST: usize = 64;

/// A hold: the lock, when it began in ticks, and where it is counted.
type Hold = (usize, u64, &'static Entry);

pub(crate) struct Stamps {
    /// The lock that the thread waits for, and since when.
    wait: Cell<Option<(usize, u64)>>,
    /// A stack; the place of a lock that was released out of order is empty.
    holds: [Cell<Option<Hold>>; MOST],
    height: Cell<usize>,
}

impl Stamps {
    pub const fn new() -> Self {
        Self { wait: Cell::new(None), holds: [const { Cell::new(None) }; MOST], height: Cell::new(0) }
    }

    pub fn begin_wait(&self, lock: usize, now: u64) {
        self.wait.set(Some((lock, now)));
    }

    /// Since when the thread has waited for `lock`. The wait has ended.
    pub fn end_wait(&self, lock: usize) -> Option<u64> {
        let (waited_for, began) = self.wait.take()?;
        (waited_for == lock).then_some(began)
    }

    pub fn begin_hold(&self, hold: Hold) {
        if self.height.get() == MOST {
            self.holds.windows(2).for_each(|places| places[0].set(places[1].get()));
            self.height.set(MOST - 1);
        }
        let height = self.height.get();
        self.holds[height].set(Some(hold));
        self.height.set(height + 1);
    }

    /// The last hold of `lock`, which ends.
    pub fn end_hold(&self, lock: usize) -> Option<Hold> {
        let holds = &self.holds[..self.height.get()];
        let index = holds.iter().rposition(|hold| hold.get().is_some_and(|hold| hold.0 == lock))?;
        let hold = holds[index].take();
        let height = holds.iter().rposition(|hold| hold.get().is_some()).map_or(0, |last| last + 1);
        self.height.set(height);
        hold
    }

    /// The thread ends.
    pub fn clear(&self) {
        self.wait.set(None);
        self.holds.iter().for_each(|hold| hold.set(None));
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
        let key = Key { class: &NAME, place: NAME.place, lock: 0, holder: None };
        let entry = Table::take("stamps").entry(&key);
        let stamps = Stamps::new();
        for (lock, began) in [(1, 10), (2, 20), (1, 30), (3, 40)] {
            stamps.begin_hold((lock, began, entry));
        }
        let end = |lock| stamps.end_hold(lock).map(|hold| hold.1);
        assert_eq!(
            [end(2), end(1), end(3), end(2), end(1), end(1)],
            [Some(20), Some(30), Some(40), None, Some(10), None]
        );
        // Of more holds than there is room for, the last have theirs.
        for lock in 0..70 {
            stamps.begin_hold((lock, lock as u64, entry));
        }
        assert_eq!([end(5), end(69), end(6)], [None, Some(69), Some(6)]);
        assert_eq!(stamps.height.get(), 63);
        stamps.clear();
        assert_eq!(end(7), None);
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
