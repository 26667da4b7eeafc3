//! What becomes of a report.

use super::accept::is_accepted;
use super::once;
use crate::seen::policy::{Policy, no_unwinding, policy};
use crate::seen::report::{Report, Severity};
use crate::seen::thread::is_in_handler;
use crate::seen::{events, probes::probe};
use core::fmt;
use core::mem::ManuallyDrop;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::FromRawFd as _;

/// Where a report is delivered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// A call of the user, from which a panic may unwind.
    Call,
    /// The end of a thread, `fork`, or a wait on a condition variable: a panic would abort.
    Inside,
}

/// Writes a text to standard error, in one system call if possible. What cannot be written is lost.
///
/// Not by `eprintln!`, which panics then. It also takes a lock, whose holder may wait for a lock of
/// this thread: for one that a `Display` of the program locks, say. And the harness of tests keeps
/// what it prints, and shows nothing of a test that passes or aborts.
pub(super) fn write(text: &[u8]) {
    // SAFETY: it is not dropped, so the descriptor stays open, or closed, as it is.
    let mut error = ManuallyDrop::new(unsafe { File::from_raw_fd(libc::STDERR_FILENO) });
    let _ = error.write_all(text);
}

/// Prints a line to standard error.
pub(super) fn print(line: impl fmt::Display) {
    write(format!("{line}\n").as_bytes());
}

/// Prints `report`, and `why` after it, and ends the process.
fn abort(report: &Report, why: &str) -> ! {
    print(format_args!("{report}\n{why}"));
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
