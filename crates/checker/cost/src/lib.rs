//! What lock code would cost on many CPUs.
//!
//! The same source that runs on a machine runs here on virtual CPUs, up to [`MOST_CPUS`] of them,
//! one event at a time. Every access is charged to the cache line it touches, to the kernel
//! (sleeping, waking, time slices), or to the CPU. A line has a directory of owners and sharers,
//! with distances and queues. The outcome is a throughput, exact counts of remote memory
//! references, fairness, and waits. Two equal runs have equal outcomes, to the last bit, if what
//! their threads share is aligned to lines. Otherwise an allocator may put two words on one line in
//! one of the runs only.
//!
//! **An outcome is a prediction from the parameters of its [`Machine`], no better than they are.**
//! It carries both marks, in text and in JSON. What holds up beyond machines that were measured are
//! counts, orders and growth, not nanoseconds.
//!
//! ```
//! use ulocks_vm_cost::{Machine, Run};
//! use ulocks_vm::sync::{AtomicU32, Ordering, spin_until};
//!
//! #[repr(align(64))]
//! struct Line(AtomicU32);
//!
//! let ticket = |threads| {
//!     Run::new(Machine::example(), threads)
//!         .contend(
//!             || (Line(AtomicU32::new(0)), Line(AtomicU32::new(0))),
//!             |(next, serving), worker| {
//!                 let mine = worker.acquire(|| {
//!                     let mine = next.0.fetch_add(1, Ordering::Relaxed);
//!                     spin_until(|| serving.0.load(Ordering::Acquire) == mine);
//!                     mine
//!                 });
//!                 worker.hold();
//!                 serving.0.store(mine.wrapping_add(1), Ordering::Release);
//!             },
//!         )
//!         .unwrap()
//! };
//! // All threads read `serving` whenever it changes.
//! assert!(ticket(64).transfers_per_operation > 2.0 * ticket(16).transfers_per_operation);
//! ```
//!
//! # What is modelled
//!
//! - **Lines** of 64 bytes, at the addresses that atomics and cells really have, so false sharing
//!   comes out; MESI with a queue for each line, three distances, and memory. State that the
//!   closure of [`Run::of`] makes starts on a line of its own; what it allocates lies where the
//!   allocator puts it, so *align what must not share a line*.
//! - **Spinning**: [`spin_until`](ulocks_vm::sync::spin_until) sleeps on the lines that its round
//!   read and wakes when one is taken by a writer, at the time its next look would have been. It
//!   holds its CPU meanwhile. A round that writes, pauses or reads the clock without a deadline is
//!   executed again and again instead.
//! - **The store buffer**, only as far as [`work`](ulocks_vm::sync::work) and pauses behind a store
//!   hide the wait for its line. The effects of stores are in order and at once: this engine shows
//!   no weak memory.
//! - **The kernel**: futexes with their queues, system call, wake-up, interrupt and sleep costs,
//!   timeouts with slack.
//! - **The scheduler**: time slices, context switches, threads that move to idle CPUs.
//!
//! # What is not
//!
//! Capacity and conflict misses, prefetching, out-of-order overlap of loads, hardware threads that
//! share a core and its lines, frequency, hypervisors, interrupts other than the scheduler's, home
//! nodes of lines, bandwidth other than a line's, idle states, priorities, and the kernel's own
//! cache lines. Spurious wake-ups and spurious failures do not happen: they are a matter for an
//! explorer.

mod engine;
mod events;
mod facade;
mod kernel;
mod machine;
mod mesi;
mod noise;
mod report;
mod run;
mod scheduler;
mod state;
mod syscalls;
#[cfg(test)]
mod tests;
mod units;

pub use machine::{BadMachine, Kernel, MOST_CPUS, Machine, Memory, Origin, Scheduler, Topology};
pub use mesi::Traffic;
pub use noise::{Late, Noise, Odds};
pub use report::{CostError, Ended, Fairness, KernelCounts, Outcome, Predicted, Stuck, StuckThread, Waits};
pub use run::{Placement, Run, Worker};
