#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(regions)]
mod region;
#[cfg(regions)]
mod safe;

#[cfg(regions)]
pub use region::{Attached, MOST_PARTICIPANTS, Options, Region, RegionError};
#[cfg(regions)]
pub use safe::{SharedSafe, layout};
#[cfg(regions)]
pub use ulocks_shm_derive::SharedSafe;
