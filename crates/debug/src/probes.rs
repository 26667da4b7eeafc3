//! Static probes of the provider `ulocks`, behind the feature `probes`: a `nop` each, and a note in
//! the program that says where it is and where its arguments are. bpftrace, perf, SystemTap and gdb
//! read these notes. Without the feature all of this is empty.
//!
//! | probe | arguments |
//! |---|---|
//! | `wait_begin` | the address of the lock, the name of its class, the file, the line |
//! | `wait_end` | the address of the lock |
//! | `acquired` | as `wait_begin` |
//! | `released` | the address of the lock |
//! | `reported` | the address of the lock, the title of the rule |
//!
//! A text is two arguments, the address of its first byte and its length.

use crate::class::Node;
use crate::report::{Place, Report};

#[cfg(feature = "probes")]
use probe::probe as note;
#[cfg(not(feature = "probes"))]
macro_rules! note {
    ($provider:ident, $name:ident, $($arg:expr),*) => {{
        $(let _ = $arg;)*
    }};
}

/// A thread is about to wait.
#[inline(always)]
pub(crate) fn wait_begin(lock: usize, class: &Node, at: Place) {
    let (name, file) = (class.name(), at.file());
    note!(ulocks, wait_begin, lock, name.as_ptr(), name.len(), file.as_ptr(), file.len(), at.line());
}

/// The wait has ended, also without the lock.
#[inline(always)]
pub(crate) fn wait_end(lock: usize) {
    note!(ulocks, wait_end, lock);
}

/// A thread has acquired a lock.
#[inline(always)]
pub(crate) fn acquired(lock: usize, class: &Node, at: Place) {
    let (name, file) = (class.name(), at.file());
    note!(ulocks, acquired, lock, name.as_ptr(), name.len(), file.as_ptr(), file.len(), at.line());
}

/// A thread is about to release a lock.
#[inline(always)]
pub(crate) fn released(lock: usize) {
    note!(ulocks, released, lock);
}

/// A rule was broken.
#[inline(always)]
pub(crate) fn reported(report: &Report) {
    let title = report.title();
    note!(ulocks, reported, report.lock().address, title.as_ptr(), title.len());
}
