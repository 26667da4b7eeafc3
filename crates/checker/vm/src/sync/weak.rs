//! Pointers that do not keep their value.

use super::arc::{Arc, Count};
use super::{fence, leaks};
use crate::engine::{self, At};
use core::fmt;
use core::panic::Location;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// As `std::sync::Weak`. One that is not dropped by the end of the execution is a leak: it keeps
/// the memory of the value, if not the value.
///
/// An upgrade is a step, and so is a drop. A clone is none, as that of an [`Arc`].
///
/// # Examples
/// ```
/// use ulocks_vm::explore::{Config, explore};
/// use ulocks_vm::sync::Arc;
/// use ulocks_vm::thread;
///
/// explore(Config::exhaustive(), || {
///     let value = Arc::new(1);
///     let weak = Arc::downgrade(&value);
///     let other = thread::spawn(move || weak.upgrade().map(|value| *value));
///     drop(value);
///     assert!(matches!(other.join().unwrap(), Some(1) | None));
/// });
/// ```
pub struct Weak<T: ?Sized> {
    data: std::sync::Weak<T>,
    /// None of a pointer that never had a value.
    count: Option<Counted>,
}

struct Counted {
    count: std::sync::Arc<Count>,
    leak: u64,
}

impl Counted {
    /// One pointer more.
    fn new(count: &std::sync::Arc<Count>, made: At) -> Self {
        count.weak.fetch_add(1, Relaxed);
        count.weak_made.fetch_add(1, Relaxed);
        Self { count: std::sync::Arc::clone(count), leak: leaks::begin("Weak", made) }
    }
}

impl<T> Weak<T> {
    /// A pointer to nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { data: std::sync::Weak::new(), count: None }
    }
}

impl<T: ?Sized> Weak<T> {
    pub(super) fn of(data: std::sync::Weak<T>, count: &std::sync::Arc<Count>, made: At) -> Self {
        Self { data, count: Some(Counted::new(count, made)) }
    }

    /// A pointer that keeps the value, if there is one still. Where it is not, nothing is known of
    /// what others did.
    #[track_caller]
    #[must_use]
    pub fn upgrade(&self) -> Option<Arc<T>> {
        let count = &self.count.as_ref()?.count;
        count.dropped.fetch_add(0, Relaxed);
        if count.pointers.load(Relaxed) == 0 {
            return None;
        }
        count.pointers.fetch_add(1, Relaxed);
        let data = self.data.upgrade().expect("a value that pointers keep");
        let strong = Arc::again(data, std::sync::Arc::clone(count));
        // Not before: a failed upgrade orders nothing, as std's.
        fence(Acquire);
        Some(strong)
    }

    /// How many pointers keep the value.
    #[track_caller]
    #[must_use]
    pub fn strong_count(&self) -> usize {
        self.count.as_ref().map_or(0, |counted| counted.count.ask_strong())
    }

    /// How many pointers do not, if it is kept.
    #[track_caller]
    #[must_use]
    pub fn weak_count(&self) -> usize {
        match &self.count {
            Some(counted) if counted.count.ask_strong() > 0 => counted.count.ask_weak(),
            _ => 0,
        }
    }

    /// Whether both point to one value, or both to none.
    #[must_use]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        self.data.ptr_eq(&other.data)
    }

    /// The address of the value, which may be gone.
    #[must_use]
    pub fn as_ptr(&self) -> *const T {
        self.data.as_ptr()
    }
}

impl<T: ?Sized> Clone for Weak<T> {
    #[track_caller]
    fn clone(&self) -> Self {
        let made = Location::caller();
        let count = self.count.as_ref().map(|counted| Counted::new(&counted.count, made));
        Self { data: self.data.clone(), count }
    }
}

impl<T: ?Sized> Drop for Weak<T> {
    fn drop(&mut self) {
        if let Some(Counted { count, leak }) = &self.count
            && engine::is_installed()
        {
            count.gone.fetch_add(1, Release);
            let is_last = count.weak.fetch_sub(1, Relaxed) == 1 && !count.has_value.load(Relaxed);
            leaks::end(*leak);
            if is_last {
                fence(Acquire);
            }
        }
    }
}

impl<T> Default for Weak<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: ?Sized> fmt::Debug for Weak<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(Weak)")
    }
}
