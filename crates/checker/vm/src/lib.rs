#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod alloc;
mod choice;
pub mod clock;
#[cfg(feature = "linux")]
pub mod crash;
#[doc(hidden)]
pub mod engine;
pub mod explore;
mod fibers;
mod frames;
pub mod futex;
pub mod future;
pub mod guide;
#[cfg(feature = "linear")]
pub mod linear;
mod memory;
#[cfg(feature = "linux")]
pub mod pi;
#[cfg(feature = "linux")]
pub mod process;
mod side;
#[cfg(feature = "linux")]
pub mod signal;
pub mod sync;
pub mod thread;
