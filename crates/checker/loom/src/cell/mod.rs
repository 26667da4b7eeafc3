//! As `core::cell`, with accesses that are checked.

mod unsafe_cell;

pub use unsafe_cell::{ConstPtr, MutPtr, UnsafeCell};

use core::cmp::Ordering;
use core::fmt;

/// As `core::cell::Cell`.
pub struct Cell<T>(UnsafeCell<T>);

impl<T> Cell<T> {
    /// A cell that holds `value`.
    #[track_caller]
    pub fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Sets the value.
    #[track_caller]
    pub fn set(&self, value: T) {
        drop(self.replace(value));
    }

    /// Exchanges the values of two cells.
    #[track_caller]
    pub fn swap(&self, other: &Self) {
        if core::ptr::eq(self, other) {
            return;
        }
        let (mine, theirs) = (self.0.get_mut(), other.0.get_mut());
        // SAFETY: exclusive by the checks of both cells, which are two.
        unsafe { core::mem::swap(mine.deref(), theirs.deref()) };
    }

    /// Sets the value and returns the one before.
    #[track_caller]
    pub fn replace(&self, value: T) -> T {
        // SAFETY: exclusive by the check of the cell; no reference is kept.
        self.0.with_mut(|place| unsafe { core::ptr::replace(place, value) })
    }

    /// The value.
    #[track_caller]
    pub fn get(&self) -> T
    where
        T: Copy,
    {
        // SAFETY: no thread writes, by the check of the cell.
        self.0.with(|place| unsafe { *place })
    }

    /// The value; its default is left in its place.
    #[track_caller]
    pub fn take(&self) -> T
    where
        T: Default,
    {
        self.replace(T::default())
    }

    /// The value, out of its cell.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: Default> Default for Cell<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for Cell<T> {
    #[track_caller]
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: Copy> Clone for Cell<T> {
    #[track_caller]
    fn clone(&self) -> Self {
        Self::new(self.get())
    }
}

impl<T: Copy + PartialEq> PartialEq for Cell<T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Copy + Eq> Eq for Cell<T> {}

impl<T: Copy + PartialOrd> PartialOrd for Cell<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.get().partial_cmp(&other.get())
    }
}

impl<T: Copy + Ord> Ord for Cell<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.get().cmp(&other.get())
    }
}

impl<T: Copy + fmt::Debug> fmt::Debug for Cell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cell").field("value", &self.get()).finish()
    }
}
