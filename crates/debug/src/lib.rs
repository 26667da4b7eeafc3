#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod faces;

#[cfg(checking)]
mod access;
#[cfg(all(checking, feature = "arc_lock"))]
mod arc;
#[cfg(checking)]
mod checker;
#[cfg(checking)]
mod class;
#[cfg(checking)]
mod clock;
#[cfg(checking)]
mod dump;
#[cfg(checking)]
mod events;
#[cfg(checking)]
mod fork;
#[cfg(checking)]
pub mod held;
#[cfg(checking)]
mod identity;
#[cfg(checking)]
mod mutex;
#[cfg(checking)]
mod observed;
#[cfg(checking)]
mod order;
#[cfg(checking)]
mod policy;
#[cfg(checking)]
mod probes;
#[cfg(checking)]
pub mod profile;
#[cfg(checking)]
mod reentrant;
#[cfg(checking)]
mod report;
#[cfg(checking)]
mod rules;
#[cfg(checking)]
mod rwlock;
#[cfg(checking)]
mod semaphore;
#[cfg(checking)]
mod slot;
#[cfg(checking)]
mod thread;
#[cfg(checking)]
mod thread_identity;
#[cfg(checking)]
mod wait;

pub use faces::checked;
#[cfg(checking)]
pub use faces::strict::*;

#[cfg(checking)]
pub use access::Access;
#[cfg(checking)]
pub use checker::{Checked, TryLockError};
#[cfg(checking)]
pub use class::Class;
#[cfg(checking)]
pub use held::{Held, HeldLock, Waiter, held, waiters};
#[cfg(checking)]
pub use mutex::CheckedMutex;
#[cfg(checking)]
pub use policy::Policy;
#[cfg(checking)]
pub use reentrant::{CheckedReentrant, CheckedReentrantMutex};
#[cfg(checking)]
pub use report::{LockName, Place, Report, Rule, Severity, Step, ThreadName, policy, set_policy};
#[cfg(checking)]
pub use rwlock::{CheckedReadToken, CheckedRw, CheckedRwLock};
#[cfg(checking)]
pub use semaphore::CheckedSemaphore;
#[cfg(checking)]
pub use wait::deadlocks;
