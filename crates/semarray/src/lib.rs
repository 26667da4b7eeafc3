#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod array;
mod array_lock;
mod cascade;
mod cell;
mod error;
mod heap;
mod manage;
mod node;
mod op;
mod permit;
mod raw;
mod session;
mod sleep;
mod word;

#[doc(hidden)]
pub mod groups;
#[doc(hidden)]
pub mod slots;

pub use array::{Builder, Fairness, InOneProcess, SemArray, SemArrayWith};
pub use error::Error;
pub use op::{Op, Set};
pub use permit::Permit;
pub use raw::{RawSemArray, Wait, Waiters};
