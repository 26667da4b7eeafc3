#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod asym;
mod mutex;
mod throughput;

#[doc(hidden)]
pub use asym::seeded as asym_seeded;
pub use asym::{
    AsymCondvar, AsymCondvarWith, AsymMutex, AsymMutexGuard, AsymMutexWith, MappedAsymMutexGuard,
    RawAsymMutex,
};
pub use mutex::{Condvar, CondvarWith, MappedMutexGuard, Mutex, MutexGuard, MutexWith, RawMutex, State};
#[doc(hidden)]
pub use throughput::seeded as throughput_seeded;
pub use throughput::{
    After, Bound, HandOff, MappedThroughputMutexGuard, RawThroughputMutex, ThroughputCondvar,
    ThroughputCondvarWith, ThroughputMutex, ThroughputMutexGuard, ThroughputMutexWith, ThroughputState,
};
