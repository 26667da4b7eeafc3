//! Threads of the machine, with the face of `std::thread`.

use crate::engine;
use core::fmt;
use core::panic::Location;
use std::cell::RefCell;
use std::rc::Rc;

/// Waits for a thread and takes what it returned.
pub struct JoinHandle<T> {
    thread: usize,
    result: Rc<RefCell<Option<T>>>,
}

// SAFETY: all threads of the machine run on one OS thread, which is also the only one on which the
// engine answers: to use the handle on another is a panic before `result` is touched.
unsafe impl<T: Send> Send for JoinHandle<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for JoinHandle<T> {}

/// Starts a thread in the process of the calling one.
#[track_caller]
pub fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let at = Location::caller();
    start(body, |body| engine::with(|engine| engine.spawn(body, at)))
}

/// Hands `body` to `spawn`, with a place for what it returns.
pub(crate) fn start<T: Send + 'static>(
    body: impl FnOnce() -> T + Send + 'static,
    spawn: impl FnOnce(Box<dyn FnOnce()>) -> usize,
) -> JoinHandle<T> {
    let result = Rc::new(RefCell::new(None));
    let slot = Rc::clone(&result);
    let thread = spawn(Box::new(move || {
        let value = body();
        *slot.borrow_mut() = Some(value);
    }));
    JoinHandle { thread, result }
}

/// The number of the calling thread: 0 runs the model itself.
#[must_use]
pub fn current() -> usize {
    engine::with(|engine| engine.current_thread())
}

/// The CPU on which the calling thread runs, if the run has CPUs: in the cost model, from 0 on. An
/// exploration has none.
#[must_use]
pub fn cpu() -> Option<usize> {
    engine::with(|engine| engine.cpu())
}

/// On how many CPUs threads run, if the run has CPUs: on numbers 0 to one less.
#[must_use]
pub fn cpus() -> Option<usize> {
    engine::with(|engine| engine.cpus())
}

impl<T> JoinHandle<T> {
    /// The number of the thread.
    #[must_use]
    pub fn thread(&self) -> usize {
        self.thread
    }

    /// Waits until the thread has ended, and takes what it returned.
    ///
    /// # Errors
    /// If the thread died. (One that panics ends the run.)
    #[track_caller]
    pub fn join(self) -> std::thread::Result<T> {
        let at = Location::caller();
        engine::with(|engine| engine.join(self.thread, at));
        self.result.borrow_mut().take().ok_or_else(|| Box::new("the thread died") as _)
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinHandle({})", self.thread)
    }
}
