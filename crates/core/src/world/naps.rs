//! Naps of a waiter whose waker may only wake, in the worlds where time passes.

use crate::futex::{Bits, Futex, Scope, Waited};
use crate::time::Deadline;
use core::time::Duration;

/// The first nap.
const SHORTEST: Duration = Duration::from_micros(50);

/// For how long [`outlast`] spins before it sleeps.
#[cfg(world = "machine")]
const BRIEFLY_NS: u32 = 2_000;

/// See [`Futex::naps`].
#[cfg_attr(world = "vm", track_caller)]
pub(crate) fn naps<S: Scope>(
    futex: &Futex<S>,
    bits: Bits,
    deadline: Option<Deadline>,
    longest: Duration,
    mut ready: impl FnMut() -> bool,
) -> bool {
    let mut nap = SHORTEST;
    loop {
        let seen = futex.load(crate::sync::Ordering::Relaxed);
        if ready() {
            return true;
        }
        if deadline.is_some_and(|deadline| deadline.has_passed()) {
            return false;
        }
        let (until, _) = Deadline::earlier(deadline, Some(Deadline::after(nap)));
        if futex.wait_bits(seen, bits, until) == Waited::TimedOut {
            nap = longest.min(2 * nap);
        }
    }
}

/// Waits for another thread that finishes in less than [`BRIEFLY_NS`] if it runs. If it was
/// preempted, the caller leaves it a CPU, whatever the priorities of the two.
#[cfg(world = "machine")]
pub(crate) fn outlast(mut is_over: impl FnMut() -> bool) {
    crate::spin::until(crate::spin::budget::<crate::futex::Private>(BRIEFLY_NS), &mut is_over);
    // No thread wakes it.
    let word = Futex::<crate::futex::Private>::new(0);
    word.naps(Bits::one(0), None, SHORTEST, is_over);
}
