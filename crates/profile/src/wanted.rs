//! What wants to know of acquisitions: one word, so that an acquisition looks once.
//!
//! A look is Relaxed, as most find nothing. Before a thread uses what was stored for its bit, it
//! looks again, or has a fence, Acquire. Both pair with (want).

use ulocks_core::sync::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

/// A bit for each.
static WANTED: AtomicU32 = AtomicU32::new(0);
/// The profile. The other bits are the checked locks'.
pub const PROFILE: u32 = 1;

/// `by` wants to know of acquisitions from now on, or no more.
pub fn want(by: u32, on: bool) {
    if on {
        WANTED.fetch_or(by, Release) // (want)
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

/// As [`is_wanted`], and the thread sees what was stored before that.
#[inline]
pub(crate) fn is_wanted_now(by: u32) -> bool {
    WANTED.load(Acquire) & by != 0 // (want)
}
