//! The worlds a lock can run in. Exactly one is compiled, and all of them offer the same names:
//!
//! | item | what |
//! |---|---|
//! | `atomic` | `AtomicBool`, `AtomicU8`, `AtomicU32`, `AtomicU64`, `AtomicUsize`, `AtomicPtr`, `Ordering`, `fence`, `compiler_fence` |
//! | `UnsafeCell` | data behind `with` and `with_mut` |
//! | `spin_until`, `pause` | the only busy-wait; one processor hint |
//! | `yield_now` | a scheduling point of a model; nothing on the machine |
//! | `without_unwinding` | a stretch of code out of which no panic gets; on the machine it aborts |
//! | `is_abandoned` | whether a panic ends the execution of a model; never on the machine |
//! | `interruption_point` | where a modelled signal or death may strike; nothing on the machine |
//! | `kernel` | the futex operations, addresses as keys |
//! | `clock` | the reading of a clock, the moment of an `Instant`, whether a deadline has passed |
//! | `membarrier` | a fence that one side pays for |
//! | `pause` | how many pauses a waiter's nanoseconds are, and what a look costs |
//! | `current_cpu`, `usable_cpus` | the CPU the caller runs on, if known; those on which it may run, modulo 64 |
//! | `has_rates`, `with_releases` | whether it takes time to run; what the thread remembers of its releases |
//! | `declare` | `const_fn!`, `initial!`, `each!`, `sync_static!`, `sync_table!`; all but the last two are the same in all models (`models`) |
//! | `pi` | the priority-inheriting futex |
//! | `robust` | the robust list of the calling thread; not in loom |
//! | `thread_id` | the number of the calling thread |
//! | `process_generation` | a number that tells the calling process from its parent and its children, if known |
//! | `this_process` | the same, known in any case; not in loom |
//! | `only_cpu` | the CPU that the calling thread is bound to, if it is bound to one; not in loom |
//! | `pid_namespace` | a number that tells the calling thread's PID namespace from others, never 0; not in loom |
//! | `signal` | what a thread has of masks; to block signals really, here or in what a handler has interrupted |
//!
//! A model world has two things more: `model`, its public harness, and `Watch`, with which the
//! typed face `api` tells the model that protected data is being accessed.
//!
//! `build.rs` selects the world and says so in `cfg(world = "NAME")`. A further world is one more
//! folder, one more arm here, and its name in `build.rs`; no lock changes.

#[cfg(world = "loom")]
#[path = "loom/mod.rs"]
mod imp;
#[cfg(world = "vm")]
#[path = "vm/mod.rs"]
mod imp;
#[cfg(world = "machine")]
#[path = "machine/mod.rs"]
mod imp;

#[cfg(not(world = "machine"))]
mod models;
mod poll_cost;
#[cfg(not(world = "machine"))]
pub use models::{is_abandoned, without_unwinding};
pub(crate) use poll_cost::PollCost;

pub use imp::*;
