//! What becomes of reports.

use crate::seen::report::Report;
use core::cell::Cell;
use core::marker::PhantomData;
use core::mem;
use core::ptr;
use ulocks_core::sync::{AtomicPtr, Ordering::Relaxed};
use ulocks_core::sync_static;

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

sync_static! {
    /// The callback, or one of these two.
    static POLICY: AtomicPtr<()> = AtomicPtr::new(PANIC);
}
const PANIC: *mut () = ptr::null_mut();
const ABORT: *mut () = ptr::without_provenance_mut(1);

/// Decides what becomes of reports from now on, in all threads.
pub fn set_policy(policy: Policy) {
    let value = match policy {
        Policy::Panic => PANIC,
        Policy::Abort => ABORT,
        Policy::Call(function) => function as *mut (),
    };
    POLICY.store(value, Relaxed);
}

/// What becomes of reports.
pub fn policy() -> Policy {
    match POLICY.load(Relaxed) {
        PANIC => Policy::Panic,
        ABORT => Policy::Abort,
        // SAFETY: `set_policy` is the only other source of values, and stores such a function.
        function => Policy::Call(unsafe { mem::transmute::<*mut (), fn(&Report)>(function) }),
    }
}

std::thread_local! {
    /// Why this thread may not unwind, if a [`FaultsAbort`] says so.
    static NO_UNWINDING: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// As long as it lives, a fault that would panic on this thread is printed and aborts the process:
/// for faces that cannot bear a panic. It says why.
#[doc(hidden)]
#[must_use = "it ends when it is dropped, which is at once"]
pub struct FaultsAbort {
    before: Option<&'static str>,
    /// It is for the thread that has made it.
    stays: PhantomData<*const ()>,
}

impl FaultsAbort {
    #[inline]
    pub fn because(line: &'static str) -> Self {
        Self { before: NO_UNWINDING.replace(Some(line)), stays: PhantomData }
    }
}

impl Drop for FaultsAbort {
    #[inline]
    fn drop(&mut self) {
        NO_UNWINDING.set(self.before);
    }
}

/// Why this thread may not unwind, if it may not.
pub(crate) fn no_unwinding() -> Option<&'static str> {
    NO_UNWINDING.get()
}
