#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod condvar;
mod mutex;

pub use condvar::{PiCondvar, PiCondvarOf, PiCondvarWith, PiWaitResult, RawPiCondvar};
#[doc(hidden)]
pub use mutex::State;
pub use mutex::{
    MappedPiMutexGuard, Orphan, PiLockError, PiLockResult, PiMutex, PiMutexGuard, PiMutexOf, PiMutexWith,
    PiTryLockResult, RawPi, RawPiMutex, Taken,
};
