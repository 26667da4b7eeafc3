//! Signal handlers that may read what a lock protects, and masks that keep them off the thread that
//! writes it.
//!
//! A handler interrupts its thread anywhere, also inside a critical section. The thread does not go
//! on before the handler has returned. So a handler that waits for a lock of its own thread waits
//! for ever. So handlers that read must not interrupt the writer: a [`Mask`] keeps them off. And
//! handlers must not interrupt each other: `Handlers` sees to that.
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
//! `SIGSEGV` and its like ([`SYNCHRONOUS`]) strike because of what the thread does, and it cannot
//! go on before they are handled. If such a signal is blocked when it is raised, the kernel kills
//! the process. So no mask and no wrapped handler blocks one. Their handlers may interrupt what a
//! mask protects, and other handlers, and may try a lock once ([`Context::is_synchronous`]).
//!
//! | | raised by a fault or a trap ([`Context::is_fault`]) | sent by `kill`, `raise`, `abort` |
//! |---|---|---|
//! | thread | the thread that did it | any that does not block it, or the thread that it was sent to |
//! | while a mask is up | handled at once | handled at once |
//! | in a handler of another signal | handled at once | handled at once |
//! | in a handler of the same signal | kills the process, as with any handler | waits until that has returned |
//! | blocked by the program itself | kills the process | waits |
//! | the closure returns | the instruction is repeated; after a trap the next one follows | the thread goes on |
//! | the closure has [passed it on](Context::pass_on) | goes to the action before `Handlers` | goes to the action before `Handlers` |
//!
//! The action before is called as the kernel would call it if nothing had been installed, but
//! always on the stack of the wrapper. The default action ends the process, with the fault in its
//! core dump. To ignore a fault is to die of it, as the kernel has it; a signal that was sent can
//! be ignored.
//!
//! The standard library's handler of `SIGSEGV` and `SIGBUS` tells of a stack overflow and aborts.
//! For other addresses it sets the default action and returns, so that the fault comes again and
//! kills. Of a `SIGSEGV` that was *sent* nothing comes again: the thread goes on, without any
//! handler for the next one. An overflow reaches this handler also if the closure returns without a
//! word, on x86-64 and AArch64; elsewhere the closure has to pass it on.
//!
//! Their handlers run on the thread's alternate stack (`SA_ONSTACK`). Threads of the standard
//! library have one of `max(SIGSTKSZ, AT_MINSIGSTKSZ)`, mostly 8 KiB. The kernel's frame takes
//! 3.4 KiB of it on a processor with AVX-512. So a fault in the handler of a fault, which adds a
//! second frame, can overflow it, and kills then: a thread whose handlers may fault needs a larger
//! one (`sigaltstack`). On a thread that has none they run on its own stack: faults are handled
//! there, but for an overflow of that stack, which kills. Handlers of other signals run on the
//! stack of what they interrupt.
//!
//! # Forks, threads, jumps
//! - fork: the child has the masks of the thread that called it, and the signals that it had
//!   blocked. A signal that was put aside at that moment is handled in both processes.
//! - threads: a new thread has no masks, but inherits the signals that its maker really blocks.
//!   Suppose that it is made while a [`Hard`] mask is up, or while a [`Soft`] one is and a signal
//!   is put aside. Then those signals stay blocked in it for good, and no error shows. Make it
//!   before the mask is raised or after it is lowered, or by `spawn`, or give any other way of
//!   making threads its work [`without_masks`].
//! - exec with a mask up: signals that are really blocked at that moment stay blocked in the new
//!   program, as always.
//! - A thread that ends with a mask up takes the signal that it has put aside with it. What the
//!   kernel keeps for the process goes to another thread.
//! - A handler returns. One that leaves by `siglongjmp` leaves behind errno, masks, and what it has
//!   hidden: it must not.
//! - In a library that is loaded by `dlopen`, the first access of a thread to its thread-local
//!   words may allocate. There a thread that handlers may strike should have used a mask before.
//!
//! # In the model worlds
//! The masks are the same code. What interrupts a thread there is the model's: it calls `dispatch`
//! in its handler, with the closure that would have been installed. On the virtual machine a signal
//! strikes at any step; under loom at the points of interruption, of which the masks have one after
//! each store.

mod context;
#[cfg(world = "machine")]
mod error;
#[cfg(world = "machine")]
mod handlers;
mod hard;
mod mask;
#[cfg(not(world = "machine"))]
mod models;
#[cfg(world = "machine")]
mod previous;
mod set;
mod soft;
mod thread;

pub use context::Context;
#[cfg(world = "machine")]
pub use error::InstallError;
#[cfg(world = "machine")]
pub use handlers::{Handlers, Installed};
pub use mask::{Hard, Mask, Soft, Unmasked};
#[cfg(not(world = "machine"))]
pub use models::dispatch;
pub use set::{ASYNCHRONOUS, SIGNALS, SYNCHRONOUS, of};
#[cfg(world = "machine")]
pub use thread::spawn;
pub use thread::without_masks;

pub(crate) use hard::Blocked;
#[cfg(world = "machine")]
pub(crate) use set::RESERVED;
#[cfg(world = "vm")]
pub(crate) use set::signals_in;
pub(crate) use soft::Thread;
#[cfg(world = "loom")]
pub(crate) use soft::arrive;
