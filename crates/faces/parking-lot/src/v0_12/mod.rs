//! The names of parking_lot 0.12, over lock_api 0.4.

mod condvar;
mod locks;

pub use super::locks::{RawFairMutex, RawMutex, RawThreadId};
pub use crate::once::*;
pub use condvar::{Condvar, WaitTimeoutResult};
pub use lock_api_04 as lock_api;

/// The raw lock of [`RwLock`].
pub type RawRwLock = super::locks::RawRwLock;

crate::traits::names!();

/// A mutex, in a constant expression.
pub const fn const_mutex<T>(value: T) -> Mutex<T> {
    Mutex::const_new(RawMutex::new(), value)
}

/// A fair mutex, in a constant expression.
pub const fn const_fair_mutex<T>(value: T) -> FairMutex<T> {
    FairMutex::const_new(RawFairMutex::new(), value)
}

/// A reentrant mutex, in a constant expression.
pub const fn const_reentrant_mutex<T>(value: T) -> ReentrantMutex<T> {
    ReentrantMutex::const_new(RawMutex::new(), RawThreadId, value)
}

/// A reader-writer lock, in a constant expression.
pub const fn const_rwlock<T>(value: T) -> RwLock<T> {
    RwLock::const_new(RawRwLock::new(), value)
}

