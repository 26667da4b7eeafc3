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
