//! Signal handlers that may read what a lock protects, and masks that keep them off the thread that writes it.
//!
//! A handler interrupts its thread anywhere, also inside a critical section, and the thread does not go on before the
//! handler has returned: a handler that waits for the lock of its own thread waits for ever. So the writer must not
//! be interrupted by those who read, which is what a [`Mask`] is for, and the handlers must not interrupt each other,
//! which is what `Handlers` sees to.
//!
//! ```text
//! lock                                      handler, wrapped by `Handlers`
//!   M::raise()                                mask up: put aside, return
//!   shut the readers in handlers out          mask down: run the closure with a `Context`
//!   ... write ...
//!   let them in again
//!   M::lower()  <- runs what was put aside
//! ```
//!
//! Three kinds of masks:
//!
//! | mask | keeps off | costs a pair |
//! |---|---|---|
//! | [`Soft`] | handlers wrapped by `Handlers`, by deferring them | two plain stores |
//! | [`Hard`] | any handlers, by blocking their signals | two system calls |
//! | [`Unmasked`] | none, for locks that handlers do not use | nothing |
//!
//! # Signals that cannot wait
//! `SIGSEGV` and its like ([`SYNCHRONOUS`]) strike because of what the thread does, and it cannot go on before they
//! are handled. No mask keeps them off. Their handlers may try a lock once ([`Context::is_synchronous`]).
//!
//! # Forks, threads, jumps
//! - fork: the child has the masks of the thread that called it, and the signals that it had blocked. A signal that
//!   was put aside at that moment is handled in both processes.
//! - exec with a mask up: signals that are really blocked at that moment stay blocked in the new program, as always.
//! - A thread that ends with a mask up takes the signal that it has put aside with it. What the kernel keeps for the
//!   process goes to another thread.
//! - A handler returns. One that leaves by `siglongjmp` leaves behind errno, masks, and what it has hidden: it must not.
//! - In a library that is loaded by `dlopen`, the first access of a thread to its thread-local words may allocate.
//!   There a thread that handlers may strike should have used a mask before.
//!
//! # In the model worlds
//! The masks are the same code. What interrupts a thread there is the model's: it calls `dispatch` in its handler,
//! with the closure that would have been installed. On the virtual machine a signal strikes at any step; under loom
//! at the points of interruption, of which the masks have one after each store.

mod context;
#[cfg(not(any(all(ulocks_loom, feature = "loom"), all(ulocks_vm, feature = "vm"))))]
mod error;
#[cfg(not(any(all(ulocks_loom, feature = "loom"), all(ulocks_vm, feature = "vm"))))]
mod handlers;
mod hard;
mod mask;
#[cfg(any(all(ulocks_loom, feature = "loom"), all(ulocks_vm, feature = "vm")))]
mod models;
mod set;
mod soft;

pub use context::Context;
#[cfg(not(any(all(ulocks_loom, feature = "loom"), all(ulocks_vm, feature = "vm"))))]
pub use error::InstallError;
#[cfg(not(any(all(ulocks_loom, feature = "loom"), all(ulocks_vm, feature = "vm"))))]
pub use handlers::{Handlers, Installed};
pub use mask::{Hard, Mask, Soft, SoftMask, Unmasked};
#[cfg(any(all(ulocks_loom, feature = "loom"), all(ulocks_vm, feature = "vm")))]
pub use models::{dispatch, dispatch_with};
pub use set::{ASYNCHRONOUS, SIGNALS, SYNCHRONOUS, of};
#[doc(hidden)]
pub use soft::seeded;

pub(crate) use hard::Blocked;
#[cfg(not(any(all(ulocks_loom, feature = "loom"), all(ulocks_vm, feature = "vm"))))]
pub(crate) use set::RESERVED;
#[cfg(all(ulocks_vm, feature = "vm", not(all(ulocks_loom, feature = "loom"))))]
pub(crate) use set::signals_in;
pub(crate) use soft::Thread;
#[cfg(all(ulocks_loom, feature = "loom"))]
pub(crate) use soft::arrive;
