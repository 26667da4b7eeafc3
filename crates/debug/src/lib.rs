#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod faces;
#[cfg(checking)]
pub mod guide;
#[cfg(checking)]
mod locks;
#[cfg(modelled)]
#[doc(hidden)]
pub mod modelled;
#[cfg(checking)]
pub mod profile;
#[cfg(checking)]
mod rules;
#[cfg(any(checking, modelled))]
#[cfg_attr(modelled, allow(dead_code))]
mod seen;

pub use faces::checked;

#[cfg(checking)]
pub use {
    faces::strict::*,
    locks::*,
    rules::deliver::FaultsAbort,
    rules::faults::TryLockError,
    rules::handler::SignalContext,
    rules::held::{self, Held, HeldLock, Waiter, held, waiters},
    rules::watch::Watch,
    seen::access::Access,
    seen::class::Class,
    seen::report::{LockName, Place, Policy, Report, Rule, Severity, Step, ThreadName, policy, set_policy},
    seen::stacks::{Stack, set_stacks},
    seen::wait::deadlocks,
};
