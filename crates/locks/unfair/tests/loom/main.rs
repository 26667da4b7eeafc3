//! Models of the locks. The mutants in `mutants/*.toml` show what they find.
#![cfg(all(ulocks_loom, feature = "loom"))]

mod asym;
mod barging;
#[cfg(feature = "parking_lot")]
mod byte;
mod throughput;
#[path = "../common/warm.rs"]
mod warm;
