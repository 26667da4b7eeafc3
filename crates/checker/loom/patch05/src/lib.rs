//! loom 0.5 on the virtual machine of ulocks-vm: see the crate `ulocks-loom`.

pub use ulocks_loom::*;
