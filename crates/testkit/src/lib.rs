//! One client program for every lock of the family.
//!
//! A lock author names a raw lock and gets a program for each property the family promises. It uses
//! the lock, and fails if the property does not hold:
//!
//! | property | `model`: few operations, every order | on the machine: many operations |
//! |---|---|---|
//! | exclusion and publication | [`model::exclusion`] | `stress::exclusion`, `shared::exclusion` |
//! | no thread sleeps for ever | [`model::no_lost_wake`] | every one of them, by its `watchdog`; every test, by `limit` |
//! | a wait that gives up strands no thread | [`model::timeout_vs_unlock`] | `stress::timed`, `stress::cancel`, `shared::timed` |
//! | a wait that gives up has reached its deadline | [`model::timeout_vs_unlock`], [`model::no_lost_wake`] | `stress::timed`, `stress::cancel`, `shared::timed`, `stress::waits_for_the_release` |
//! | a wait that a signal handler ends strands no thread | `model::interrupt_vs_unlock`, on the virtual machine | `stress::interrupted`, `interrupt::mutex`, `interrupt::rwlock`, `interrupt::condvar` |
//! | the release is the last access | [`model::last_unlocker_frees`] | `stress::last_unlocker_unmaps` |
//! | a death lets no thread in | [`model::exclusion_despite_deaths`] | |
//! | `try_lock` tells the truth | [`model::try_lock_coherence`] | `stress::exclusion` |
//! | progress with many more threads than CPUs | | `stress::oversubscribed` |
//! | a new lock is all zero | | `suite::new_is_all_zero` |
//! | a kernel that refuses a call strands no thread, and leaves no place in a queue behind | | `refusal::waiter_aborts`, `refusal::waiter_unwinds`, `refusal::release_aborts` |
//! | 10,000 threads can wait at once, and allocate nothing | | `crowd::ten_thousand_wait` |
//! | the first to come is served first | [`model::in_order`] | `stress::order` |
//!
//! [`suite`] makes the tests of a mutex of these clients, with one call of a macro for each kind.
//!
//! Reader-writer locks have clients of their own: [`model::rw`] and [`model::upgrade`], and on the
//! machine `rw::stress`, `rw::shared` and `rw::crowd`.
//!
//! [`sets`] is a sequential semaphore array, which real ones are compared with; on the virtual
//! machine `model::sets` looks for an order of its steps that explains what they did.
//!
//! [`plain`] has the locks with which the kit itself is tested. The mutants of these locks show
//! that every client fails on the bug it is there for: a client that cannot fail proves nothing.

#[cfg(world = "machine")]
mod machine;
pub mod model;
pub mod open;
pub mod order;
mod passes_on;
pub mod plain;
#[cfg(not(world = "machine"))]
pub mod prepared;
#[cfg(world = "machine")]
pub use machine::{
    Child, allocations, cancel, cdylib, crowd, interrupt, limit, refusal, rw, shared, storm, stress, task,
    watchdog,
};
pub mod sets;
pub mod suite;
pub mod tasks;
pub mod thread;
pub mod tickets;

use ulocks_core::raw::Initial;

/// An unlocked `L`, in whichever world this is.
pub fn new_lock<L: Initial>() -> L {
    ulocks_core::initial!(L)
}
