#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod api;
#[cfg(world = "machine")]
pub mod capabilities;
pub mod condvar;
pub mod cpu;
#[doc(hidden)]
pub mod epoch;
pub mod errno;
pub mod futex;
#[cfg(feature = "parking-lot")]
pub mod lot;
pub mod membarrier;
pub mod meter;
pub mod model;
pub mod policy;
pub mod raw;
pub mod signal;
pub mod slice;
pub mod spin;
pub mod sync;
pub mod tid;
pub mod time;
mod world;

pub use policy::{Policy, Private, Shared};
