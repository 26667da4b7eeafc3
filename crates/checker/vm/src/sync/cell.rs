//! Plain data whose accesses the machine sees.

use crate::engine::{self, At};
use core::cell::Cell;
use core::fmt;
use core::mem::ManuallyDrop;
use core::panic::Location;

/// A cell whose accesses the machine sees: data is reached through closures. Two accesses of which
/// one writes and that nothing orders are a data race, and end the run. Data of size zero has
/// nothing to race on.
#[repr(transparent)]
pub struct UnsafeCell<T: ?Sized>(core::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// A cell that holds `value`.
    pub const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }

    /// The value, out of its cell.
    pub fn into_inner(self) -> T {
        forget(&self);
        let this = ManuallyDrop::new(self);
        // SAFETY: the cell is not dropped, so its value is read out once.
        unsafe { this.0.get().read() }
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    /// Shared access for the duration of `f`.
    #[track_caller]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        let (data, at) = (self.0.get(), Location::caller());
        engine::with(|engine| engine.read_plain(data.addr(), size_of_val(self), at));
        f(data)
    }

    /// Exclusive access for the duration of `f`.
    #[track_caller]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        let (data, at) = (self.0.get(), Location::caller());
        engine::with(|engine| engine.write_plain(data.addr(), size_of_val(self), at));
        f(data)
    }
}

impl<T: ?Sized> Drop for UnsafeCell<T> {
    fn drop(&mut self) {
        forget(self);
    }
}

impl<T: Default> Default for UnsafeCell<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized> fmt::Debug for UnsafeCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnsafeCell { .. }")
    }
}

/// What was known about the accesses to `cell` is of no use any more.
fn forget<T: ?Sized>(cell: &UnsafeCell<T>) {
    if engine::is_installed() {
        engine::with(|engine| engine.forget_plain(cell.0.get().addr(), size_of_val(cell)));
    }
}

/// Stands for data that lives outside of any [`UnsafeCell`], so that it may have any type, be
/// unsized, and be projected.
#[derive(Debug, Default)]
pub struct Watch {
    cell: UnsafeCell<u8>,
    writing: Cell<bool>,
    /// How many shared accesses are open.
    reading: Cell<usize>,
    /// The thread that has begun an access last, and where.
    begun: Cell<Option<(usize, At)>>,
}

// SAFETY: all threads of a run are on one OS thread and are switched inside operations only; the
// methods touch `writing` and `reading` after the operation of the same call.
unsafe impl Sync for Watch {}

impl Watch {
    /// A watch over data that no thread accesses.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            cell: UnsafeCell::new(0),
            writing: Cell::new(false),
            reading: Cell::new(0),
            begun: Cell::new(None),
        }
    }

    /// An access begins. Unless it `may`, another one is in its way. While a panic unwinds, those
    /// of other threads do not end.
    #[track_caller]
    fn begins(&self, may: bool) {
        let now = (engine::with(|engine| engine.running_thread()), Location::caller());
        let before = self.begun.replace(Some(now));
        if !may && !std::thread::panicking() {
            let (thread, at) = before.expect("an access that is open has begun");
            panic!("two accesses of the data at the same time: thread {thread} has begun the last at {at}");
        }
    }

    /// Exclusive access begins.
    ///
    /// # Panics
    /// If another access is open.
    #[track_caller]
    pub fn open_write(&self) {
        self.cell.with_mut(|_| ());
        self.begins(self.reading.get() == 0 && !self.writing.get());
        self.writing.set(true);
    }

    /// The exclusive access ends.
    #[track_caller]
    pub fn close_write(&self) {
        // The end of an access is one too: what comes between the two and is not ordered with this
        // is a race.
        self.cell.with_mut(|_| ());
        self.writing.set(false);
    }

    /// The holder of the exclusive access touches the data.
    #[track_caller]
    pub fn touch_to_write(&self) {
        self.cell.with_mut(|_| ());
    }

    /// A holder of shared access touches the data.
    #[track_caller]
    pub fn touch_to_read(&self) {
        self.cell.with(|_| ());
    }

    /// The exclusive access ends, and does not touch the data any more.
    pub fn end_write(&self) {
        self.writing.set(false);
    }

    /// A shared access ends, and does not touch the data any more.
    pub fn end_read(&self) {
        self.reading.update(|count| count.saturating_sub(1));
    }

    /// Shared access begins. Several may be open.
    ///
    /// # Panics
    /// If an exclusive access is open.
    #[track_caller]
    pub fn open_read(&self) {
        self.cell.with(|_| ());
        self.begins(!self.writing.get());
        self.reading.update(|count| count + 1);
    }

    /// A shared access ends.
    ///
    /// # Panics
    /// If none is open.
    #[track_caller]
    pub fn close_read(&self) {
        self.cell.with(|_| ());
        self.reading.set(self.reading.get().checked_sub(1).expect("a shared access ends that never began"));
    }
}
