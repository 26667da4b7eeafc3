//! Statics that are dropped at the end of an execution.

use super::leaks;
use crate::engine;
use core::any::Any;
use core::cell::RefCell;
use core::fmt;
use std::collections::HashMap;

/// As [`PerRun`](super::PerRun), for values that have to be dropped, such as an
/// [`Arc`](super::Arc): [`drop_all`](Self::drop_all) drops those of the execution.
pub struct DroppedPerRun<T> {
    make: fn() -> T,
}

struct Values {
    run: u64,
    values: HashMap<usize, *mut dyn Any>,
    order: Vec<usize>,
}

thread_local! {
    static VALUES: RefCell<Values> =
        RefCell::new(Values { run: 0, values: HashMap::new(), order: Vec::new() });
}

impl<T> DroppedPerRun<T> {
    /// A static whose value is what `make` returns.
    #[must_use]
    pub const fn new(make: fn() -> T) -> Self {
        Self { make }
    }
}

impl<T: 'static> DroppedPerRun<T> {
    /// The value, made at its first use in an execution. It is there until
    /// [`drop_all`](DroppedPerRun::drop_all).
    pub fn get(&'static self) -> &'static T {
        self.made().unwrap_or_else(|| {
            let mut value = None;
            engine::with(|engine| engine.before_all(&mut || value = Some((self.make)())));
            let value = value.expect("the engine calls what it is given");
            // Another thread may have run while the value was made. Then the value that was
            // finished first counts.
            self.made().unwrap_or_else(|| self.keep(value))
        })
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    fn made(&self) -> Option<&'static T> {
        let run = engine::with(|engine| engine.run());
        VALUES.with_borrow(|values| {
            let value = *values.values.get(&self.address()).filter(|_| values.run == run)?;
            // SAFETY: the value lives until `drop_all`, whose caller promises that no reference is
            // used after it.
            unsafe { &*value }.downcast_ref()
        })
    }

    fn keep(&self, value: T) -> &'static T {
        let run = engine::with(|engine| engine.run());
        let value = Box::into_raw(Box::new(value));
        VALUES.with_borrow_mut(|values| {
            if values.run != run {
                // What an execution that was cut has left is leaked, as all that it owned.
                *values = Values { run, values: HashMap::new(), order: Vec::new() };
            }
            values.values.insert(self.address(), value);
            values.order.push(self.address());
        });
        // SAFETY: just allocated; it lives until `drop_all`.
        unsafe { &*value }
    }
}

impl DroppedPerRun<()> {
    /// Drops the values of this execution, those made last first. A static that is used after that
    /// is made again.
    ///
    /// # Safety
    /// No reference to a value is used any more.
    pub unsafe fn drop_all() {
        let run = engine::with(|engine| engine.run());
        loop {
            let last = VALUES.with_borrow_mut(|values| {
                let address = values.order.pop().filter(|_| values.run == run)?;
                values.values.remove(&address)
            });
            let Some(value) = last else { return };
            // SAFETY: from `Box::into_raw` in `keep`, and not in the table any more; by the
            // caller's promise nothing refers to it.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

impl<T> fmt::Debug for DroppedPerRun<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DroppedPerRun { .. }")
    }
}

/// Memory from the allocator, or a value in it, that has to be given back before the execution
/// ends.
pub struct Tracked {
    number: u64,
}

impl Tracked {
    /// `what` was made here.
    #[track_caller]
    #[must_use]
    pub fn new(what: &'static str) -> Self {
        Self { number: leaks::begin(what, core::panic::Location::caller()) }
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        if engine::is_installed() {
            leaks::end(self.number);
        }
    }
}

impl fmt::Debug for Tracked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tracked { .. }")
    }
}
