//! What threads do in a model, for each of the worlds that can check it. The world's `thread` is
//! named by the test this is a module of.

#[allow(dead_code, reason = "loom runs the smaller ones")]
pub mod pool;
pub mod queue;

use crate::thread::{self, JoinHandle};
use std::sync::Arc;

/// Starts a thread on what is shared.
pub fn spawn<T: Send + Sync + 'static, R: Send + 'static>(
    shared: &Arc<T>,
    f: impl FnOnce(&T) -> R + Send + 'static,
) -> JoinHandle<R> {
    let shared = Arc::clone(shared);
    thread::spawn(move || f(&shared))
}
