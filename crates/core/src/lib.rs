#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod api;
#[cfg(not(all(ulocks_loom, feature = "loom")))]
pub mod capabilities;
pub mod condvar;
pub mod errno;
pub mod futex;
pub mod meter;
pub mod model;
pub mod policy;
pub mod raw;
pub mod spin;
pub mod sync;
#[cfg(not(all(ulocks_loom, feature = "loom")))]
pub mod tid;
pub mod time;
mod world;

pub use policy::{Policy, Private, Shared};
