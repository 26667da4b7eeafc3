//! A cell whose accesses last: from the call of a closure to its return, or as long as a pointer.

use core::fmt;
use std::sync::Arc;
use ulocks_vm::sync::Watch;

/// As `core::cell::UnsafeCell`, with accesses that are checked. An access begins and ends; two that
/// overlap, or that nothing orders, are an error unless both read.
pub struct UnsafeCell<T: ?Sized> {
    watch: Arc<Watch>,
    data: core::cell::UnsafeCell<T>,
}

/// Shared access to the data of an [`UnsafeCell`], which ends when this is dropped.
pub struct ConstPtr<T: ?Sized> {
    watch: Arc<Watch>,
    data: *const T,
}

/// Exclusive access to the data of an [`UnsafeCell`], which ends when this is dropped.
pub struct MutPtr<T: ?Sized> {
    watch: Arc<Watch>,
    data: *mut T,
}

/// A shared access that a panic ends. It may be caught.
struct Reading<'a>(&'a Watch);

/// An exclusive one.
struct Writing<'a>(&'a Watch);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.end_read();
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.end_write();
    }
}

impl<T> UnsafeCell<T> {
    /// A cell that holds `value`.
    #[track_caller]
    pub fn new(value: T) -> Self {
        Self { watch: Arc::new(Watch::new()), data: core::cell::UnsafeCell::new(value) }
    }

    /// The value, out of its cell.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    /// Shared access for the duration of `f`.
    #[track_caller]
    pub fn with<F, R>(&self, f: F) -> R
    where
        F: FnOnce(*const T) -> R,
    {
        self.watch.open_read();
        let unwinds = Reading(&self.watch);
        let result = f(self.data.get());
        core::mem::forget(unwinds);
        self.watch.close_read();
        result
    }

    /// Exclusive access for the duration of `f`.
    #[track_caller]
    pub fn with_mut<F, R>(&self, f: F) -> R
    where
        F: FnOnce(*mut T) -> R,
    {
        self.watch.open_write();
        let unwinds = Writing(&self.watch);
        let result = f(self.data.get());
        core::mem::forget(unwinds);
        self.watch.close_write();
        result
    }

    /// Shared access for as long as the pointer is kept.
    #[track_caller]
    pub fn get(&self) -> ConstPtr<T> {
        self.watch.open_read();
        ConstPtr { watch: Arc::clone(&self.watch), data: self.data.get() }
    }

    /// Exclusive access for as long as the pointer is kept.
    #[track_caller]
    pub fn get_mut(&self) -> MutPtr<T> {
        self.watch.open_write();
        MutPtr { watch: Arc::clone(&self.watch), data: self.data.get() }
    }
}

impl<T: ?Sized> ConstPtr<T> {
    /// The data.
    ///
    /// # Safety
    /// As `&*pointer`: the cell is alive, and no thread writes the data. (That one does is
    /// reported.)
    #[must_use]
    #[track_caller]
    pub unsafe fn deref(&self) -> &T {
        self.watch.touch_to_read();
        // SAFETY: the caller's promise.
        unsafe { &*self.data }
    }

    /// Calls `f` with the pointer.
    #[track_caller]
    pub fn with<F, R>(&self, f: F) -> R
    where
        F: FnOnce(*const T) -> R,
    {
        self.watch.touch_to_read();
        f(self.data)
    }
}

impl<T: ?Sized> MutPtr<T> {
    /// The data.
    ///
    /// # Safety
    /// As `&mut *pointer`: the cell is alive, no other reference to the data is used, and no other
    /// thread accesses it. (That one does is reported.)
    #[must_use]
    #[allow(clippy::mut_from_ref)] // loom's signature
    #[track_caller]
    pub unsafe fn deref(&self) -> &mut T {
        self.watch.touch_to_write();
        // SAFETY: the caller's promise.
        unsafe { &mut *self.data }
    }

    /// Calls `f` with the pointer.
    #[track_caller]
    pub fn with<F, R>(&self, f: F) -> R
    where
        F: FnOnce(*mut T) -> R,
    {
        self.watch.touch_to_write();
        f(self.data)
    }
}

// A pointer may outlive the release that lets others have the data, if it is not used any more.
impl<T: ?Sized> Drop for ConstPtr<T> {
    fn drop(&mut self) {
        self.watch.end_read();
    }
}

impl<T: ?Sized> Drop for MutPtr<T> {
    fn drop(&mut self) {
        self.watch.end_write();
    }
}

impl<T: Default> Default for UnsafeCell<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for UnsafeCell<T> {
    #[track_caller]
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized> fmt::Debug for UnsafeCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnsafeCell { .. }")
    }
}

impl<T: ?Sized> fmt::Debug for ConstPtr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConstPtr({:p})", self.data)
    }
}

impl<T: ?Sized> fmt::Debug for MutPtr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MutPtr({:p})", self.data)
    }
}
