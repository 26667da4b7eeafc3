//! The walk along the robust list of a thread that has died.

use super::Kernel;
use crate::engine::{Key, Update, Width, Word};
use crate::explore::machine::Machine;
use crate::memory::Loc;
use crate::pi::{OWNER_DIED, TID_MASK, WAITERS};
use core::ptr::NonNull;
use core::sync::atomic::Ordering::{AcqRel, Relaxed};

/// The kernel follows a robust list no further (`ROBUST_LIST_LIMIT`).
const ROBUST_LIST_LIMIT: usize = 2_048;
/// The mark of a priority-inheriting lock in the address of an entry.
const PI: usize = 1;

/// How far the walk along a robust list has come.
pub(super) struct Walk {
    head: usize,
    offset: usize,
    pending: usize,
    entry: usize,
    count: usize,
}

impl Machine<'_, '_> {
    pub(super) fn set_robust_list(&mut self, head: usize) {
        let me = self.current();
        self.threads[me].linux.robust_list = Some(head);
    }

    /// The head is three words: the first entry, the distance from an entry to its futex word, and
    /// the pending entry. An entry begins with the address of the next; the last one's is the
    /// head's.
    pub(super) fn begin_walk(&mut self, head: usize) -> Walk {
        let offset = self.read_user(head + 8) as usize;
        let pending = self.read_user(head + 16) as usize & !PI;
        Walk { head, offset, pending, entry: self.read_user(head) as usize & !PI, count: 0 }
    }

    /// `exit_robust_list`: every lock on the list, then the one in `list_op_pending`. Comes to one
    /// of them, and returns the rest of the way.
    pub(super) fn walk(&mut self, thread: usize, mut walk: Walk) -> Option<Walk> {
        let Walk { head, offset, pending, .. } = walk;
        while walk.entry != head && walk.entry != 0 && walk.count < ROBUST_LIST_LIMIT {
            let entry = walk.entry;
            // The next one is read before this one's lock is given away.
            walk.entry = self.read_user(entry) as usize & !PI;
            walk.count += 1;
            if entry != pending {
                self.owner_died(thread, entry.wrapping_add(offset), false);
                return Some(walk);
            }
        }
        if pending != 0 {
            self.owner_died(thread, pending.wrapping_add(offset), true);
        }
        None
    }

    /// `handle_futex_death`.
    fn owner_died(&mut self, thread: usize, address: usize, pending: bool) {
        let word = user_word(address, Width::W32);
        let Some(loc) = self.loc_of(word) else { return };
        let holds = self.memory.newest(loc) as u32;
        let key = Key { address: self.canonical_address(address), private: false };
        if holds & TID_MASK == thread as u32 + 1 {
            // The kernel exchanges it with a full barrier: what the dead thread did is visible to
            // a thread that acquires.
            let change = |value: u64| Some(value & u64::from(WAITERS) | u64::from(OWNER_DIED));
            let update =
                Update { name: "exit", success: AcqRel, failure: Relaxed, weak: false, change: &change };
            let at = self.linux.died_at.expect("somebody has died");
            // A word that ended is no lock any more.
            let _ = self.memory.update(thread, loc, &update, at, &mut |_, _| 0);
            let woken = if holds & WAITERS != 0 { self.take(key, 1, u32::MAX) } else { Vec::new() };
            self.tell_kernel(thread, loc, "marks it OWNER_DIED", &woken);
        } else if pending && self.passes_on(holds) {
            // It died between its release and its wake-up, or between being woken and acquiring.
            let woken = self.take(key, 1, u32::MAX);
            self.tell_kernel(thread, loc, "passes its wake-up on", &woken);
        }
    }

    /// Whether the kernel wakes a waiter for a dead thread whose pending lock holds `holds`, which
    /// does not name that thread.
    fn passes_on(&self, holds: u32) -> bool {
        let is_free = holds & TID_MASK == 0;
        match self.config.kernel {
            Kernel::V6_18 => is_free,
            Kernel::V7_2 => is_free || holds & WAITERS == 0,
        }
    }

    fn tell_kernel(&mut self, thread: usize, loc: Loc, what: &str, woken: &[usize]) {
        let name = self.word_name(loc);
        let steps = self.steps();
        if let Some(story) = &mut self.story {
            let text =
                format!("is dead; the kernel finds {name} on its robust list, {what}, wakes {woken:?}");
            story.tell_without_place(steps, thread, text);
        }
    }

    /// What the kernel reads at `address`: the newest value of the atomic that is there.
    fn read_user(&mut self, address: usize) -> u64 {
        self.moves_on();
        self.peek(user_word(address, Width::W64))
    }
}

/// The word at an address that a thread gave to the kernel.
fn user_word(address: usize, width: Width) -> Word {
    let bytes = NonNull::new(core::ptr::with_exposed_provenance_mut(address));
    Word::new(bytes.expect("a robust list contains the null pointer"), width)
}
