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
/// uses the static costs its size. [`reused`](PerRun::reused) is for statics of which no reference
/// is kept.
///
/// # Examples
/// ```
/// use ulocks_vm::sync::{AtomicU32, PerRun};
///
/// static HITS: PerRun<AtomicU32> = PerRun::new(|| AtomicU32::new(0));
/// ```
pub struct PerRun<T> {
    make: fn() -> T,
    /// Whether the memory of a value serves the next run.
    is_reused: bool,
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
    values: HashMap<usize, Value>,
    /// Values of earlier runs, whose memory may be written.
    spare: HashMap<usize, *mut dyn Any>,
}

/// A value, and whether its memory serves the next run.
#[derive(Clone, Copy)]
struct Value(*mut dyn Any, bool);

impl Values {
    fn begin(&mut self, run: u64) {
        if self.run != run {
            self.run = run;
            let reused = self.values.drain().filter(|(_, Value(_, is_reused))| *is_reused);
            self.spare.extend(reused.map(|(place, Value(value, _))| (place, value)));
        }
    }
}

impl<T> PerRun<T> {
    /// A static whose value is what `make` returns.
    #[must_use]
    pub const fn new(make: fn() -> T) -> Self {
        Self { make, is_reused: false }
    }

    /// The same, but the memory of a value serves the next run, so that a million runs cost no more
    /// than one.
    ///
    /// # Safety
    /// No reference to a value is used after the run to which it belongs.
    #[must_use]
    pub const unsafe fn reused(make: fn() -> T) -> Self {
        Self { make, is_reused: true }
    }
}

impl<T: 'static> PerRun<T> {
    fn place(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    fn made(&self) -> Option<&T> {
        let run = engine::with(|engine| engine.run());
        VALUES.with_borrow_mut(|values| {
            values.begin(run);
            let &Value(value, _) = values.values.get(&self.place())?;
            // SAFETY: a value that was leaked. It is written by `make` alone, in a later run, if
            // the caller of `reused` has promised that no reference is used by then.
            unsafe { &*value }.downcast_ref::<OwnLines<T>>().map(|lines| &lines.0)
        })
    }

    #[cold]
    fn make(&self) -> &T {
        let mut value = None;
        engine::with(|engine| engine.before_all(&mut || value = Some(leaks::ignoring(self.make))));
        let value = OwnLines(value.expect("the engine calls what it is given"));
        let _side = Side::of_machine();
        // An engine may let another thread run while a value is made. Then the value that was
        // finished first counts.
        self.made().unwrap_or_else(|| {
            VALUES.with_borrow_mut(|values| {
                let spare = values.spare.remove(&self.place());
                let kept = match spare.filter(|&spare| is::<T>(spare)) {
                    Some(spare) => {
                        let spare = spare.cast::<OwnLines<T>>();
                        // SAFETY: it was a value of this type, in a run that is over, and by the
                        // promise of `reused` no reference to it is used any more. The old value is
                        // not dropped, as no static is.
                        unsafe { spare.write(value) };
                        spare
                    }
                    None => Box::into_raw(Box::new(value)),
                };
                values.values.insert(self.place(), Value(kept, self.is_reused));
                // SAFETY: as in `made`.
                unsafe { &(*kept).0 }
            })
        })
    }
}

impl<T: 'static> Deref for PerRun<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.made().unwrap_or_else(|| self.make())
    }
}

/// Whether a value of an earlier run, of the static that was at the same place, had this type.
fn is<T: 'static>(spare: *mut dyn Any) -> bool {
    // SAFETY: a value that was leaked, and is not being written.
    unsafe { &*spare }.is::<OwnLines<T>>()
}

opaque! { PerRun<T>; }
