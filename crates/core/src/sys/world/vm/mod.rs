//! The world of the virtual machine: atomics with a history, cells that are watched, the futex and
//! the clock of `ulocks-vm`. Its harness is that crate's; `crate::model` passes it on.
//!
//! What it shows that loom does not: any number of threads, read-modify-writes and failing
//! exchanges that read old values, weak exchanges that fail, deadlines on a clock, requeues,
//! several futexes in one wait. What a model must respect is little:
//! - all state is per execution: statics of a model are declared with `sync_static!`;
//! - a panic ends the execution: guards do nothing while a thread panics.

pub(crate) mod clock;
mod declare;
pub(crate) mod kernel;
pub(crate) mod membarrier;
pub mod model;
pub(crate) mod pause;
pub(crate) mod pi;
pub(crate) mod robust;
pub(crate) mod signal;

/// Atomic types of this world.
pub mod atomic {
    pub use ulocks_vm::sync::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence, fence,
    };
}

use crate::sys::types::releases::Releases;
pub(crate) use ulocks_vm::sync::Watch;
pub use ulocks_vm::sync::{UnsafeCell, interruption_point, pause, spin_until, yield_now};

/// For `sync_static!`.
#[doc(hidden)]
pub use ulocks_vm as __model;

/// Which CPU a thread is on: of those of the cost model; in an exploration unknown, as on a machine
/// that does not say.
pub(crate) fn current_cpu() -> Option<u32> {
    ulocks_vm::thread::cpu().map(|cpu| u32::try_from(cpu).expect("a machine of at most a thousand CPUs"))
}

/// On which CPUs a thread may run: on all of the cost model's; in an exploration on all, as far as
/// is known.
pub(crate) fn usable_cpus() -> u64 {
    match ulocks_vm::thread::cpus() {
        Some(count @ 1..64) => (1 << count) - 1,
        _ => u64::MAX,
    }
}

/// How many CPUs a process of an exploration may use.
static CPUS: ulocks_vm::sync::PerRun<core::cell::Cell<u32>> =
    ulocks_vm::sync::PerRun::new(|| core::cell::Cell::new(u64::BITS));

/// How many CPUs the process may use: all of the cost model's; in an exploration as many as
/// [`model::pretend_cpus`] says.
pub(crate) fn cpu_count() -> u32 {
    match ulocks_vm::thread::cpus() {
        Some(count) => u32::try_from(count).expect("a machine of at most a thousand CPUs"),
        None => CPUS.get(),
    }
}

/// Whether it takes time to run: in the cost model only.
pub(crate) fn has_rates() -> bool {
    ulocks_vm::thread::cpus().is_some()
}

/// Of each thread of a run.
static RELEASES: ulocks_vm::sync::PerRun<core::cell::RefCell<Vec<Releases>>> =
    ulocks_vm::sync::PerRun::new(core::cell::RefCell::default);

pub(crate) fn with_releases<R>(f: impl FnOnce(&Releases) -> R) -> R {
    let (mut releases, me) = (RELEASES.borrow_mut(), ulocks_vm::thread::current());
    if releases.len() <= me {
        releases.resize_with(me + 1, Releases::default);
    }
    f(&releases[me])
}

/// They do not change.
pub(crate) fn recount_cpus() {}

/// There is none.
pub(crate) fn keep_cpu_quota() {}

/// The calling thread as a thread id: its number in the model, from one.
pub(crate) fn thread_id() -> u32 {
    u32::try_from(ulocks_vm::thread::current() + 1).expect("a model of so many threads does not end")
}

/// The CPU that the calling thread is bound to.
pub(crate) fn only_cpu() -> Option<u32> {
    None
}

/// A model has one PID namespace.
pub(crate) fn pid_namespace() -> u32 {
    1
}

/// A model does not fork the processes whose locks are private.
pub(crate) fn process_generation() -> Option<u32> {
    Some(1)
}

/// As [`process_generation`].
pub(crate) fn this_process() -> u64 {
    1
}

/// Sets `bit` in the address that `word` holds; whether it was set.
#[inline(always)]
#[track_caller]
pub(crate) fn set_bit<T>(word: &atomic::AtomicPtr<T>, bit: usize, order: atomic::Ordering) -> bool {
    word.fetch_or(bit, order).addr() & bit != 0
}
