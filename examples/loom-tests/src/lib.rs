//! A slot for one value that one thread fills and another takes, written for std and for loom as
//! loom's documentation advises.

#[cfg(not(loom))]
mod sync {
    pub(crate) use std::sync::atomic::{AtomicBool, Ordering};

    #[derive(Debug)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }
}

#[cfg(loom)]
mod sync {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::atomic::{AtomicBool, Ordering};
}

use sync::{AtomicBool, Ordering, UnsafeCell};

/// A slot for one value.
#[derive(Debug)]
pub struct Slot<T> {
    is_full: AtomicBool,
    value: UnsafeCell<Option<T>>,
    /// What a fill publishes with: `Release`, or a planted bug.
    publish: Ordering,
}

// SAFETY: one thread fills and one takes, by the callers' promises, and `is_full` orders the two.
unsafe impl<T: Send> Sync for Slot<T> {}

impl<T> Slot<T> {
    /// An empty slot.
    pub fn new() -> Self {
        Self::publishing_with(Ordering::Release)
    }

    /// An empty slot, with another ordering: for the test of a planted bug.
    pub fn publishing_with(publish: Ordering) -> Self {
        Self { is_full: AtomicBool::new(false), value: UnsafeCell::new(None), publish }
    }

    /// Fills the slot.
    ///
    /// # Safety
    /// Called once.
    pub unsafe fn fill(&self, value: T) {
        // SAFETY: the taker touches the value after it has seen `is_full`.
        self.value.with_mut(|place| unsafe { *place = Some(value) });
        self.is_full.store(true, self.publish);
    }

    /// Takes the value, if it is there.
    ///
    /// # Safety
    /// Called by one thread.
    pub unsafe fn take(&self) -> Option<T> {
        if !self.is_full.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: the filler does not touch the value after it has set `is_full`.
        self.value.with_mut(|place| unsafe { (*place).take() })
    }
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self::new()
    }
}
