//! What becomes of a report.

use crate::Report;

/// What happens when a rule is broken.
///
/// A warning is printed to standard error and nothing else, except by [`Call`](Self::Call).
#[derive(Clone, Copy, Debug, Default)]
pub enum Policy {
    /// The call that breaks the rule panics with the report as its message, before it has changed
    /// the lock. The report is printed instead where a panic could not unwind: in a thread that
    /// panics already, and at the end of a thread.
    #[default]
    Panic,
    /// The report is printed, and the process aborts.
    Abort,
    /// The function gets the report. It may panic where [`Panic`](Self::Panic) would.
    ///
    /// If it returns, the call goes on as that of the plain lock: a self-deadlock then deadlocks.
    /// One call is left out, the release of a lock that is not held. The function holds no lock of
    /// the checker, and may acquire locks.
    Call(fn(&Report)),
}
