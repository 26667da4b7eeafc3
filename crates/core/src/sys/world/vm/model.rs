//! The harness: `ulocks-vm`'s own. Described in `crate::model`.

pub use ulocks_vm::explore::*;
pub use ulocks_vm::pi::set_priority;
pub use ulocks_vm::{crash, linear, process, signal, thread, thread_local};

/// Lets the process of this execution have `count` CPUs, from the next step on.
pub fn pretend_cpus(count: u32) {
    super::CPUS.set(count);
}
