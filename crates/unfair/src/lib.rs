#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod mutex;
mod throughput;

pub use mutex::{Condvar, CondvarWith, MappedMutexGuard, Mutex, MutexGuard, MutexWith, RawMutex, State};
#[doc(hidden)]
pub use throughput::seeded as throughput_seeded;
pub use throughput::{
    After, Bound, HandOff, MappedThroughputMutexGuard, RawThroughputMutex, ThroughputCondvar,
    ThroughputCondvarWith, ThroughputMutex, ThroughputMutexGuard, ThroughputMutexWith, ThroughputState,
};
