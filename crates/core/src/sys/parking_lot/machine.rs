//! The parking lot: `parking_lot_core`'s.

use super::Parked;
use crate::sys::time::Deadline;
use parking_lot_core::{FilterOp, ParkResult, ParkToken, UnparkToken};
use std::time::Instant;

/// What tells threads that park through this module from others in the lot: an address that no
/// other code has.
///
/// A wake-up may be late, when its lock is gone and a lock of another kind lives at the address.
/// Most would bear a stray wake-up; the condition variable of `parking_lot` promises its users that
/// there is none.
fn ours() -> ParkToken {
    static DOOR: u8 = 0;
    ParkToken((&raw const DOOR).addr())
}

/// # Safety
/// As [`ParkKey::park`](super::ParkKey::park).
pub(crate) unsafe fn park(key: usize, still: impl FnOnce() -> bool, deadline: Option<Deadline>) -> Parked {
    // SAFETY: `still` neither panics nor calls into the lot, says the caller; the others do
    // nothing. The caller controls the address, so what this thread's park might meet there are
    // unparks of the same door.
    let parked =
        unsafe { parking_lot_core::park(key, still, || {}, |_, _| {}, ours(), deadline.and_then(instant)) };
    match parked {
        ParkResult::Unparked(UnparkToken(others)) => Parked::Unparked { others: others != 0 },
        ParkResult::Invalid => Parked::Refused,
        ParkResult::TimedOut if deadline.is_some_and(|deadline| deadline.has_passed()) => Parked::TimedOut,
        // The other clock was set back.
        ParkResult::TimedOut => Parked::Unparked { others: false },
    }
}

pub(crate) fn unpark_one(key: usize) {
    let mut found = false;
    let one_of_ours = |token| match token {
        token if token != ours() => FilterOp::Skip,
        _ if found => FilterOp::Stop,
        _ => {
            found = true;
            FilterOp::Unpark
        }
    };
    // SAFETY: the closures neither panic nor call into the lot. The address may not be ours any
    // more: only threads that parked through this door are woken, and its rule 4 has told them.
    unsafe {
        parking_lot_core::unpark_filter(key, one_of_ours, |result| {
            UnparkToken(usize::from(result.have_more_threads))
        });
    }
}

/// The moment of `deadline` or just after it; none if it lies beyond the clock's end. A deadline on
/// the time of day is converted when the wait begins: if that clock is set forward meanwhile, the
/// wait ends no earlier.
fn instant(deadline: Deadline) -> Option<Instant> {
    let remaining = deadline.remaining(); // measured before "now", hence never early
    Instant::now().checked_add(remaining)
}
