//! The names as rustdoc reads them.

mod condvar;
mod mutex;
mod rwlock;

pub use condvar::*;
pub use mutex::*;
pub use rwlock::*;
