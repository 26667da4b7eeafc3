//! The rules of locks, and the lists of who holds what. They know of no lock but its address.

pub(crate) mod accept;
pub(crate) mod clock;
pub(crate) mod current;
pub(crate) mod deliver;
mod dump;
pub(crate) mod faults;
pub(crate) mod fork;
pub(crate) mod handler;
pub mod held;
pub(crate) mod once;
pub(crate) mod order;
pub(crate) mod returned;
pub(crate) mod waiting;
pub(crate) mod watch;
mod watched;
