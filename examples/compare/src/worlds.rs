//! The same names in each tool's world. A program takes all of them from `super::world`.

pub mod loom;
pub mod shuttle;
pub mod std;
pub mod vm;

/// A cell whose accesses no library checks. Miri does.
#[derive(Debug)]
pub struct Unchecked<T>(core::cell::UnsafeCell<T>);

impl<T> Unchecked<T> {
    pub fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }

    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}
