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
mod rules;
#[cfg(any(checking, modelled))]
#[cfg_attr(modelled, allow(dead_code))]
mod seen;

pub use faces::checked;
#[cfg(checking)]
#[doc(inline)]
pub use ulocks_profile::{self as profile, named};

#[cfg(any(checking, modelled))]
pub use seen::{
    access::Access,
    class::Class,
    policy::{FaultsAbort, Policy, policy, set_policy, set_strict},
    report::{LockName, Place, Report, Rule, Severity, Step, ThreadName},
    stacks::Stack,
    wait::deadlocks,
};

#[cfg(checking)]
pub use {
    faces::strict::*,
    locks::*,
    rules::accept::accept,
    rules::faults::TryLockError,
    rules::handler::SignalContext,
    rules::held::{self, Held, HeldLock, Waiter, held, waiters},
    rules::returned::new_deadlocks,
    rules::watch::Watch,
    seen::stacks::set_stacks,
};
