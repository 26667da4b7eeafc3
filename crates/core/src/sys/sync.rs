//! Atomics, cells and the busy-wait: what lock code is made of, in the world it is compiled for.
//!
//! Code written on this module, on [`futex`](crate::futex) and on [`time`](crate::time) runs on the
//! machine and, unchanged, in the model worlds (see [`model`](crate::model)). Three rules make that
//! possible:
//! - a constructor is declared with [`const_fn!`](crate::const_fn), a static with
//!   [`sync_static!`](crate::sync_static): the atomics of a model are born in an execution, not at
//!   compile time;
//! - [`spin_until`] is the only way to busy-wait: a bare loop cannot be model-checked with three
//!   threads;
//! - no `SeqCst` accesses: read-modify-writes on one word, or an explicit `fence(SeqCst)`.

pub use crate::sys::world::atomic::*;
pub use crate::sys::world::{
    UnsafeCell, interruption_point, is_abandoned, pause, spin_until, without_unwinding, yield_now,
};

#[cfg(not(world = "machine"))]
#[doc(hidden)]
pub use crate::sys::world::__model;
#[cfg(world = "machine")]
pub use crate::sys::world::NoUnwinding;

/// Sets `bit` in the address that `word` holds, in one read-modify-write; whether it was set.
#[inline(always)]
#[cfg_attr(world = "vm", track_caller)]
pub(crate) fn set_bit<T>(word: &AtomicPtr<T>, bit: usize, order: Ordering) -> bool {
    crate::sys::world::set_bit(word, bit, order)
}

/// How many places a table by addresses has: `most`, a power of two. In a model it has one, since
/// addresses differ from run to run.
#[doc(hidden)]
#[must_use]
pub const fn places(most: usize) -> usize {
    assert!(most.is_power_of_two() && most > 1);
    if cfg!(world = "machine") { most } else { 1 }
}

/// The place of the lock at `address` in a table of so many places, a power of two: by
/// multiplicative hashing, since addresses are alike in their low bits. Several may have the same.
#[doc(hidden)]
#[inline]
#[must_use]
pub fn place_of(address: usize, places: usize) -> usize {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    // The shift is 64 for a table of one place.
    (address as u64).wrapping_mul(GOLDEN).checked_shr(u64::BITS - places.ilog2()).unwrap_or(0) as usize
}

/// Counts a read: whether it is the `n`-th of the calling thread, the `2n`-th, and so on; never in
/// a model without time.
#[doc(hidden)]
#[inline]
#[must_use]
pub fn is_nth_read(n: u8) -> bool {
    crate::sys::world::has_rates() && crate::sys::world::with_releases(|releases| releases.is_nth_read(n))
}
