//! Statics that are dropped at the end of an execution.

use super::object::opaque;
use super::{Once, leaks};
use crate::side::Side;
use crate::{engine, thread};
use core::any::Any;
use core::cell::RefCell;
use core::mem::ManuallyDrop;
use std::collections::HashMap;
use std::rc::Rc;

/// As [`PerRun`](super::PerRun), for values that have to be dropped, such as an
/// [`Arc`](super::Arc): [`drop_all`](Self::drop_all) drops those of the execution.
pub struct DroppedPerRun<T> {
    make: fn() -> T,
}

/// One static's value in a run.
struct Lazily {
    /// Ends without a trace: an execution that was cut leaves it behind.
    once: Rc<ManuallyDrop<Once>>,
    value: Option<*mut dyn Any>,
    /// The threads to which the value is known.
    knowing: Vec<usize>,
}

struct Values {
    run: u64,
    values: HashMap<usize, Lazily>,
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
    /// The value, made at its first use in an execution, once: a thread that uses it meanwhile
    /// waits. It is there until [`drop_all`](DroppedPerRun::drop_all).
    #[track_caller]
    pub fn get(&'static self) -> &'static T {
        let thread = thread::running();
        let once = self.with(|lazily| (!lazily.knowing.contains(&thread)).then(|| Rc::clone(&lazily.once)));
        if let Some(once) = once {
            once.call_once(|| {
                let value = Box::into_raw(Box::new((self.make)()));
                self.with(|lazily| lazily.value = Some(value));
                let _side = Side::of_machine();
                VALUES.with_borrow_mut(|values| values.order.push(self.address()));
            });
            self.with(|lazily| lazily.knowing.push(thread));
        }
        let value = self.with(|lazily| lazily.value).expect("`once` has run");
        // SAFETY: the value lives until `drop_all`, whose caller promises that no reference is used
        // after it.
        unsafe { &*value }.downcast_ref().expect("of this static")
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// Calls `f`, which makes no step, with what is known of the value in this run.
    fn with<R>(&self, f: impl FnOnce(&mut Lazily) -> R) -> R {
        let run = engine::with(|engine| engine.run());
        // The memory of the table is no model's.
        let _side = Side::of_machine();
        VALUES.with_borrow_mut(|values| {
            if values.run != run {
                // What an execution that was cut has left is leaked, as all that it owned.
                *values = Values { run, values: HashMap::new(), order: Vec::new() };
            }
            f(values.values.entry(self.address()).or_insert_with(|| {
                let mut once = None;
                engine::with(|engine| engine.before_all(&mut || once = Some(Once::new())));
                let once = once.expect("the engine calls what it is given");
                Lazily { once: Rc::new(ManuallyDrop::new(once)), value: None, knowing: Vec::new() }
            }))
        })
    }
}

impl DroppedPerRun<()> {
    /// Drops the values of this execution, those made last first. The variables of the calling
    /// thread go before: their drops may use a static. One that is used after that is made again.
    ///
    /// # Safety
    /// No reference to a value is used any more, but by such a drop.
    pub unsafe fn drop_all() {
        thread::end_of_thread();
        let run = engine::with(|engine| engine.run());
        loop {
            let last = VALUES.with_borrow_mut(|values| {
                let address = values.order.pop().filter(|_| values.run == run)?;
                values.values.remove(&address)?.value
            });
            let Some(value) = last else { return };
            // SAFETY: from `Box::into_raw` in `get`, and not in the table any more; by the
            // caller's promise nothing refers to it.
            drop(unsafe { Box::from_raw(value) });
        }
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

opaque! { DroppedPerRun<T>; Tracked; }
