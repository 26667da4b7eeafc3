//! As `std::sync`.

pub mod atomic;
pub use ulocks_vm::sync::mpsc;

pub use std::sync::{LockResult, TryLockResult};
pub use ulocks_vm::future::Notify;
pub use ulocks_vm::sync::{
    Arc, Barrier, BarrierWaitResult, Condvar, Mutex, MutexGuard, Once, OnceLock, RwLock, RwLockReadGuard,
    RwLockWriteGuard, WaitTimeoutResult, Weak,
};
