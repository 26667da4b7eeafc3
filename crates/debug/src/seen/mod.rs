//! What threads see of each other: their lists of held locks, their waits, the classes of locks,
//! and what signal handlers leave. The virtual machine models it.

pub(crate) mod access;
pub(crate) mod asked;
pub(crate) mod class;
#[cfg(checking)]
pub(crate) mod counting;
#[cfg(checking)]
pub(crate) mod events;
pub(crate) mod identity;
pub(crate) mod known;
mod observed;
pub(crate) mod policy;
#[cfg(checking)]
pub(crate) mod probes;
pub(crate) mod report;
pub(crate) mod signal;
pub(crate) mod slot;
pub(crate) mod stacks;
pub(crate) mod thread;
pub(crate) mod wait;
