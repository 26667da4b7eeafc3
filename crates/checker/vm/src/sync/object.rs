//! What the objects of this module are made of: a word whose newest value counts.
//!
//! A lock is held or it is free, and an old value of its word says nothing. So an operation of an
//! object is one step: it waits until the newest value lets it go on, and changes it. All changes
//! are read-modify-writes, so a thread that acquires learns of all that was released into the word.
//! Only where std promises no more than a load, as of `OnceLock::get`, an old value may be read.
//!
//! State of an object beside its word is plain Rust data, [`Beside`]. It is touched after a step of
//! the object and before the next step of any thread, so it changes together with the word.

use super::AtomicU64;
use crate::clock::passes_after;
use crate::engine::{self, At, Until, Update};
use core::mem::ManuallyDrop;
use core::panic::Location;
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::sync::{Mutex, PoisonError};

pub(crate) struct Object {
    word: AtomicU64,
}

impl Object {
    #[track_caller]
    pub(crate) fn new(value: u64) -> Self {
        Self::new_at(value, Location::caller())
    }

    fn new_at(value: u64, at: At) -> Self {
        Self { word: AtomicU64::new_at(value, at) }
    }

    /// Waits until the value is as `until` says, and changes it. The value before.
    pub(crate) fn step(
        &self,
        name: &'static str,
        until: Option<Until>,
        order: Ordering,
        at: At,
        change: impl Fn(u64) -> u64,
    ) -> u64 {
        let (Ok(before) | Err(before)) = self.settle(name, until, order, at, &|value| Some(change(value)));
        before
    }

    /// Changes the value, unless `change` declines.
    pub(crate) fn try_step(
        &self,
        name: &'static str,
        order: Ordering,
        at: At,
        change: impl Fn(u64) -> Option<u64>,
    ) -> Result<u64, u64> {
        self.settle(name, None, order, at, &change)
    }

    fn settle(
        &self,
        name: &'static str,
        until: Option<Until>,
        success: Ordering,
        at: At,
        change: &dyn Fn(u64) -> Option<u64>,
    ) -> Result<u64, u64> {
        let update = Update { name, success, failure: Ordering::Relaxed, weak: false, change };
        engine::with(|engine| engine.settle(self.word.word(), until, &update, at))
    }

    /// Reads the value, which may be an old one.
    pub(crate) fn load(&self, order: Ordering, at: At) -> u64 {
        engine::with(|engine| engine.load(self.word.word(), order, at))
    }

    /// The value, without a step.
    pub(crate) fn peek(&self) -> u64 {
        engine::with(|engine| engine.peek(self.word.word()))
    }
}

/// `Debug` that tells the name alone: what is inside belongs to the machine.
macro_rules! opaque {
    ($($name:ident $(<$($param:ident),+>)?;)+) => { $(
        impl $(<$($param),+>)? core::fmt::Debug for $name $(<$($param),+>)? {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(concat!(stringify!($name), " { .. }"))
            }
        }
    )+ };
}
pub(crate) use opaque;

/// What a mutex and a reader-writer lock have in common, which are an [`Object`] with data.
macro_rules! lock {
    ($lock:ident) => {
        impl<T> $lock<T> {
            /// A free one.
            #[track_caller]
            pub fn new(data: T) -> Self {
                Self { state: Object::new(0), data: UnsafeCell::new(data) }
            }

            /// The data.
            ///
            /// # Errors
            /// None: the type is std's.
            pub fn into_inner(self) -> LockResult<T> {
                Ok(self.data.into_inner())
            }
        }

        impl<T: ?Sized> $lock<T> {
            /// The data, without the lock: the caller has it to itself.
            ///
            /// # Errors
            /// None: the type is std's.
            pub fn get_mut(&mut self) -> LockResult<&mut T> {
                Ok(self.data.get_mut())
            }

            /// Never: a panic ends the run.
            #[must_use]
            pub fn is_poisoned(&self) -> bool {
                false
            }
        }

        impl<T: Default> Default for $lock<T> {
            #[track_caller]
            fn default() -> Self {
                Self::new(T::default())
            }
        }

        impl<T> From<T> for $lock<T> {
            #[track_caller]
            fn from(data: T) -> Self {
                Self::new(data)
            }
        }
    };
}
pub(super) use lock;

