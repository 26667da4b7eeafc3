//! Variables of which each thread has its own.

use crate::side::Side;
use core::any::Any;
use core::cell::{Cell, RefCell};
use core::fmt;
use core::marker::PhantomData;
use core::mem;
use std::collections::HashMap;
use std::rc::Rc;

/// As `std::thread::LocalKey`. The macro [`thread_local!`](crate::thread_local!) declares one.
pub struct LocalKey<T: 'static> {
    #[doc(hidden)]
    pub init: fn() -> T,
    #[doc(hidden)]
    pub marker: PhantomData<fn(T)>,
}

/// The thread is past the end of its variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessError;

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("already destroyed")
    }
}

impl std::error::Error for AccessError {}

/// A variable; `None` once it has been destroyed.
type Slot = Option<Rc<dyn Any>>;

thread_local! {
    /// By thread and key.
    static VALUES: RefCell<HashMap<(usize, usize), Slot>> = RefCell::default();
    /// In which order they were made, by thread.
    static MADE: RefCell<HashMap<usize, Made>> = RefCell::default();
}

/// The variables of a thread, by key.
#[derive(Default)]
struct Made {
    /// Those that are destroyed, in the order in which they were made.
    dropped: Vec<usize>,
    /// Those whose drop does nothing: to the end of the thread, all others may use them.
    kept: Vec<usize>,
}

/// Calls `f` with the variables. The memory of the table is no model's.
fn values<R>(f: impl FnOnce(&mut HashMap<(usize, usize), Slot>) -> R) -> R {
    let _side = Side::of_machine();
    VALUES.with_borrow_mut(f)
}

/// Calls `f` with their order, likewise.
fn made<R>(f: impl FnOnce(&mut HashMap<usize, Made>) -> R) -> R {
    let _side = Side::of_machine();
    MADE.with_borrow_mut(f)
}

/// Destroys the variables of the calling thread, those made last first, as std does on Linux. What
/// one of them makes as it goes is the next to go.
pub(crate) fn end_of_thread() {
    let thread = super::running();
    while let Some(key) = made(|made| made.get_mut(&thread)?.dropped.pop()) {
        let value = values(|values| values.insert((thread, key), None));
        drop(value);
    }
    // Their memory is the model's.
    while let Some(key) = made(|made| made.get_mut(&thread)?.kept.pop()) {
        drop(values(|values| values.insert((thread, key), None)));
    }
}

/// The run is over. What threads have left that did not end is leaked, as all that they own.
pub(crate) fn forget_all() {
    VALUES.with_borrow_mut(|values| values.drain().for_each(|(_, slot)| mem::forget(slot)));
    MADE.take();
}

impl<T: 'static> LocalKey<T> {
    /// Calls `f` with the variable of the calling thread, which is made at its first use.
    ///
    /// # Panics
    /// If it has been destroyed.
    pub fn with<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        self.try_with(f).expect("a thread-local variable is used after it was destroyed")
    }

    /// As [`with`](Self::with).
    ///
    /// # Errors
    /// If the variable has been destroyed.
    pub fn try_with<R>(&'static self, f: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        let value = self.value()?;
        Ok(f(&value))
    }

    fn value(&'static self) -> Result<Rc<T>, AccessError> {
        let key = (super::running(), core::ptr::from_ref(self).addr());
        let slot = values(|values| values.get(&key).cloned());
        let value = match slot {
            Some(None) => return Err(AccessError),
            Some(Some(value)) => value,
            None => {
                let value: Rc<dyn Any> = Rc::new((self.init)());
                values(|values| values.insert(key, Some(Rc::clone(&value))));
                made(|made| {
                    let Made { dropped, kept } = made.entry(key.0).or_default();
                    if mem::needs_drop::<T>() { dropped } else { kept }.push(key.1);
                });
                value
            }
        };
        Ok(value.downcast().expect("the key is that of the type"))
    }
}

impl<T: 'static> LocalKey<RefCell<T>> {
    /// Calls `f` with the value, borrowed.
    pub fn with_borrow<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        self.with(|cell| f(&cell.borrow()))
    }

    /// Calls `f` with the value, borrowed exclusively.
    pub fn with_borrow_mut<R>(&'static self, f: impl FnOnce(&mut T) -> R) -> R {
        self.with(|cell| f(&mut cell.borrow_mut()))
    }
}

impl<T: 'static> LocalKey<Cell<T>> {
    /// Sets the value.
    pub fn set(&'static self, value: T) {
        self.with(|cell| cell.set(value));
    }

    /// A copy of the value.
    pub fn get(&'static self) -> T
    where
        T: Copy,
    {
        self.with(Cell::get)
    }

    /// Takes the value, and leaves the default.
    pub fn take(&'static self) -> T
    where
        T: Default,
    {
        self.with(Cell::take)
    }

    /// Puts another value in the place of the one that is returned.
    pub fn replace(&'static self, value: T) -> T {
        self.with(|cell| cell.replace(value))
    }
}

impl<T: 'static> fmt::Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalKey { .. }")
    }
}

/// As `std::thread_local!`, for threads of the machine.
#[macro_export]
macro_rules! thread_local {
    () => {};
    ($(#[$attr:meta])* $vis:vis static $name:ident: $t:ty = const $init:block $(; $($rest:tt)*)?) => {
        $crate::thread_local!($(#[$attr])* $vis static $name: $t = $init);
        $($crate::thread_local!($($rest)*);)?
    };
    ($(#[$attr:meta])* $vis:vis static $name:ident: $t:ty = $init:expr $(; $($rest:tt)*)?) => {
        $(#[$attr])* $vis static $name: $crate::thread::LocalKey<$t> = $crate::thread::LocalKey {
            init: (|| $init) as fn() -> $t,
            marker: ::core::marker::PhantomData,
        };
        $($crate::thread_local!($($rest)*);)?
    };
}
