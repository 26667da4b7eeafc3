//! What wants to know of acquisitions: one word, so that an acquisition looks once.

use ulocks_core::sync::{AtomicU32, Ordering::Relaxed};

/// A bit for each.
static WANTED: AtomicU32 = AtomicU32::new(0);
/// The profile. The other bits are the checked locks'.
pub const PROFILE: u32 = 1;

/// `by` wants to know of acquisitions from now on, or no more.
pub fn want(by: u32, on: bool) {
    if on {
        WANTED.fetch_or(by, Relaxed)
    } else {
        WANTED.fetch_and(!by, Relaxed)
    };
}

/// All that want to know of acquisitions.
#[inline(always)]
pub fn wanted() -> u32 {
    WANTED.load(Relaxed)
}

/// Whether `by` wants to know of acquisitions.
#[inline]
pub fn is_wanted(by: u32) -> bool {
    wanted() & by != 0
}
