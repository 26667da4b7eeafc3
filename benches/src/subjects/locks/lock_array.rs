//! Locks outside a trial, for benches and tests in one process.

use super::{Lock, Scope};
use anyhow::Result;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::{self, NonNull};

/// Some locks on the heap, each on lines of its own as in a trial.
#[derive(Debug)]
pub struct LockArray<L: Lock> {
    first: NonNull<Spaced<L>>,
    /// How many have been placed.
    len: usize,
    layout: Layout,
}

#[derive(Debug)]
#[repr(align(128))]
struct Spaced<L>(L);

// SAFETY: it gives out shared references to the locks only, and those are `Sync`.
unsafe impl<L: Lock> Sync for LockArray<L> {}

impl<L: Lock> LockArray<L> {
    /// Creates `len` locks.
    pub fn new(scope: Scope, len: usize) -> Result<Self> {
        // No lock is no bytes, but an allocation must have some.
        let bytes = Layout::array::<Spaced<L>>(len)?.size().max(128);
        let layout = Layout::from_size_align(bytes, align_of::<Spaced<L>>())?;
        // SAFETY: the size is not zero.
        let memory = unsafe { alloc_zeroed(layout) };
        let Some(first) = NonNull::new(memory.cast()) else { handle_alloc_error(layout) };
        let mut array = Self { first, len: 0, layout };
        while array.len < len {
            // SAFETY: the memory is writable and aligned for a lock, which stays there until
            // `drop`.
            unsafe { L::place(ptr::addr_of_mut!((*array.first.as_ptr().add(array.len)).0), scope)? };
            array.len += 1;
        }
        Ok(array)
    }

    /// The lock number `index`.
    pub fn get(&self, index: usize) -> &L {
        assert!(index < self.len, "there are {} locks", self.len);
        // SAFETY: so many have been placed.
        unsafe { &(*self.first.as_ptr().add(index)).0 }
    }
}

impl<L: Lock> Drop for LockArray<L> {
    fn drop(&mut self) {
        // SAFETY: `new` placed so many locks in memory of this layout, and no thread borrows them
        // now.
        unsafe {
            for index in 0..self.len {
                ptr::drop_in_place(self.first.as_ptr().add(index));
            }
            dealloc(self.first.as_ptr().cast(), self.layout);
        }
    }
}
