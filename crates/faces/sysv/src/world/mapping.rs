//! Arrays of the virtual machine: memory of a run, which nobody truncates.

use super::{Array, RETIRED};
use crate::layout::{Layout, MAGIC, NONE};
use ulocks_core::model::process::Region;
use ulocks_core::sync::Ordering::{Relaxed, Release};
use ulocks_core::sync::{AtomicBool, UnsafeCell};

/// What the mapping of a run's array holds. The machine checks that all looks at it come before it
/// is blank.
#[derive(Debug, Default)]
pub struct Contents {
    is_blank: AtomicBool,
    blank: UnsafeCell<bool>,
}

// SAFETY: each thread that looks has a hold, and it is written once, when no user is left. That
// this is so is what a model tests.
unsafe impl Sync for Contents {}

ulocks_core::sync_static! {
    /// Of the one array of a run that is removed.
    pub static CONTENTS: Contents = Contents::default();
}

impl Contents {
    /// A look of a thread with a hold on the array.
    pub fn look(&self) {
        // SAFETY: says the hold.
        assert!(!self.blank.with(|blank| unsafe { *blank }), "the mapping is blank");
    }

    fn make_blank(&self) {
        if !self.is_blank.swap(true, Relaxed) {
            // SAFETY: no user is left, and no other thread comes here.
            self.blank.with_mut(|blank| unsafe { *blank = true });
        }
    }
}

/// A new array. It lives as long as the run.
pub fn make(nsems: usize, slots: usize) -> &'static Array {
    let layout = Layout::new(nsems, slots);
    let mapping = Region::new(layout.bytes).map();
    // SAFETY: the mapping is forgotten, so it stays for the run, and atomics that are all zero are
    // valid.
    let array = unsafe { Array::of_mapping(0, mapping.base(), layout) };
    core::mem::forget(mapping);
    let array: &'static Array = Box::leak(Box::new(array));
    array.head().journal.row.store(NONE, Relaxed);
    array.head().magic.store(MAGIC, Relaxed);
    array
}

impl Array {
    /// There is no table: the first thread that comes takes the array out.
    pub fn forget(&self) {
        if self.users.load(Relaxed) & RETIRED == 0 {
            self.retire();
        }
    }

    /// What was mapped stays, for the run that ends. The stores stand for one system call, so none
    /// sees that it is not removed before it sees that it is blank.
    pub(super) fn blank(&self) {
        CONTENTS.make_blank();
        self.head().magic.store(0, Release);
        self.head().removed.store(0, Release);
    }

    /// No memory is to be taken.
    ///
    /// # Errors
    /// None.
    pub fn populate_sleeper(&self, _: usize, _: usize) -> crate::sys::Answer<()> {
        Ok(())
    }

    /// The same.
    ///
    /// # Errors
    /// None.
    pub fn populate_row(&self, _: usize) -> crate::sys::Answer<()> {
        Ok(())
    }
}
