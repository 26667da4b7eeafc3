//! Naps of a waiter whose waker may only wake, in the worlds where time passes.

use crate::futex::{Bits, Futex, Scope, Waited};
use crate::time::Deadline;
use core::time::Duration;

/// The first nap.
const SHORTEST: Duration = Duration::from_micros(50);

/// See [`Futex::naps`].
#[cfg_attr(ulocks_vm, track_caller)]
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
