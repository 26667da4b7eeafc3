//! Arrays of the virtual machine: memory of a run, which nobody truncates.

use super::Array;
use crate::layout::{Layout, MAGIC, NONE};
use ulocks_core::model::process::Region;
use ulocks_core::sync::Ordering::Relaxed;

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
    /// There is no table.
    pub fn forget(&self) {}

    /// What was mapped stays, for the run that ends.
    pub(super) fn blank(&self) {}

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
