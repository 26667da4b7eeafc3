//! parking_lot 0.12 on the locks of the ulocks family: see the crate `ulocks-parking-lot`.

#[cfg(feature = "checked")]
pub use ulocks_parking_lot::checked::v0_12::*;
#[cfg(not(feature = "checked"))]
pub use ulocks_parking_lot::v0_12::*;
