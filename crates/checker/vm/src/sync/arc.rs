//! A shared pointer of std's shape, whose counts order as std's do and whose leaks are reported.

use super::leaks;
use super::weak::Weak;
use super::{AtomicU64, fence};
use crate::engine::{self, At};
use crate::side::Side;
use core::borrow::Borrow;
use core::cmp::Ordering as Order;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::mem::ManuallyDrop;
use core::ops::Deref;
use core::panic::Location;
use core::pin::Pin;
use core::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::OnceLock;

/// As `std::sync::Arc`, with the ordering of its counts: what a thread did before it drops its
/// pointer is known to the thread that drops the last one. A pointer that is not dropped by the end
/// of the execution is a leak, which ends the run.
///
/// A drop is a step. A clone is none: it happens together with the step before it.
///
/// # Examples
/// ```
/// use ulocks_vm::explore::{Config, finds_bug_saying};
/// use ulocks_vm::sync::Arc;
///
/// finds_bug_saying("leak", Config::exhaustive(), || std::mem::forget(Arc::new(1)));
/// ```
pub struct Arc<T: ?Sized> {
    /// Dropped in `drop`, before the count may go.
    data: ManuallyDrop<std::sync::Arc<T>>,
    count: std::sync::Arc<Count>,
}

/// How many pointers there are. The number is for the machine alone, so it orders nothing.
pub(super) struct Count {
    pub(super) pointers: AtomicUsize,
    /// How many pointers do not keep the value.
    pub(super) weak: AtomicUsize,
    /// How many of the latter there ever were.
    pub(super) weak_made: AtomicUsize,
    /// Whether the value is there, or is being dropped. It keeps the memory as a weak pointer does.
    pub(super) has_value: AtomicBool,
    /// Into which drops of pointers that keep the value release, as into std's strong count.
    pub(super) dropped: AtomicU64,
    /// Into which drops of weak pointers and the end of the value release, as into std's weak
    /// count.
    pub(super) gone: AtomicU64,
    /// Unknown until there is a value.
    leak: OnceLock<u64>,
}

impl<T> Arc<T> {
    /// A pointer to `value`.
    #[track_caller]
    pub fn new(value: T) -> Self {
        Self::begin(std::sync::Arc::new(value), Location::caller())
    }

    /// A pinned pointer to `value`.
    #[track_caller]
    pub fn pin(value: T) -> Pin<Self> {
        let pointer = Self::begin(std::sync::Arc::new(value), Location::caller());
        // SAFETY: the value lies behind a `std::sync::Arc` of its own and is moved out of it only
        // by `try_unwrap`, which needs the unpinned pointer.
        unsafe { Pin::new_unchecked(pointer) }
    }

    /// A pointer to a value that has a weak one to itself, which cannot be upgraded before.
    #[track_caller]
    pub fn new_cyclic(make: impl FnOnce(&Weak<T>) -> T) -> Self {
        let at = Location::caller();
        let count = Count::new(0);
        let data = std::sync::Arc::new_cyclic(|weak| make(&Weak::of(weak.clone(), &count, at)));
        // From here on, upgrades succeed, and know what `make` did.
        count.dropped.fetch_add(1, Release);
        count.pointers.store(1, Relaxed);
        Self::begin_with(data, count, at)
    }

    /// The value, if this is the only pointer that keeps it.
    ///
    /// # Errors
    /// The pointer, if it is not.
    #[track_caller]
    pub fn try_unwrap(this: Self) -> Result<T, Self> {
        this.count.dropped.fetch_add(0, Relaxed);
        if this.count.pointers.load(Relaxed) != 1 {
            return Err(this);
        }
        this.count.end();
        fence(Acquire);
        let (data, count) = this.into_parts();
        Ok(Self::take_out(data, &count))
    }

    /// The value, of which the only pointer has gone.
    #[track_caller]
    fn take_out(data: std::sync::Arc<T>, count: &Count) -> T {
        let memory = count.had_weak().then(|| std::sync::Arc::downgrade(&data));
        let value = std::sync::Arc::try_unwrap(data).unwrap_or_else(|_| unreachable!("the only pointer"));
        if let Some(memory) = memory {
            count.end_value();
            drop(memory);
        }
        value
    }

    /// The value, if this is the only pointer. If all pointers go by this, one call gets it.
    #[track_caller]
    pub fn into_inner(this: Self) -> Option<T> {
        let (data, count) = this.into_parts();
        count.dropped.fetch_add(1, Release);
        if count.pointers.fetch_sub(1, Relaxed) != 1 {
            return None;
        }
        fence(Acquire);
        count.end();
        Some(Self::take_out(data, &count))
    }
}

