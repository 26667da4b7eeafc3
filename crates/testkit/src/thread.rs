//! Threads of the world this is compiled for.

#[cfg(world = "loom")]
pub use loom::thread::{JoinHandle, spawn};
#[cfg(world = "machine")]
pub use std::thread::{JoinHandle, spawn};
#[cfg(world = "vm")]
pub use ulocks_core::model::thread::{JoinHandle, spawn};

/// The identity of a thread, in the world this is compiled for.
#[cfg(world = "loom")]
pub type Id = loom::thread::ThreadId;
/// The identity of a thread, in the world this is compiled for.
#[cfg(world = "machine")]
pub type Id = std::thread::ThreadId;
/// The identity of a thread, in the world this is compiled for.
#[cfg(world = "vm")]
pub type Id = usize;

/// The identity of the calling thread.
pub fn id() -> Id {
    #[cfg(world = "loom")]
    return loom::thread::current().id();
    #[cfg(world = "machine")]
    return std::thread::current().id();
    #[cfg(world = "vm")]
    return ulocks_core::model::thread::current();
}

/// `std`'s in every world. A model need not try the orders of reference counts, and loom's `Arc`
/// aborts the process when it is dropped by a panic, so that no failure could be reported.
pub use std::sync::Arc;

/// Runs `body` in a thread of its own, on what the threads share.
#[track_caller]
pub fn with<T: ?Sized + Send + Sync + 'static, R: Send + 'static>(
    shared: &Arc<T>,
    body: impl FnOnce(&T) -> R + Send + 'static,
) -> JoinHandle<R> {
    let shared = Arc::clone(shared);
    spawn(move || body(&shared))
}

/// Runs `body(0)` to `body(threads - 1)` at the same time, the last on the calling thread, and
/// returns what they return.
///
/// # Panics
/// If one of them does.
pub fn together<R: Send + 'static>(
    threads: usize,
    body: impl Fn(usize) -> R + Send + Sync + 'static,
) -> Vec<R> {
    let body = Arc::new(body);
    let others: Vec<_> = (0..threads - 1).map(|me| with(&body, move |body| body(me))).collect();
    let last = body(threads - 1);
    let mut results: Vec<_> =
        others.into_iter().map(|other| other.join().expect("a client thread panicked")).collect();
    results.push(last);
    results
}
