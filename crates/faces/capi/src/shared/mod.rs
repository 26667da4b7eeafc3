//! The same locks in memory that several processes map.
//!
//! A file of this folder differs from that of the same name above by the policy of its lock.

mod calock;
mod fair_mutex;
mod mutex;
mod pi_mutex;
mod rwlock;
mod semaphore;