impl<T: Clone> Arc<T> {
    /// The value, copied if there is another pointer. (std moves it if the others are weak.)
    #[track_caller]
    pub fn make_mut(this: &mut Self) -> &mut T {
        if !this.is_unique(Relaxed) {
            *this = Self::new((**this).clone());
        }
        // SAFETY: this is the only pointer.
        unsafe { &mut *std::sync::Arc::as_ptr(&this.data).cast_mut() }
    }
}

impl<T: ?Sized> Arc<T> {
    /// Makes a pointer of std's, for values that are unsized: `from_std(std::sync::Arc::new(x) as
    /// std::sync::Arc<dyn Trait>)`.
    ///
    /// # Panics
    /// If there is another pointer to the value.
    #[track_caller]
    #[must_use]
    pub fn from_std(mut pointer: std::sync::Arc<T>) -> Self {
        assert!(std::sync::Arc::get_mut(&mut pointer).is_some(), "the pointer is shared already");
        Self::begin(pointer, Location::caller())
    }

    #[track_caller]
    fn begin(data: std::sync::Arc<T>, at: At) -> Self {
        Self::begin_with(data, Count::new(1), at)
    }

    fn begin_with(data: std::sync::Arc<T>, count: std::sync::Arc<Count>, at: At) -> Self {
        let leak = *count.leak.get_or_init(|| leaks::begin("Arc", at));
        leaks::remember(leak, std::sync::Arc::as_ptr(&data).cast::<()>().addr(), &count);
        Self::again(data, count)
    }

    /// A pointer that is counted.
    pub(super) fn again(data: std::sync::Arc<T>, count: std::sync::Arc<Count>) -> Self {
        Self { data: ManuallyDrop::new(data), count }
    }

    /// A pointer that does not keep the value.
    #[track_caller]
    #[must_use]
    pub fn downgrade(this: &Self) -> Weak<T> {
        Weak::of(std::sync::Arc::downgrade(&this.data), &this.count, Location::caller())
    }

    /// How many pointers do not keep the value.
    #[track_caller]
    #[must_use]
    pub fn weak_count(this: &Self) -> usize {
        this.count.ask_weak()
    }

    /// How many pointers keep the value.
    #[track_caller]
    #[must_use]
    pub fn strong_count(this: &Self) -> usize {
        this.count.ask_strong()
    }

    /// The value, if this is the only pointer, weak ones included.
    #[track_caller]
    pub fn get_mut(this: &mut Self) -> Option<&mut T> {
        if this.is_unique(Acquire) { std::sync::Arc::get_mut(&mut this.data) } else { None }
    }

    /// Whether there is no other pointer. Weak ones are looked for first, by `order`.
    #[track_caller]
    fn is_unique(&self, order: Ordering) -> bool {
        let made = self.count.weak_made.load(Relaxed);
        if made > 0 {
            self.count.gone.fetch_add(0, order);
            if self.count.weak.load(Relaxed) > 0 {
                return false;
            }
        }
        self.count.dropped.fetch_add(0, Acquire);
        // If another made a weak one since, std would have had it wait, and seen that pointer.
        self.count.pointers.load(Relaxed) == 1 && self.count.weak_made.load(Relaxed) == made
    }

    /// Whether both point to one value.
    #[must_use]
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        std::sync::Arc::ptr_eq(&this.data, &other.data)
    }

    /// The address of the value.
    #[must_use]
    pub fn as_ptr(this: &Self) -> *const T {
        std::sync::Arc::as_ptr(&this.data)
    }

    /// The address of the value, in place of the pointer.
    #[must_use = "the pointer is leaked if it is not made again by `from_raw`"]
    pub fn into_raw(this: Self) -> *const T {
        std::sync::Arc::into_raw(this.into_parts().0)
    }

    /// The pointer of std, and the count, in which the pointer still counts.
    fn into_parts(self) -> (std::sync::Arc<T>, std::sync::Arc<Count>) {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is not dropped, so the data is taken once.
        let data = unsafe { ManuallyDrop::take(&mut this.data) };
        // SAFETY: likewise, the count.
        (data, unsafe { core::ptr::read(&raw const this.count) })
    }

    /// The pointer that `into_raw` took.
    ///
    /// # Safety
    /// As `std::sync::Arc::from_raw`.
    ///
    /// # Panics
    /// If there is no pointer to the value any more.
    #[track_caller]
    #[must_use]
    pub unsafe fn from_raw(ptr: *const T) -> Self {
        let count = leaks::find(ptr.cast::<()>().addr());
        let count = count.expect("`Arc::from_raw` of a value that no pointer of this execution points to");
        // SAFETY: by the caller's promise, `ptr` is from `into_raw`, which took it from a
        // `std::sync::Arc`.
        Self { data: ManuallyDrop::new(unsafe { std::sync::Arc::from_raw(ptr) }), count }
    }

    /// One pointer more.
    ///
    /// # Safety
    /// As `std::sync::Arc::increment_strong_count`.
    #[track_caller]
    pub unsafe fn increment_strong_count(ptr: *const T) {
        // SAFETY: the caller's promise.
        let this = unsafe { Self::from_raw(ptr) };
        let _ = Self::into_raw(this.clone());
        let _ = Self::into_raw(this);
    }

    /// One pointer less.
    ///
    /// # Safety
    /// As `std::sync::Arc::decrement_strong_count`.
    #[track_caller]
    pub unsafe fn decrement_strong_count(ptr: *const T) {
        // SAFETY: the caller's promise.
        drop(unsafe { Self::from_raw(ptr) });
    }
}

