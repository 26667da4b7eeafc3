//! Histories, and how they are written.

use super::report::{NotLinearizable, Order};
use super::{Specification, report};
use crate::{engine, thread};
use core::fmt;
use core::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// When operations were called and returned.
///
/// Every call and every return takes the next number of one counter, beginning with 0. Operations
/// of one thread may nest, as those of a signal handler do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History<C, R> {
    operations: Vec<Operation<C, R>>,
    events: usize,
}

/// One operation of a [`History`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation<C, R> {
    /// The thread that called it.
    pub thread: usize,
    /// What it was.
    pub call: C,
    /// The number of its call.
    pub called: usize,
    /// The number of its return, and what it returned. `None` if it never did.
    pub returned: Option<(usize, R)>,
}

impl<C, R> Default for History<C, R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C, R> History<C, R> {
    /// A history in which nothing has happened.
    #[must_use]
    pub const fn new() -> Self {
        Self { operations: Vec::new(), events: 0 }
    }

    /// `thread` calls an operation. The number of the operation.
    pub fn call(&mut self, thread: usize, call: C) -> usize {
        let called = self.tick();
        self.operations.push(Operation { thread, call, called, returned: None });
        self.operations.len() - 1
    }

    /// The operation with this number returns.
    ///
    /// # Panics
    /// If there is none, or it has returned already.
    #[track_caller]
    pub fn returned(&mut self, operation: usize, value: R) {
        let number = self.tick();
        let count = self.operations.len();
        let Some(open) = self.operations.get_mut(operation) else {
            panic!("operation {operation} was never called: there are {count}");
        };
        assert!(open.returned.is_none(), "operation {operation} returns a second time");
        open.returned = Some((number, value));
    }

    /// The operations, in the order of their calls.
    #[must_use]
    pub fn operations(&self) -> &[Operation<C, R>] {
        &self.operations
    }

    /// How many calls and returns there were.
    #[must_use]
    pub fn events(&self) -> usize {
        self.events
    }

    /// Looks for an order that explains the history.
    ///
    /// # Errors
    /// If there is none.
    pub fn check<S>(&self, specification: &S) -> Result<Order, NotLinearizable>
    where
        S: Specification<Call = C, Return = R>,
    {
        report::check(specification, self)
    }

    fn tick(&mut self) -> usize {
        let number = self.events;
        self.events += 1;
        number
    }
}

/// Writes the [`History`] of a run. Clones write the same one.
///
/// Outside of a run of the machine it serves the threads of the operating system.
pub struct Recorder<C, R>(Arc<Mutex<History<C, R>>>);

/// An operation that was called and has not returned. If this is dropped, it never does.
#[must_use = "an operation that is not told its return stays open"]
#[derive(Debug)]
pub struct Open<C, R> {
    recorder: Recorder<C, R>,
    operation: usize,
}

impl<C, R> Recorder<C, R> {
    /// A recorder of an empty history.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(History::new())))
    }

    /// Records that the calling thread calls `call`, runs it, and records what it returns.
    ///
    /// The call is a step of the run: it waits for its turn like any other, so that a call is
    /// recorded when the operation begins, and not when the one before it ended.
    #[track_caller]
    pub fn record(&self, call: C, operation: impl FnOnce() -> R) -> R
    where
        R: Clone,
    {
        let open = self.call(call);
        let value = operation();
        open.returned(value.clone());
        value
    }

    /// Records a call alone, for an operation that is not one closure. A step of the run, as in
    /// [`record`](Self::record).
    #[track_caller]
    pub fn call(&self, call: C) -> Open<C, R> {
        let thread = if engine::is_installed() {
            let at = Location::caller();
            engine::with(|engine| engine.event(at));
            thread::current()
        } else {
            number_of_os_thread()
        };
        let operation = self.history().call(thread, call);
        Open { recorder: self.clone(), operation }
    }

    /// The history, which stands still as long as the result lives: hold it for one expression
    /// only.
    pub fn history(&self) -> MutexGuard<'_, History<C, R>> {
        // In a run no thread ever waits here: threads of the machine change in its operations, and
        // none happens under this lock. A panic under it leaves a history that is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks for an order that explains what was recorded so far.
    ///
    /// # Errors
    /// If there is none.
    pub fn check<S>(&self, specification: &S) -> Result<Order, NotLinearizable>
    where
        S: Specification<Call = C, Return = R>,
    {
        self.history().check(specification)
    }
}

impl<C, R> Open<C, R> {
    /// Records that the operation returned `value`. Not a step: what it did, it did in its last
    /// step.
    #[track_caller]
    pub fn returned(self, value: R) {
        self.recorder.history().returned(self.operation, value);
    }
}

impl<C, R> Clone for Recorder<C, R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C, R> Default for Recorder<C, R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C, R> fmt::Debug for Recorder<C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recorder({} operations)", self.history().operations.len())
    }
}

/// Outside of a run: threads are numbered as they come.
fn number_of_os_thread() -> usize {
    use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    static COMERS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = COMERS.fetch_add(1, Relaxed);
    }
    NUMBER.with(|number| *number)
}
