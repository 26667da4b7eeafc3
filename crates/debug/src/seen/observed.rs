//! What the profile, the probes and the stacks see of a record: calls from `thread.rs`, at these
//! points. In a model there are none of these.

#[cfg(checking)]
use crate::rules::clock::{PROFILE, is_noted, is_wanted};
#[cfg(checking)]
use crate::seen::counting;
#[cfg(checking)]
use crate::seen::probes::{probe, probe_with_place};
use crate::seen::slot::{Held, Slot};
#[cfg(checking)]
use crate::seen::stacks;
#[cfg(checking)]
use crate::seen::thread::records;
use crate::seen::thread::{Record, Wait};

#[cfg(checking)]
impl Record {
    /// This thread has entered a lock.
    #[inline(always)]
    pub(crate) fn is_acquired(&self, held: &Held) {
        probe_with_place!(acquired, held);
    }

    /// This thread is about to remove the lock of a slot.
    #[inline(always)]
    pub(crate) fn is_released(&self, slot: &Slot) {
        probe!(ulocks, released, slot.lock());
    }

    /// This thread has entered a lock in that slot.
    #[inline(always)]
    pub(crate) fn has_entered(&self, index: usize, held: &Held) {
        self.is_acquired(held);
        if is_noted(held.since) {
            // A copy, so that no other acquisition needs the entry on the stack.
            let held = *held;
            self.note_entry(index, &held);
        }
    }

    /// This thread is about to remove the lock of that slot.
    #[inline(always)]
    pub(crate) fn is_about_to_leave(&self, index: usize, slot: &Slot) {
        self.is_released(slot);
        let since = slot.since();
        if is_noted(since) {
            self.note_leave(index, since);
        }
    }

    #[cold]
    #[inline(never)]
    fn note_leave(&self, index: usize, since: u64) {
        ulocks_profile::counting::released(index);
        stacks::drop_at(self, since);
    }

    #[cold]
    #[inline(never)]
    fn note_entry(&self, index: usize, held: &Held) {
        if is_wanted(PROFILE) {
            counting::acquired(index, held);
            if self.counting().has_waited() {
                self.keeps_others(held);
            }
        }
        stacks::keep(self, held.since, held.place);
    }

    /// This thread has waited, for what it has entered or before. If the lock was given to it,
    /// threads that began to wait meanwhile have seen no holder. If such a wait ends just now, the
    /// next wait of its thread may be put down to this holder.
    fn keeps_others(&self, held: &Held) {
        let is_kept = |wait: &Wait| {
            let join = held.access.is_shared() && wait.access.joins_readers();
            wait.instance == held.instance && held.access.blocks(wait.access) && !join
        };
        for record in records().filter(|record| record.waiting().is_some_and(|(wait, _)| is_kept(&wait))) {
            record.counting().is_kept_by(held.place);
        }
    }

    /// This thread is about to publish that it waits. A holder may release for a wait that it sees.
    #[inline]
    pub(crate) fn is_about_to_wait(&self, wait: &Wait) {
        if !self.is_handler() {
            let keeps = |held: &Held| held.instance == wait.instance && held.access.blocks(wait.access);
            // Readers do so only if a writer waits in front.
            let alone =
                |held: &Held| keeps(held) && !(held.access.is_shared() && wait.access.joins_readers());
            let find = |keeps: &dyn Fn(&Held) -> bool| {
                records().find_map(|record| Some(record.held().find(keeps)?.place))
            };
            self.counting().begin_wait(|| find(&alone).or_else(|| find(&keeps)));
        }
    }

    /// This thread has published that it waits.
    #[inline]
    pub(crate) fn has_begun_to_wait(&self, wait: &Wait) {
        probe_with_place!(wait_begin, wait);
        if !self.is_handler() {
            stacks::keep(self, wait.since, wait.place);
        }
    }

    /// This thread is about to publish that it waits no longer.
    #[inline]
    pub(crate) fn is_about_to_end_its_wait(&self) {
        let Some((wait, _)) = self.waiting() else { return };
        probe!(ulocks, wait_end, wait.lock);
        stacks::drop_at(self, wait.since);
        if let Some(began) = self.counting().end_wait() {
            self.counting().waited(&wait, began);
        }
    }
}

#[cfg(modelled)]
impl Record {
    pub(crate) fn has_entered(&self, _: usize, _: &Held) {}

    pub(crate) fn is_about_to_leave(&self, _: usize, _: &Slot) {}

    pub(crate) fn is_about_to_wait(&self, _: &Wait) {}

    pub(crate) fn has_begun_to_wait(&self, _: &Wait) {}

    pub(crate) fn is_about_to_end_its_wait(&self) {}
}
