//! Memory that has to be given back before an execution ends.

pub use std::alloc::Layout;

use std::cell::RefCell;
use std::collections::HashMap;
use ulocks_vm::alloc::outside;
use ulocks_vm::sync::Tracked;

std::thread_local! {
    /// What this execution has allocated, by address.
    static ALLOCATED: RefCell<HashMap<usize, Tracked>> = RefCell::default();
}

/// An execution begins.
pub(crate) fn begin() {
    // What the last one has left is in its report.
    let left = ALLOCATED.take();
    left.into_values().for_each(std::mem::forget);
}

/// As `std::alloc::alloc`.
///
/// # Safety
/// As `std::alloc::alloc`.
#[track_caller]
pub unsafe fn alloc(layout: Layout) -> *mut u8 {
    // SAFETY: the caller's promise.
    remember(unsafe { std::alloc::alloc(layout) })
}

/// As `std::alloc::alloc_zeroed`.
///
/// # Safety
/// As `std::alloc::alloc_zeroed`.
#[track_caller]
pub unsafe fn alloc_zeroed(layout: Layout) -> *mut u8 {
    // SAFETY: the caller's promise.
    remember(unsafe { std::alloc::alloc_zeroed(layout) })
}

#[track_caller]
fn remember(memory: *mut u8) -> *mut u8 {
    if !memory.is_null() {
        let tracked = Tracked::new("allocation");
        // The table outlives the execution.
        outside(|| ALLOCATED.with_borrow_mut(|allocated| allocated.insert(memory.addr(), tracked)));
    }
    memory
}

/// As `std::alloc::dealloc`.
///
/// # Safety
/// As `std::alloc::dealloc`.
///
/// # Panics
/// If `memory` is not from [`alloc`] or was given back already.
#[track_caller]
pub unsafe fn dealloc(memory: *mut u8, layout: Layout) {
    let tracked = ALLOCATED.with_borrow_mut(|allocated| allocated.remove(&memory.addr()));
    assert!(tracked.is_some(), "memory that was not allocated here, or was given back already");
    // SAFETY: the caller's promise.
    unsafe { std::alloc::dealloc(memory, layout) };
}

/// A value that has to be dropped before the execution ends.
#[derive(Debug)]
pub struct Track<T> {
    value: T,
    _tracked: Tracked,
}

impl<T> Track<T> {
    /// Tracks `value`.
    #[track_caller]
    #[must_use]
    pub fn new(value: T) -> Self {
        Self { value, _tracked: Tracked::new("tracked value") }
    }

    /// The value.
    pub fn get_ref(&self) -> &T {
        &self.value
    }

    /// The value, to change.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.value
    }

    /// The value, tracked no more.
    pub fn into_inner(self) -> T {
        self.value
    }
}
