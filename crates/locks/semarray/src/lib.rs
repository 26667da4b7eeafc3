#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod array;
mod array_lock;
mod builder;
mod cell;
mod error;
mod manage;
mod node;
mod op;
mod pass;
mod permit;
mod raw;
mod session;
mod set;
mod sleep;
mod task;
mod word;

// For the models and the benchmarks.
#[doc(hidden)]
pub use sleep::{groups, slots};

pub use array::{SemArray, SemArrayWith};
pub use builder::Builder;
pub use error::Error;
pub use op::{Op, Set};
pub use permit::Permit;
pub use raw::{Fairness, RawSemArray, Waiters};
pub use set::Wait;
pub use task::AcquireAsync;
pub use ulocks_core::policy::InOneProcess;
