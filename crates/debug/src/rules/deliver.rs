//! What becomes of a report.

use super::accept::is_accepted;
use super::once;
use crate::seen::policy::{Policy, no_unwinding, policy};
use crate::seen::report::{Report, Severity};
use crate::seen::thread::is_in_handler;
use crate::seen::{events, probes::probe};
use core::fmt;
use std::io::{Write as _, stderr};

/// Where a report is delivered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// A call of the user, from which a panic may unwind.
    Call,
    /// The end of a thread, `fork`, or a wait on a condition variable: a panic would abort.
    Inside,
}

/// Prints a line to standard error. What cannot be written is lost: `eprintln!` panics then. A test
/// harness keeps what that prints, and shows nothing of a test that passes or aborts.
pub(crate) fn print(line: impl fmt::Display) {
    let _ = stderr().write_all(format!("{line}\n").as_bytes());
}

/// Prints `report`, and `why` after it, and ends the process.
fn abort(report: &Report, why: &str) -> ! {
    print(report);
    let _ = stderr().write_all(why.as_bytes());
    std::process::abort();
}

/// Whether no report of these two lines was printed. Those of one line are printed each time.
fn is_first(report: &Report) -> bool {
    report
        .here
        .zip(report.before)
        .is_none_or(|(here, before)| once::is_printed_first(report.rule, here, before))
}

/// Does with `report` what the policy says. The caller holds no lock of this crate.
#[cold]
#[track_caller]
pub(crate) fn deliver(report: &Report, from: From) {
    if is_accepted(report) {
        return;
    }
    events::reported(report);
    let title = report.title();
    probe!(ulocks, reported, report.lock.address, title.as_ptr(), title.len());
    let is_fault = report.severity == Severity::Fault;
    match policy() {
        Policy::Call(function) => function(report),
        Policy::Abort if is_fault => abort(report, ""),
        // No panic unwinds out of a handler, and what goes on may wait for ever.
        Policy::Panic if is_fault && from == From::Call && is_in_handler() => abort(report, ""),
        Policy::Panic if is_fault && from == From::Call && !std::thread::panicking() => {
            match no_unwinding() {
                Some(why) => abort(report, why),
                None => panic!("{report}"),
            }
        }
        // Once for each pair of lines, as a warning.
        Policy::Warn if !is_first(report) => {}
        _ => print(report),
    }
}
