#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(not(all(ulocks_loom, feature = "loom")))]
pub mod capabilities;
pub mod errno;
pub mod futex;
pub mod model;
pub mod sync;
#[cfg(not(all(ulocks_loom, feature = "loom")))]
pub mod tid;
pub mod time;
mod world;
