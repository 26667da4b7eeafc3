//! Statics: one value a run.

use super::leaks;
use super::object::opaque;
use crate::engine;
use crate::side::Side;
use core::any::Any;
use core::ops::Deref;
use std::cell::RefCell;
use std::collections::HashMap;

/// A static whose value belongs to one run: it is made at the first use in each, and dereferences
/// to it.
///
/// What the value is made of was there before the run began, as the parts of a static of the
/// machine were: no thread has to learn of it first. The value is never dropped, as a static is
/// not, and its memory is never given back, since a reference to it may have been kept: a run that
/// uses the static costs its size.
///
/// # Examples
/// ```
/// use ulocks_vm::sync::{AtomicU32, PerRun};
///
/// static HITS: PerRun<AtomicU32> = PerRun::new(|| AtomicU32::new(0));
/// ```
pub struct PerRun<T> {
    make: fn() -> T,
}

/// On cache lines that nothing else is on, so that what a run costs does not depend on the
/// allocator.
#[repr(align(128))]
struct OwnLines<T>(T);

thread_local! {
    /// The values of the newest run that used one, by the address of their static.
    static VALUES: RefCell<Values> = RefCell::default();
}

#[derive(Default)]
struct Values {
    run: u64,
    values: HashMap<usize, &'static dyn Any>,
}

impl Values {
    fn begin(&mut self, run: u64) {
        if self.run != run {
            self.run = run;
            self.values.clear();
        }
    }
}

impl<T> PerRun<T> {
    /// A static whose value is what `make` returns.
    #[must_use]
    pub const fn new(make: fn() -> T) -> Self {
        Self { make }
    }
}

impl<T: 'static> PerRun<T> {
    fn made(&self) -> Option<&'static T> {
        let run = engine::with(|engine| engine.run());
        VALUES.with_borrow_mut(|values| {
            values.begin(run);
            values.values.get(&core::ptr::from_ref(self).addr())?.downcast_ref()
        })
    }

    #[cold]
    fn make(&self) -> &'static T {
        let mut value = None;
        engine::with(|engine| engine.before_all(&mut || value = Some(leaks::ignoring(self.make))));
        let value = value.expect("the engine calls what it is given");
        let _side = Side::of_machine();
        let value = &Box::leak(Box::new(OwnLines(value))).0;
        // An engine may let another thread run while a value is made. Then the value that was
        // finished first counts.
        self.made().unwrap_or_else(|| {
            VALUES.with_borrow_mut(|values| {
                values.values.insert(core::ptr::from_ref(self).addr(), value);
            });
            value
        })
    }
}

impl<T: 'static> Deref for PerRun<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.made().unwrap_or_else(|| self.make())
    }
}

opaque! { PerRun<T>; }
