//! As `std::thread`.

pub use std::thread::panicking;
pub use ulocks_vm::thread::{
    AccessError, LocalKey, Scope, ScopedJoinHandle, park, park_timeout, scope, sleep, yield_now,
};

use core::cell::RefCell;
use core::fmt;
use std::io;
use std::sync::Arc;
use ulocks_vm::alloc::outside;
use ulocks_vm::thread;

std::thread_local! {
    /// The names of the threads of this execution, by number; the first thread has none.
    static NAMES: RefCell<Vec<(usize, Option<Arc<str>>)>> = RefCell::default();
}

/// An execution begins.
pub(crate) fn begin() {
    NAMES.take();
}

/// Waits until all other threads have ended. Only the first thread may call it, at its end.
pub(crate) fn wait_for_all() {
    let mut next = 0;
    while next < NAMES.with_borrow(Vec::len) {
        let number = NAMES.with_borrow(|names| names[next].0);
        thread::wait_for(number);
        next += 1;
    }
}

/// A thread.
#[derive(Clone)]
pub struct Thread {
    id: ThreadId,
    name: Option<Arc<str>>,
}

/// The number of a thread, which no other thread of the execution has.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ThreadId(usize);

/// Waits for a thread and takes what it returned. As std's handle, it may go to and be shared with
/// any thread, whatever that is.
#[derive(Debug)]
pub struct JoinHandle<T> {
    handle: thread::JoinHandle<Crosses<T>>,
    thread: Thread,
}

/// Starts threads that have names.
#[derive(Debug, Default)]
pub struct Builder {
    name: Option<String>,
}

/// The calling thread.
#[must_use]
pub fn current() -> Thread {
    let number = thread::current();
    let name = NAMES.with_borrow(|names| {
        let of = names.iter().find(|(other, _)| *other == number);
        of.and_then(|(_, name)| name.clone())
    });
    Thread { id: ThreadId(number), name }
}

/// Starts a thread.
#[track_caller]
pub fn spawn<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + 'static,
    T: 'static,
{
    start(None, f)
}

/// What crosses to another thread of the machine, all of which are on one OS thread.
struct Crosses<T>(T);

// SAFETY: all threads of an execution are on one OS thread, so nothing is sent.
unsafe impl<T> Send for Crosses<T> {}

impl<T> Crosses<T> {
    fn take(self) -> T {
        self.0
    }
}

#[track_caller]
fn start<F, T>(name: Option<String>, f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + 'static,
    T: 'static,
{
    // The table outlives the execution.
    let name: Option<Arc<str>> = outside(|| name.as_deref().map(Into::into));
    let f = Crosses(f);
    let handle = thread::spawn(move || Crosses(f.take()()));
    let number = handle.thread();
    outside(|| NAMES.with_borrow_mut(|names| names.push((number, name.clone()))));
    JoinHandle { handle, thread: Thread { id: ThreadId(number), name } }
}

impl Builder {
    /// A thread without a name.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives it a name.
    #[must_use]
    pub fn name(mut self, name: String) -> Self {
        self.name = Some(name);
        self
    }

    /// Does nothing: all stacks have one size.
    #[must_use]
    pub fn stack_size(self, _bytes: usize) -> Self {
        self
    }

    /// Starts the thread.
    ///
    /// # Errors
    /// None: the type is std's.
    #[track_caller]
    pub fn spawn<F, T>(self, f: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        Ok(start(self.name, f))
    }
}

impl<T> JoinHandle<T> {
    /// Waits until the thread has ended, and takes what it returned.
    ///
    /// # Errors
    /// None: a thread that panics ends the execution.
    #[track_caller]
    pub fn join(self) -> std::thread::Result<T> {
        self.handle.join().map(Crosses::take)
    }

    /// The thread.
    #[must_use]
    pub fn thread(&self) -> &Thread {
        &self.thread
    }

    /// Whether the thread has returned. What it did is not ordered by that.
    #[track_caller]
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }
}

const _: () = {
    const fn crosses<T: Send + Sync>() {}
    crosses::<JoinHandle<std::rc::Rc<()>>>();
};

impl Thread {
    /// Its number.
    #[must_use]
    pub fn id(&self) -> ThreadId {
        self.id
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Gives the thread its token, which [`park`] waits for.
    #[track_caller]
    pub fn unpark(&self) {
        thread::unpark(self.id.0);
    }
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Thread").field("id", &self.id).field("name", &self.name()).finish()
    }
}

impl fmt::Debug for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ThreadId({})", self.0)
    }
}