/// A guard of a [`lock!`], and what it does to the word when it goes.
macro_rules! guard {
    ($(#[$doc:meta])* $guard:ident of $lock:ident, $release:expr) => {
        $(#[$doc])*
        #[must_use = "the lock is released at once if its guard is not kept"]
        pub struct $guard<'a, T: ?Sized> {
            lock: &'a $lock<T>,
            at: At,
            /// A guard stays on its thread, as std's does.
            not_send: PhantomData<*const ()>,
        }

        // SAFETY: a shared guard gives shared access to the data, and nothing else.
        unsafe impl<T: ?Sized + Sync> Sync for $guard<'_, T> {}

        impl<'a, T: ?Sized> $guard<'a, T> {
            /// The caller has acquired the lock.
            fn of(lock: &'a $lock<T>, at: At) -> Self {
                Self { lock, at, not_send: PhantomData }
            }
        }

        impl<T: ?Sized> Deref for $guard<'_, T> {
            type Target = T;

            fn deref(&self) -> &T {
                // SAFETY: this thread holds the lock or shares it, so no thread writes the data.
                unsafe { &*self.lock.data.get() }
            }
        }

        impl<T: ?Sized> Drop for $guard<'_, T> {
            fn drop(&mut self) {
                self.lock.state.step("unlock", None, Release, self.at, $release);
            }
        }

        impl<T: ?Sized + fmt::Debug> fmt::Debug for $guard<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }
    };
}
pub(super) use guard;

/// State beside a word. No step is made under its lock, so no thread of the machine waits for it.
/// The lock is for threads of the system, to which safe code may send an object.
#[derive(Debug, Default)]
pub(crate) struct Beside<T>(Mutex<T>);

impl<T> Beside<T> {
    pub(crate) const fn new(state: T) -> Self {
        Self(Mutex::new(state))
    }

    /// Calls `f` with the state. `f` makes no step.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// An object that all threads know of: what makes it known need not order anything. It ends without
/// a trace.
fn known_to_all(at: At) -> ManuallyDrop<Object> {
    let mut object = None;
    engine::with(|engine| engine.before_all(&mut || object = Some(Object::new_at(0, at))));
    ManuallyDrop::new(object.expect("the engine calls what it is given"))
}

/// Whether a thread has returned. It says so together with its last step, and that orders nothing.
pub(crate) struct Returned {
    object: ManuallyDrop<Object>,
    /// Where the thread was started.
    started: At,
}

impl Returned {
    #[track_caller]
    pub(crate) fn new() -> Self {
        let started = Location::caller();
        let object = known_to_all(started);
        engine::with(|engine| engine.name(object.word.word(), "returned"));
        Self { object, started }
    }

    /// The thread that runs has returned.
    pub(crate) fn say(&self) {
        engine::with(|engine| engine.say_returned(self.object.word.word(), self.started));
    }

    /// Whether it has. A thread that has not learnt of it may still be told that it has not.
    pub(crate) fn ask(&self, at: At) -> bool {
        engine::with(|engine| engine.ask(self.object.word.word(), true, at)) != 0
    }
}

/// Two threads go, each by [`go`](Self::go): which is the second. It knows what the first did.
pub(crate) struct LastOfTwo(ManuallyDrop<Object>);

impl LastOfTwo {
    #[track_caller]
    pub(crate) fn new() -> Self {
        Self(known_to_all(Location::caller()))
    }

    /// The caller goes. Whether the other one has gone.
    pub(crate) fn go(&self, name: &'static str, at: At) -> bool {
        self.0.step(name, None, Ordering::AcqRel, at, |_| 1) == 1
    }
}

/// A wake-up for one thread, which may come before that thread waits. What it wakes for has an
/// order of its own, and the token may give none.
pub(crate) struct Token(ManuallyDrop<Object>);

impl Token {
    const GIVEN: u64 = 1;

    #[track_caller]
    pub(crate) fn new() -> Self {
        Self(known_to_all(Location::caller()))
    }

    pub(crate) fn give(&self, name: &'static str, order: Ordering, at: At) {
        self.0.step(name, None, order, at, |_| Self::GIVEN);
    }

    pub(crate) fn take(&self, name: &'static str, order: Ordering, at: At) {
        self.0.step(name, Some(Until::Set(Self::GIVEN)), order, at, |_| 0);
    }

    /// Whether the token was there.
    pub(crate) fn try_take(&self, name: &'static str, order: Ordering, at: At) -> bool {
        self.0.try_step(name, order, at, |value| (value == Self::GIVEN).then_some(0)).is_ok()
    }

    /// As `take`, until `timeout` has passed. Whether the token was there.
    #[track_caller]
    pub(crate) fn take_for(&self, name: &'static str, order: Ordering, timeout: Duration) -> bool {
        let (at, deadline) = (Location::caller(), passes_after(timeout));
        let mut taken = false;
        super::spin_until(|| {
            taken = self.try_take(name, order, at);
            taken || engine::with(|engine| engine.has_passed(deadline, at))
        });
        taken
    }
}
