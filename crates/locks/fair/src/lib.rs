#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod mutex;
mod semaphore;

pub use mutex::{
    FairCondvar, FairCondvarWith, FairMutex, FairMutexGuard, FairMutexWith, MappedFairMutexGuard,
    RawFairMutex,
};
#[cfg(feature = "arc_lock")]
#[cfg_attr(docsrs, doc(cfg(feature = "arc_lock")))]
pub use semaphore::OwnedPermit;
pub use semaphore::{AcquireError, Closed, Permit, RawSemaphore, Semaphore, SemaphoreWith, TooManyPermits};
