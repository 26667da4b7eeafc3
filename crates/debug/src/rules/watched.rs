//! What a thread holds, before and after the poll of a future; `watch.rs` says what for.

use crate::seen::slot::Held;
use crate::seen::thread::{Record, indices};
use smallvec::SmallVec;
use ulocks_core::sync::Ordering::Relaxed;

/// The slots of a list that have an entry, with their turns.
pub(crate) type Turns = SmallVec<[(usize, u64); 4]>;

impl Record {
    /// What this thread holds now.
    pub fn turns(&self) -> Turns {
        indices(self.used.load(Relaxed)).map(|index| (index, self.slot(index).turn())).collect()
    }

    /// No inner watch has reported anything. Returns what is to be given to
    /// [`end_watch`](Self::end_watch).
    pub fn begin_watch(&self) -> u64 {
        self.owner_only.awaits.replace(0)
    }

    /// What this thread holds, did not hold at `before`, and no inner watch has reported.
    pub fn held_since(&self, before: &Turns) -> Vec<Held> {
        let reported = self.owner_only.awaits.get();
        let is_new = |index: &usize| {
            reported & 1 << index == 0 && !before.contains(&(*index, self.slot(*index).turn()))
        };
        let new: Vec<usize> = indices(self.used.load(Relaxed)).filter(is_new).collect();
        self.owner_only.awaits.set(new.iter().fold(reported, |all, index| all | 1 << index));
        new.into_iter().filter_map(|index| self.slot(index).read(&self.used, 1 << index)).collect()
    }

    /// The outer watch goes on.
    pub fn end_watch(&self, outer: u64) {
        self.owner_only.awaits.set(self.owner_only.awaits.get() | outer);
    }
}