impl Count {
    #[track_caller]
    fn new(pointers: usize) -> std::sync::Arc<Self> {
        let (pointers, weak) = (AtomicUsize::new(pointers), AtomicUsize::new(0));
        // Its memory is no model's.
        let _side = Side::of_machine();
        std::sync::Arc::new(Self {
            pointers,
            weak,
            weak_made: AtomicUsize::new(0),
            has_value: AtomicBool::new(true),
            dropped: AtomicU64::new(0),
            gone: AtomicU64::new(0),
            leak: OnceLock::new(),
        })
    }

    /// How many pointers keep the value. A clone belongs to a step that touches no count.
    #[track_caller]
    pub(super) fn ask_strong(&self) -> usize {
        let at = Location::caller();
        engine::with(|engine| engine.ask(self.dropped.word(), false, at));
        self.pointers.load(Relaxed)
    }

    /// How many pointers do not keep it, likewise.
    #[track_caller]
    pub(super) fn ask_weak(&self) -> usize {
        let at = Location::caller();
        engine::with(|engine| engine.ask(self.gone.word(), false, at));
        self.weak.load(Relaxed)
    }

    /// Whether there ever was a weak pointer.
    fn had_weak(&self) -> bool {
        self.weak_made.load(Relaxed) > 0
    }

    /// The value has gone, of which there were weak pointers. The last pointer to go gives the
    /// memory back, and knows what all did.
    #[track_caller]
    fn end_value(&self) {
        self.gone.fetch_add(1, Release);
        self.has_value.store(false, Relaxed);
        if self.weak.load(Relaxed) == 0 {
            fence(Acquire);
        }
    }

    /// The last pointer goes.
    fn end(&self) {
        self.pointers.store(0, Relaxed);
        self.leak.get().copied().into_iter().for_each(leaks::end);
    }
}

impl<T: ?Sized> Deref for Arc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.data
    }
}

impl<T: ?Sized> Clone for Arc<T> {
    fn clone(&self) -> Self {
        self.count.pointers.fetch_add(1, Relaxed);
        Self { data: self.data.clone(), count: std::sync::Arc::clone(&self.count) }
    }
}

impl<T: ?Sized> Drop for Arc<T> {
    fn drop(&mut self) {
        let mut memory = None;
        if engine::is_installed() {
            self.count.dropped.fetch_add(1, Release);
            if self.count.pointers.fetch_sub(1, Relaxed) == 1 {
                memory = self.count.had_weak().then(|| std::sync::Arc::downgrade(&self.data));
                fence(Acquire);
                self.count.end();
            }
        }
        // SAFETY: this is the only place that drops it, and it is not used after.
        unsafe { ManuallyDrop::drop(&mut self.data) };
        if let Some(memory) = memory {
            self.count.end_value();
            drop(memory);
        }
    }
}

impl<T: Default> Default for Arc<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for Arc<T> {
    #[track_caller]
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T> From<Box<T>> for Arc<T> {
    #[track_caller]
    fn from(value: Box<T>) -> Self {
        Self::new(*value)
    }
}

impl From<&str> for Arc<str> {
    #[track_caller]
    fn from(value: &str) -> Self {
        Self::from_std(value.into())
    }
}

impl<T> From<Vec<T>> for Arc<[T]> {
    #[track_caller]
    fn from(value: Vec<T>) -> Self {
        Self::from_std(value.into())
    }
}

impl<T: ?Sized> AsRef<T> for Arc<T> {
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T: ?Sized> Borrow<T> for Arc<T> {
    fn borrow(&self) -> &T {
        self
    }
}

impl<T: ?Sized> Unpin for Arc<T> {}

impl<T: ?Sized + PartialEq> PartialEq for Arc<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: ?Sized + Eq> Eq for Arc<T> {}

impl<T: ?Sized + PartialOrd> PartialOrd for Arc<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Order> {
        (**self).partial_cmp(&**other)
    }
}

impl<T: ?Sized + Ord> Ord for Arc<T> {
    fn cmp(&self, other: &Self) -> Order {
        (**self).cmp(&**other)
    }
}

impl<T: ?Sized + Hash> Hash for Arc<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Arc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for Arc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized> fmt::Pointer for Arc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Pointer::fmt(&Self::as_ptr(self), f)
    }
}
