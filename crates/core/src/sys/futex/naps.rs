//! Naps of a waiter whose waker may only wake.

use super::{Bits, Futex, Scope, Waited};
use crate::sys::sync::{Ordering::Relaxed, spin_until};
use crate::sys::time::Deadline;
use core::time::Duration;

/// The first nap.
const SHORTEST: Duration = Duration::from_micros(50);

impl<S: Scope> Futex<S> {
    /// Sleeps in naps until `ready`, or until `deadline`; whether it was `ready`. A wake-up that
    /// has a bit in common with `bits` cuts a nap short, and need not change the word.
    ///
    /// This is for a waiter whose waker may not touch the lock any more. A wake-up without a change
    /// of the word is lost if it comes between the waiter's look and its sleep; then the waiter
    /// finds out by itself when its nap is over. The first nap is of 50 us, each further one twice
    /// as long, up to `longest`.
    ///
    /// # Blocking
    /// Until `ready`, and by up to a nap longer; until `deadline`, if there is one.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    #[cfg_attr(world = "vm", track_caller)]
    pub fn naps(
        &self,
        bits: Bits,
        deadline: Option<Deadline>,
        longest: Duration,
        mut ready: impl FnMut() -> bool,
    ) -> bool {
        let has_passed = || deadline.is_some_and(|deadline| deadline.has_passed());
        if cfg!(world = "loom") {
            // Time does not pass there, so a nap may be over at any moment.
            let mut is_ready = false;
            spin_until(|| {
                is_ready = ready();
                is_ready || has_passed()
            });
            return is_ready;
        }
        let mut nap = SHORTEST;
        loop {
            let seen = self.load(Relaxed);
            if ready() {
                return true;
            }
            if has_passed() {
                return false;
            }
            let (until, _) = Deadline::earlier(deadline, Some(Deadline::after(nap)));
            if self.wait_bits(seen, bits, until) == Waited::TimedOut {
                nap = longest.min(2 * nap);
            }
        }
    }
}
