#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod faces;

#[cfg(any(checking, modelled))]
#[cfg_attr(modelled, allow(dead_code))]
mod access;
#[cfg(all(checking, feature = "arc_lock"))]
mod arc;
#[cfg(any(checking, modelled))]
#[cfg_attr(modelled, allow(dead_code))]
mod asked;
#[cfg(checking)]
mod checker;
#[cfg(any(checking, modelled))]
#[cfg_attr(modelled, allow(dead_code))]
mod class;
#[cfg(checking)]
mod clock;
#[cfg(checking)]
mod dump;
#[cfg(checking)]
mod fork;
#[cfg(checking)]
pub mod held;
#[cfg(checking)]
mod identity;
#[cfg(checking)]
mod listed;
#[cfg(modelled)]
#[doc(hidden)]
pub mod modelled;
#[cfg(checking)]
mod mutex;
#[cfg(any(checking, modelled))]
#[cfg_attr(modelled, allow(dead_code))]
mod observed;
#[cfg(checking)]
mod order;
#[cfg(checking)]
mod pi;
#[cfg(any(checking, modelled))]
#[cfg_attr(modelled, allow(dead_code))]
mod policy;
#[cfg(checking)]
pub mod profile;
#[cfg(checking)]
mod reentrant;
#[cfg(any(checking, modelled))]
#[cfg_attr(modelled, allow(dead_code))]
mod report;
#[cfg(all(checking, feature = "shm"))]
mod robust;
#[cfg(checking)]
mod rules;
#[cfg(checking)]
mod rwlock;
#[cfg(checking)]
mod semaphore;
#[cfg(any(checking, modelled))]
#[cfg_attr(modelled, allow(dead_code))]
mod signal;
#[cfg(any(checking, modelled))]
#[cfg_attr(modelled, allow(dead_code))]
mod slot;
#[cfg(any(checking, modelled))]
#[cfg_attr(modelled, allow(dead_code))]
mod stacks;
#[cfg(any(checking, modelled))]
#[cfg_attr(modelled, allow(dead_code))]
mod thread;
#[cfg(any(checking, modelled))]
#[cfg_attr(modelled, allow(dead_code))]
mod thread_identity;
#[cfg(any(checking, modelled))]
#[cfg_attr(modelled, allow(dead_code))]
mod wait;
#[cfg(checking)]
mod watch;
#[cfg(checking)]
mod wrapper;

pub use faces::checked;
#[cfg(checking)]
pub use faces::strict::*;

#[cfg(any(checking, modelled))]
pub use access::Access;
#[cfg(checking)]
pub use checker::{Checked, TryLockError};
#[cfg(any(checking, modelled))]
pub use class::Class;
#[cfg(checking)]
pub use held::{Held, HeldLock, Waiter, held, waiters};
#[cfg(checking)]
pub use mutex::CheckedMutex;
#[cfg(checking)]
pub use pi::CheckedPiMutex;
#[cfg(any(checking, modelled))]
pub use policy::Policy;
#[cfg(checking)]
pub use reentrant::{CheckedReentrant, CheckedReentrantMutex};
#[cfg(any(checking, modelled))]
#[doc(hidden)]
pub use report::FaultsAbort;
#[cfg(any(checking, modelled))]
pub use report::{LockName, Place, Report, Rule, Severity, Step, ThreadName, policy, set_policy};
#[cfg(all(checking, feature = "shm"))]
pub use robust::{Robust, RobustGuard};
#[cfg(checking)]
pub use rwlock::{CheckedReadToken, CheckedRw, CheckedRwLock};
#[cfg(checking)]
pub use semaphore::{CheckedSemaphore, LockPermit};
#[cfg(checking)]
pub use signal::SignalContext;
#[cfg(any(checking, modelled))]
pub use stacks::Stack;
#[cfg(checking)]
pub use stacks::set_stacks;
#[cfg(any(checking, modelled))]
pub use wait::deadlocks;
#[cfg(checking)]
pub use watch::Watch;
