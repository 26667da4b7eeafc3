//! `futex_waitv` (Linux 5.16): sleep on up to 128 futexes at once, of either scope.

pub use crate::sys::types::futex::WaitvOutcome;
pub use crate::sys::world::kernel::Waiter;

use super::{Futex, Scope, WaitvError};
use crate::sys::time::Deadline;
use crate::sys::world::kernel;
use core::fmt;

impl<'a> Waiter<'a> {
    /// Waits on `futex` while it holds `expected`.
    pub fn new<S: Scope>(futex: &'a Futex<S>, expected: u32) -> Self {
        Self::of(futex, expected, S::PRIVATE)
    }
}

impl fmt::Debug for Waiter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Waiter({:#x} while {})", self.address(), self.expected())
    }
}

/// Sleeps while every futex holds its expected value, until one of them is woken or until
/// `deadline`.
///
/// Wake-ups with any bits end the sleep.
///
/// # Blocking
/// Until one is woken; until `deadline`, if there is one, on the clock of the deadline.
///
/// # Errors
/// No futex, more than 128, a word that is not mapped any more, a kernel without the call.
///
/// # Signals and forks
/// A handler that was installed without `SA_RESTART` ends the wait with
/// [`WaitvOutcome::Interrupted`]. With `SA_RESTART`, the wait goes on, with any deadline or without
/// one. To learn of the signal, let the handler change a word.
///
/// # Examples
/// ```
/// use ulocks_core::capabilities::{Capability, capabilities};
/// use ulocks_core::futex::{Futex, Local, Global, Waiter, WaitvOutcome, waitv};
///
/// let (mine, ours) = (Futex::<Local>::new(0), Futex::<Global>::new(7));
/// if capabilities().has(Capability::Waitv) {
///     let outcome = waitv(&[Waiter::new(&mine, 0), Waiter::new(&ours, 8)], None)?;
///     assert_eq!(outcome, WaitvOutcome::Mismatch);
/// }
/// # Ok::<(), ulocks_core::futex::WaitvError>(())
/// ```
#[cfg_attr(world = "vm", track_caller)]
pub fn waitv(waiters: &[Waiter<'_>], deadline: Option<Deadline>) -> Result<WaitvOutcome, WaitvError> {
    match waiters.len() {
        0 => return Err(WaitvError::Empty),
        1..=128 => {}
        more => return Err(WaitvError::TooMany(more)),
    }
    kernel::waitv(waiters, deadline)
}
