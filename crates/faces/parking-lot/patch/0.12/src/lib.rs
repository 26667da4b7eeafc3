//! parking_lot 0.12 on the locks of the ulocks family: see the crate `ulocks-parking-lot`.

#[cfg(feature = "deadlock_detection")]
compile_error!(
    "the locks of ulocks have no `deadlock_detection`: take the feature `checked` in its place (`--features \
     parking_lot/checked`), which reports deadlocks where they happen, or leave out the patch"
);

#[cfg(feature = "checked")]
pub use ulocks_parking_lot::checked::{ulocks_debug, v0_12::*};
#[cfg(not(feature = "checked"))]
pub use ulocks_parking_lot::v0_12::*;
