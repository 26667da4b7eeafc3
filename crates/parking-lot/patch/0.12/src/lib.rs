//! parking_lot 0.12 on the locks of the ulocks family: see the crate `ulocks-parking-lot`.

pub use ulocks_parking_lot::v0_12::*;
