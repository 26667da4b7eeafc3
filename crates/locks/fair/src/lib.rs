#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod mutex;
mod semaphore;

pub use mutex::{
    FairCondvar, FairCondvarWith, FairMutex, FairMutexGuard, FairMutexWith, MappedFairMutexGuard,
    RawFairMutex,
};
pub use semaphore::{
    AcquireAsync, AcquireError, Closed, Permit, RawAcquireAsync, RawSemaphore, Semaphore, SemaphoreWith,
    TooManyPermits,
};
#[cfg(feature = "arc_lock")]
#[cfg_attr(docsrs, doc(cfg(feature = "arc_lock")))]
pub use semaphore::{AcquireOwnedAsync, OwnedPermit};
