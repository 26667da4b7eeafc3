//! loom 0.7 on the virtual machine of ulocks-vm: see the crate `ulocks-loom`.

pub use ulocks_loom::*;
