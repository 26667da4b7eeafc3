//! What a robust lock knows of its data: a word beside the data.

/// Nothing is known against it.
pub(crate) const CONSISTENT: u32 = 0;
/// A holder that changes it died or panicked, and no holder has repaired it.
pub(crate) const DIRTY: u32 = 1;
/// A holder knew that it was dirty, and released without repairing it.
pub(crate) const NOT_RECOVERABLE: u32 = 2;
