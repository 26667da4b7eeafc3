//! parking_lot 0.13 on the locks of the ulocks family: see the crate `ulocks-parking-lot`.

#[cfg(all(feature = "deadlock_detection", not(feature = "checked")))]
compile_error!(
    "the locks of ulocks have `deadlock_detection` together with the feature `checked` only (`--features \
     parking_lot/checked`), which also reports deadlocks where they happen"
);

#[cfg(feature = "checked")]
pub use ulocks_parking_lot::checked::*;
#[cfg(not(feature = "checked"))]
pub use ulocks_parking_lot::*;
