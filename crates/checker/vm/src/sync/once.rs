//! Initialisation that happens once, of std's shape.

use super::object::{Beside, Object, opaque};
use crate::engine::Until;
use core::cell::UnsafeCell;
use core::ops::Deref;
use core::panic::Location;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

const RUNNING: u64 = 1;
const DONE: u64 = 2;

/// As `std::sync::Once`, and never poisoned: a panic ends the run.
pub struct Once {
    state: Object,
}

impl Once {
    /// One that has not run.
    #[track_caller]
    #[must_use]
    pub fn new() -> Self {
        Self { state: Object::new(0) }
    }

    /// Runs `f`, if none has run; returns when one has.
    #[track_caller]
    pub fn call_once(&self, f: impl FnOnce()) {
        let at = Location::caller();
        // The thread that begins is the one that finds neither bit set.
        let begin = |state: u64| if state == 0 { RUNNING } else { state };
        let before = self.state.step("call_once", Some(Until::Clear(RUNNING)), Acquire, at, begin);
        if before == 0 {
            f();
            self.state.step("call_once returns", None, Release, at, |_| DONE);
        }
    }

    /// Whether one has run. A thread that has not learnt of its end may be told that none has.
    #[track_caller]
    #[must_use]
    pub fn is_completed(&self) -> bool {
        self.state.load(Acquire, Location::caller()) == DONE
    }

    /// Waits until one has run.
    #[track_caller]
    pub fn wait(&self) {
        self.state.step("wait", Some(Until::Set(DONE)), Acquire, Location::caller(), |state| state);
    }
}

impl Default for Once {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

/// As `std::sync::OnceLock`.
pub struct OnceLock<T> {
    once: Once,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: to send the cell is to send the value.
unsafe impl<T: Send> Send for OnceLock<T> {}
// SAFETY: the value is written by the one thread that `once` lets run, and read after that.
unsafe impl<T: Send + Sync> Sync for OnceLock<T> {}

impl<T> OnceLock<T> {
    /// An empty one.
    #[track_caller]
    #[must_use]
    pub fn new() -> Self {
        Self { once: Once::new(), value: UnsafeCell::new(None) }
    }

    /// The value, if there is one. A thread that has not learnt of it may find none.
    #[track_caller]
    pub fn get(&self) -> Option<&T> {
        // SAFETY: `once` has run, so the value is not written any more.
        if self.once.is_completed() { unsafe { (*self.value.get()).as_ref() } } else { None }
    }

    /// The value, made by `make` if there is none.
    #[track_caller]
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        self.once.call_once(|| {
            let made = make();
            // SAFETY: no other thread writes the value, and none reads it before `once` has run.
            unsafe { *self.value.get() = Some(made) };
        });
        // SAFETY: `once` has run, so the value is not written any more.
        unsafe { (*self.value.get()).as_ref() }.expect("`once` has run")
    }

    /// Sets the value.
    ///
    /// # Errors
    /// `value`, if there is one already.
    #[track_caller]
    pub fn set(&self, value: T) -> Result<(), T> {
        let mut value = Some(value);
        self.get_or_init(|| value.take().expect("called once"));
        value.map_or(Ok(()), Err)
    }

    /// The value, to change.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.value.get_mut().as_mut()
    }

    /// The value, out of the cell.
    pub fn into_inner(self) -> Option<T> {
        self.value.into_inner()
    }

    /// The value; the cell is empty again.
    #[track_caller]
    pub fn take(&mut self) -> Option<T> {
        let value = self.value.get_mut().take();
        self.once.state.step("take", None, Relaxed, Location::caller(), |_| 0);
        value
    }
}

impl<T> Default for OnceLock<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

/// As `std::sync::LazyLock`.
pub struct LazyLock<T, F = fn() -> T> {
    cell: OnceLock<T>,
    make: Beside<Option<F>>,
}

impl<T, F: FnOnce() -> T> LazyLock<T, F> {
    /// A value that `make` makes when it is first used.
    #[track_caller]
    #[must_use]
    pub fn new(make: F) -> Self {
        Self { cell: OnceLock::new(), make: Beside::new(Some(make)) }
    }

    /// The value.
    #[track_caller]
    pub fn force(this: &Self) -> &T {
        this.cell.get_or_init(|| this.make.with(Option::take).expect("made once")())
    }
}

impl<T, F: FnOnce() -> T> Deref for LazyLock<T, F> {
    type Target = T;

    #[track_caller]
    fn deref(&self) -> &T {
        Self::force(self)
    }
}

opaque! { Once; OnceLock<T>; LazyLock<T, F>; }
