//! The id of the calling thread: what the kernel calls it, what a lock writes down as its owner.
//!
//! It may be asked for in global allocators, in signal handlers, and while a thread is being torn
//! down. It is right in the child of a fork. In the model worlds it is the number of the thread,
//! from one.

use crate::sys::world;

/// The kernel's id of the calling thread (`gettid`): never 0, at most 2^30 - 1.
///
/// The id is unique in its pid namespace while the thread lives. Processes of different pid
/// namespaces that share a lock cannot tell each other's threads by it.
///
/// # Blocking
/// Never. The first call of a thread makes one system call, later ones none.
///
/// # Signals and forks
/// Async-signal-safe, and correct in a child of fork, `_Fork` or `clone` without `CLONE_VM`. A
/// child of `vfork` gets its parent's id if the parent's thread has asked before. Otherwise it must
/// not ask: its id would stay its parent's.
///
/// # Examples
/// ```
/// use ulocks_core::tid;
///
/// let mine = tid::current();
/// assert_eq!(mine, tid::current());
/// assert_ne!(mine, std::thread::spawn(tid::current).join().unwrap());
/// ```
#[inline]
#[must_use]
pub fn current() -> u32 {
    world::thread_id()
}
