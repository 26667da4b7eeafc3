//! A few small models in loom's world: that the locks work there, for models of protocols that are
//! built on them. What the planted bugs break, and all larger models, is the virtual machine's.
#![cfg(all(ulocks_loom, feature = "loom"))]

#[allow(dead_code, reason = "the virtual machine runs the other clients")]
#[path = "../common/closing.rs"]
mod closing;
mod mutex;
#[allow(dead_code, reason = "the virtual machine runs the other clients")]
#[path = "../common/permits.rs"]
mod permits;
mod semaphore;
mod tasks;
#[path = "../common/way.rs"]
mod way;
