// Of two definitions of a link the first counts. So these replace the README's links to docs.rs.
//! [`ulocks::Mutex`]: crate::Mutex
//! [`ulocks::RwLock`]: crate::RwLock
//! [`ulocks::Condvar`]: crate::Condvar
//! [`ulocks::Semaphore`]: crate::Semaphore
//! [`ulocks::fair::FairMutex`]: crate::fair::FairMutex
//!
#![doc = include_str!("../README.md")]
//!
//! # Where things are
//!
//! | module | what |
//! |---|---|
//! | [`Mutex`], [`RwLock`], [`Condvar`], [`Semaphore`], [`ReentrantMutex`] | the locks to begin with, by the names that std and parking_lot have |
//! | [`which`] | which lock for which need, at more length |
//! | [`migrate`] | from parking_lot, std and tokio: old names and new ones, and what behaves differently |
//! | [`unfair`] | barging locks: `BargingMutex`, `ThroughputMutex`, `AsymMutex`, `ByteMutex`, and their condition variables |
//! | [`fair`] | strictly in order of arrival: `FairMutex`, `Semaphore` |
//! | [`pi`] | priority inheritance: `PiMutex`, `PiCondvar` |
//! | [`calock`] | convoy avoidance, for far more threads than CPUs: `Calock`, `CalockCondvar` |
//! | [`psrwlock`] | readers by class, writers that sift: `PsRwLock` |
//! | [`semarray`] | sets of operations on many semaphores, all or nothing: `SemArray` |
//! | `debug`, `checked` | with the feature `debug`: locks that enforce their rules and a common order, and the same names for plain locks in release builds |
//! | `profile` | with the feature `profile`: where the time goes in the locks, and who made whom wait |
//! | [`policy`] | the type parameter of a lock: where it lives, how its waiters spin, what it counts |
//! | [`interrupt`] | waits that a signal handler ends: `lock_interruptible` and its kin |
//! | [`task`] | acquisitions of a task: `lock_async`, in one queue with the threads |
//! | [`time`] | clocks and deadlines |
//! | [`Raw`] | a lock of the family for `lock_api`, whose traits it has |
//!
//! The crate `ulocks-core` is for a lock of your own, for code that is generic over locks, and for
//! models. It has futexes, atomics, the traits of raw locks and the harness of models.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod defaults;
pub mod migrate;
pub mod policy;
pub mod which;

pub use defaults::*;
#[doc(inline)]
pub use ulocks_calock as calock;
#[doc(inline)]
pub use ulocks_core::api::Raw;
#[doc(no_inline)]
pub use ulocks_core::lock_api;
#[cfg(feature = "debug")]
#[cfg_attr(docsrs, doc(cfg(feature = "debug")))]
#[doc(inline)]
pub use ulocks_debug as debug;
#[cfg(feature = "debug")]
#[cfg_attr(docsrs, doc(cfg(feature = "debug")))]
#[doc(inline)]
pub use ulocks_debug::checked;
#[doc(inline)]
pub use ulocks_fair as fair;
#[doc(inline)]
pub use ulocks_pi as pi;
#[cfg(feature = "profile")]
#[cfg_attr(docsrs, doc(cfg(feature = "profile")))]
#[doc(inline)]
pub use ulocks_profile as profile;
#[doc(inline)]
pub use ulocks_psrwlock as psrwlock;
#[doc(inline)]
pub use ulocks_semarray as semarray;
#[doc(inline)]
pub use ulocks_unfair as unfair;

#[doc(inline)]
pub use policy::{Policy, Private, Shared};
#[doc(inline)]
pub use ulocks_core::{interrupt, task, time};
