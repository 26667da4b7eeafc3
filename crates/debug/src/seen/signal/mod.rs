//! Locks in signal handlers.
//!
//! A handler interrupts its thread anywhere, also inside of the checker. So it must not use the
//! record of its thread, which may be half written. [`SignalContext`] gives the handler a *record
//! of its own* until it returns: for the checker, a handler is one more thread.
//!
//! | state of a thread | its record | from | to |
//! |---|---|---|---|
//! | normal | `R`, nothing yet, or nothing any more | the return of the last handler | `enter` |
//! | in a handler | `H`, which says the signal and `R` | `enter` | the drop of the context |
//! | in a handler of another handler | `H2`, which says the signal and `H` | `enter` | the drop |
//!
//! # What makes it safe in a signal handler
//! - `H` is a record that no thread has, or it lies in pages of the kernel's (`pages.rs`). A record
//!   is taken by one compare-and-exchange. So is what else a handler leaves behind: a new class, a
//!   new use, and a new nesting.
//! - Of `R` nothing is written. Its list is read as another thread reads it.
//! - A handler does not touch the graph of the order: that is behind a lock, and allocates. It
//!   leaves its edges to threads (`news.rs`).
//! - It counts nothing for the profile, makes no events, and does not walk for deadlocks.
//! - The report of a fault in a handler allocates, and may wait for ever in the allocator, if the
//!   handler has interrupted that. Then a program hangs that is wrong.
//!
//! What the handler has learnt is reported by threads (`uses.rs`, `news.rs`). A handler itself
//! reports what cannot wait: its thread holds the lock that the handler waits for.

mod list;
mod news;
mod pages;
mod uses;

pub(crate) use news::{Edge, earlier, edges, take};
#[cfg(checking)]
pub(crate) use news::{interrupts, put_back};
pub(crate) use pages::{forget, keep, zeroed};
#[cfg(checking)]
pub(crate) use uses::handled;
pub(crate) use uses::{Uses, used};
