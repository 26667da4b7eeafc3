//! The typed face in a model world: lock_api's names and methods, over data whose accesses the model sees.
//!
//! Whoever holds the lock has an access open in the lock's `Watch`, from the moment the raw lock is acquired to just
//! before it is released (`lock`). Two accesses that overlap, or that nothing orders, fail the model.

#[cfg(feature = "arc_lock")]
mod arc;
mod condvar;
mod guard;
mod lock;
mod mapped;
mod mutex;

#[cfg(feature = "arc_lock")]
pub use arc::ArcMutexGuard;
pub use condvar::{Condvar, WaitTimeoutResult};
pub use guard::MutexGuard;
pub use mapped::MappedMutexGuard;
pub use mutex::Mutex;

use super::{Raw, RawCondvar, Token};
