#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod condvar;
mod mutex;

pub use condvar::{PiCondvar, PiCondvarWith, PiWaitResult, RawPiCondvar};
pub use mutex::{
    MappedPiMutexGuard, PiLockError, PiLockResult, PiMutex, PiMutexGuard, PiMutexWith, PiTryLockResult,
    RawPiMutex, State, Taken,
};

/// The protocols with their seeded bugs, for the models.
#[doc(hidden)]
pub mod model {
    pub use crate::condvar::raw::{Protocol as Condvar, seeded as condvar};
    pub use crate::mutex::raw::{Protocol as Mutex, seeded as mutex};
}
