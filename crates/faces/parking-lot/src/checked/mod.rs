//! parking_lot's names on the checked locks of [`ulocks_debug`]: the names of 0.13 here, and those
//! of 0.12 in `v0_12`.
//!
//! They report broken rules, inversions of the lock order, and deadlocks that happen. A fault
//! panics, unless `ulocks_debug::set_policy` says otherwise. With the names of 0.12 it is printed,
//! and the process aborts. `MutexGuard::unlocked`, `bump` and others of lock_api 0.4 acquire for a
//! guard that lives on even if the acquisition panics, and no lock can tell such a call from
//! another. A function given to `set_policy` must not panic there either.
//!
//! # Examples
//! A program that prints what is reported and goes on:
//! ```
//! use ulocks_parking_lot::checked::{Mutex, RwLock};
//! use ulocks_parking_lot::checked::ulocks_debug::{Policy, Report, set_policy};
//!
//! fn judge(report: &Report) {
//!     eprintln!("{report}");
//! }
//! set_policy(Policy::Call(judge));
//!
//! let (first, second) = (Mutex::new(1), RwLock::new(2));
//! let sum = |one, other| one + other;
//! assert_eq!(sum(*first.lock(), *second.read()), 3);
//! assert_eq!(sum(*second.read(), *first.lock()), 3); // the other order: printed, and it goes on
//! ```
//!
//! # Classes
//! lock_api does not tell a lock where it is made. So these locks have no classes, and each has an
//! order of its own: `ulocks_debug::guide::rules`. With the feature `send_guard`, a release by
//! another thread is reported.

mod below;
#[path = "../current.rs"]
mod current;
pub mod deadlock;
#[path = "../locks.rs"]
mod locks;
#[cfg(feature = "v0_12")]
#[cfg_attr(docsrs, doc(cfg(feature = "v0_12")))]
#[path = "../v0_12/mod.rs"]
pub mod v0_12;

pub use crate::once::*;
pub use current::*;
pub use lock_api;
pub use locks::{RawFairMutex, RawMutex, RawRwLock, RawThreadId};
pub use ulocks_debug;
