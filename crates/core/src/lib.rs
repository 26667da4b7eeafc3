#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(all(ulocks_loom, feature = "loom", ulocks_vm, feature = "vm"))]
compile_error!("two worlds are asked for: give either `--cfg ulocks_loom` or `--cfg ulocks_vm`, not both");

pub mod api;
#[cfg(not(any(all(ulocks_loom, feature = "loom"), all(ulocks_vm, feature = "vm"))))]
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
pub mod part;
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
