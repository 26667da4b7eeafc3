//! The harness: `ulocks-vm`'s own. Described in `crate::model`.

pub use ulocks_vm::explore::*;
pub use ulocks_vm::pi::set_priority;
pub use ulocks_vm::{crash, linear, process, signal, thread};
