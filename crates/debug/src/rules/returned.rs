//! Which deadlocks a program has been given, for parking_lot's `check_deadlock`. It is here, and
//! not in that face, for the sake of `fork`.

use crate::seen::report::Report;
use crate::seen::wait::deadlocks;
use std::collections::BTreeSet;
use ulocks_profile::counting::ForkMutex;

/// The threads of each deadlock that was returned, with the lines where they wait. `fork` holds it,
/// too.
pub(super) static RETURNED: ForkMutex<BTreeSet<Vec<(u32, String)>>> = ForkMutex::new(BTreeSet::new());

/// The deadlocks of this moment that it did not return before.
#[doc(hidden)]
pub fn new_deadlocks() -> Vec<Report> {
    let is_new = |report: &Report| {
        let steps = report.steps().iter();
        let mut threads: Vec<_> = steps.map(|step| (step.thread.tid, step.at.to_string())).collect();
        threads.sort_unstable();
        RETURNED.lock().insert(threads)
    };
    deadlocks().into_iter().filter(is_new).collect()
}
