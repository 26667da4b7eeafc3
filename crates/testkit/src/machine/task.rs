//! What the kernel says about a thread.

use std::fs;

/// The kernel's id of the calling thread.
pub fn id() -> i32 {
    // SAFETY: no preconditions.
    unsafe { libc::gettid() }
}

/// Returns when the threads `ids` of this process all sleep in the kernel.
///
/// # Panics
/// If one of them does not exist.
pub fn until_asleep(ids: &[i32]) {
    until_all(ids, |id| format!("/proc/self/task/{id}/stat"));
}

/// Returns when `process` sleeps in the kernel, in its first thread.
pub(super) fn until_process_asleep(process: i32) {
    until_all(&[process], |id| format!("/proc/{id}/stat"));
}

fn until_all(ids: &[i32], stat: impl Fn(i32) -> String) {
    let asleep = |&id: &i32| {
        let stat = fs::read_to_string(stat(id)).expect("a thread that exists");
        // The name before it is in parentheses and may contain anything.
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S'))
    };
    while !ids.iter().all(asleep) {
        std::thread::yield_now();
    }
}
