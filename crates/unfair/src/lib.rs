#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod mutex;

pub use mutex::{Condvar, CondvarWith, MappedMutexGuard, Mutex, MutexGuard, MutexWith, RawMutex, State};
