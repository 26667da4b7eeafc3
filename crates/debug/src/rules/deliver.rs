//! What becomes of a report.

use crate::profile::{events, probes::probe};
use crate::seen::report::{Policy, Report, Severity, policy};
use crate::seen::thread::is_in_handler;
use core::cell::Cell;
use core::marker::PhantomData;
use std::io::Write as _;

/// Where a report is delivered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// A call of the user, from which a panic may unwind.
    Call,
    /// The end of a thread, `fork`, or a wait on a condition variable: a panic would abort.
    Inside,
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

/// Prints `report`, and `why` after it, and ends the process. A test harness keeps what `eprintln!`
/// prints until the end of the test, and this test has none.
fn abort(report: &Report, why: &str) -> ! {
    let _ = write!(std::io::stderr(), "{report}\n{why}");
    std::process::abort();
}

/// Does with `report` what the policy says. The caller holds no lock of this crate.
#[cold]
#[track_caller]
pub(crate) fn deliver(report: &Report, from: From) {
    events::reported(report);
    let title = report.rule.title();
    probe!(ulocks, reported, report.lock.address, title.as_ptr(), title.len());
    let is_fault = report.severity == Severity::Fault;
    match policy() {
        Policy::Call(function) => function(report),
        Policy::Abort if is_fault => abort(report, ""),
        // No panic unwinds out of a handler, and what goes on may wait for ever.
        Policy::Panic if is_fault && from == From::Call && is_in_handler() => abort(report, ""),
        Policy::Panic if is_fault && from == From::Call && !std::thread::panicking() => {
            match NO_UNWINDING.get() {
                Some(why) => abort(report, why),
                None => panic!("{report}"),
            }
        }
        _ => eprintln!("{report}"),
    }
}
