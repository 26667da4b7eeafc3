//! Timed polling, for a waiter whose waker may not change the word.

use super::{Bits, Futex, Scope, Waited};
use crate::sys::sync::{Ordering::Relaxed, spin_until};
use crate::sys::time::Deadline;
use core::time::Duration;

/// The first sleep of [`Futex::poll_until`], and as `longest` the only one. The kernel's timers
/// have a slack of 50 us by default, so a shorter sleep would hardly end sooner.
pub const SHORT_SLEEP: Duration = Duration::from_micros(50);

impl<S: Scope> Futex<S> {
    /// Polls `ready`, sleeping between polls, until it is true or `deadline` passes. Returns
    /// whether it was true. A wake-up that has a bit in common with `bits` ends a sleep early, and
    /// need not change the word.
    ///
    /// This is for a waiter whose waker may not touch the lock any more. A wake-up without a change
    /// of the word is lost if it comes between the waiter's poll and its sleep. Then the waiter
    /// finds out when its sleep is over. The first sleep takes [`SHORT_SLEEP`], each further one
    /// twice as long, up to `longest`.
    ///
    /// # Blocking
    /// Until `ready` is true, and up to `longest` more; until `deadline`, if there is one.
    ///
    /// # Signals and forks
    /// A handler that runs during a sleep ends the wait if the deadline is
    /// [interruptible](Deadline::interruptible).
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    #[cfg_attr(world = "vm", track_caller)]
    pub fn poll_until(
        &self,
        bits: Bits,
        deadline: Option<Deadline>,
        longest: Duration,
        mut ready: impl FnMut() -> bool,
    ) -> bool {
        let has_passed = || deadline.is_some_and(|deadline| deadline.has_passed());
        if cfg!(world = "loom") {
            // Time does not pass there, so a sleep may be over at any moment.
            let mut is_ready = false;
            spin_until(|| {
                is_ready = ready();
                is_ready || has_passed()
            });
            return is_ready;
        }
        let (mut sleep, mut gives_up) = (SHORT_SLEEP, false);
        loop {
            let seen = self.load(Relaxed);
            if ready() {
                return true;
            }
            if gives_up || has_passed() {
                return false;
            }
            let (until, is_nap) = Deadline::earlier(deadline, Some(Deadline::after(sleep)));
            match self.wait_bits(seen, bits, until) {
                Waited::TimedOut if is_nap => sleep = longest.min(2 * sleep),
                waited => gives_up = waited == Waited::TimedOut || waited.interrupts(deadline),
            }
        }
    }
}
