//! parking_lot 0.13 on the locks of the ulocks family: see the crate `ulocks-parking-lot`.

#[cfg(feature = "checked")]
pub use ulocks_parking_lot::checked::*;
#[cfg(not(feature = "checked"))]
pub use ulocks_parking_lot::*;
