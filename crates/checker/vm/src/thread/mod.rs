//! Threads of the machine, with the face of `std::thread`. A thread is known by its number.

mod builder;
mod local;
mod park;
mod scope;

pub use crate::sync::yield_now;
pub use builder::Builder;
pub use local::{AccessError, LocalKey};
pub(crate) use local::{end_of_thread, forget_all};
pub(crate) use park::forget_tokens;
pub use park::{park, park_timeout, unpark};
pub use scope::{Scope, ScopedJoinHandle, scope};

use crate::engine::{self, At};
use crate::sync::{Beside, LastOfTwo, Returned};
use core::fmt;
use core::mem::needs_drop;
use core::panic::Location;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use core::time::Duration;
use std::sync::Arc;

/// Waits for a thread and takes what it returned. If the handle is dropped instead, the thread
/// drops that, unless it has returned before.
pub struct JoinHandle<T> {
    thread: usize,
    end: Arc<End<T>>,
    is_joined: bool,
}

/// The end of a thread.
struct End<T> {
    returned: Returned,
    result: Beside<Option<T>>,
    /// The thread or its handle drops what was returned, if that does anything.
    last: Option<LastOfTwo>,
    started: At,
    /// The thread has come to its end: it has not died.
    is_over: AtomicBool,
}

impl<T> End<T> {
    /// The thread has returned, or its handle goes.
    fn go(&self, name: &'static str) {
        if let Some(last) = &self.last
            && last.go(name, self.started)
        {
            drop(self.result.with(Option::take));
        }
    }
}

/// Starts a thread in the process of the calling one.
#[track_caller]
pub fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let at = Location::caller();
    start(body, |body| engine::with(|engine| engine.spawn(body, at)))
}

/// Hands `body` to `spawn`, with a place for what it returns.
#[track_caller]
pub(crate) fn start<'a, T: Send + 'a>(
    body: impl FnOnce() -> T + Send + 'a,
    spawn: impl FnOnce(Box<dyn FnOnce() + 'a>) -> usize,
) -> JoinHandle<T> {
    let end = Arc::new(End {
        returned: Returned::new(),
        result: Beside::new(None),
        last: needs_drop::<T>().then(LastOfTwo::new),
        started: Location::caller(),
        is_over: AtomicBool::new(false),
    });
    let place = Arc::clone(&end);
    let thread = spawn(Box::new(move || {
        // What the closure has captured belongs to the state of its thread, and so on its stack.
        let body = core::hint::black_box(body);
        let value = body();
        place.result.with(|result| *result = Some(value));
        // As std's thread, it counts as finished, and drops what nobody waits for, before its
        // variables go.
        place.returned.say();
        place.go("returns");
        end_of_thread();
        place.is_over.store(true, Relaxed);
    }));
    JoinHandle { thread, end, is_joined: false }
}

/// Waits until the thread of this number has ended.
#[track_caller]
pub fn wait_for(thread: usize) {
    let at = Location::caller();
    engine::with(|engine| engine.join(thread, at));
}

/// Waits until `duration` has passed: a time-out, where
/// [`Config::timeouts`](crate::explore::Config::timeouts) is on, and a yield, where it is off.
#[track_caller]
pub fn sleep(duration: Duration) {
    use crate::clock::{has_passed, passes_after};
    let deadline = passes_after(duration);
    if crate::engine::with(|engine| engine.time_passes()) {
        crate::sync::spin_until(|| has_passed(deadline));
    } else {
        yield_now();
    }
}

/// The number of the calling thread: 0 runs the model itself.
#[must_use]
pub fn current() -> usize {
    engine::with(|engine| engine.current_thread())
}

/// As [`current`], for the machine's own use: the program is not told the number.
pub(crate) fn running() -> usize {
    engine::with(|engine| engine.running_thread())
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

    /// Whether the thread has returned. What it did is not ordered by that. A thread that has not
    /// learnt of the end may be told that it has not come yet.
    #[track_caller]
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.end.returned.ask(Location::caller())
    }

    /// Waits until the thread has ended, and takes what it returned.
    ///
    /// # Errors
    /// If the thread died. (One that panics ends the run.)
    #[track_caller]
    pub fn join(mut self) -> std::thread::Result<T> {
        let at = Location::caller();
        self.is_joined = true;
        engine::with(|engine| engine.join(self.thread, at));
        let value = self.end.is_over.load(Relaxed).then(|| self.end.result.with(Option::take)).flatten();
        value.ok_or_else(|| Box::new("the thread died") as _)
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        if !self.is_joined && engine::is_installed() {
            self.end.go("drops its handle");
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinHandle({})", self.thread)
    }
}
