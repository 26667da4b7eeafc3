#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod mutex;

pub use mutex::{
    FairCondvar, FairCondvarWith, FairMutex, FairMutexGuard, FairMutexWith, Line, MappedFairMutexGuard,
    RawFairMutex,
};
#[doc(hidden)]
pub use mutex::{private, shared};
