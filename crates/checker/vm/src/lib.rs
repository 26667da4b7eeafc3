#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod alloc;
mod choice;
pub mod clock;
pub mod crash;
#[doc(hidden)]
pub mod engine;
pub mod explore;
mod fibers;
mod frames;
pub mod futex;
pub mod future;
pub mod guide;
pub mod linear;
mod memory;
pub mod pi;
pub mod process;
mod side;
pub mod signal;
pub mod sync;
pub mod thread;
