//! parking_lot 0.13 on the locks of the ulocks family: see the crate `ulocks-parking-lot`.

pub use ulocks_parking_lot::*;
