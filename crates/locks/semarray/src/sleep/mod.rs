//! Static memory in which threads sleep: waiters in groups, and threads that find a cell locked in
//! slots.

#[doc(hidden)]
pub mod groups;
#[doc(hidden)]
pub mod slots;
