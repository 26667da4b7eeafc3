//! `fork`: the thread that forks should hold nothing, and its child has no other thread.

use crate::rules::accept::ACCEPTED;
use crate::rules::order::GRAPH;
use crate::rules::returned::RETURNED;
use crate::seen::stacks::TABLE;
use crate::seen::thread::{existing, records};
use core::ptr;
use ulocks_profile::counting::Once;

/// Has forks watched from now on.
pub(crate) fn watch() {
    // First, so that the profile is locked last: a report may ask for it.
    ulocks_profile::watch_forks();
    static WATCH: Once = Once::new();
    // SAFETY: the three functions do not unwind, and stay where they are.
    WATCH.call_once(|| _ = unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) });
}

extern "C" fn prepare() {
    // A child that has registered again is called twice, since its parent may have registered, too.
    if GRAPH.is_forking() {
        return;
    }
    if let Some(me) = existing() {
        super::faults::fork(me);
    }
    // The child must not find one of them locked by a thread that it does not have. Of these four,
    // a thread that holds the graph may ask for stacks; it asks for no other one.
    GRAPH.hold();
    TABLE.hold();
    ACCEPTED.hold();
    RETURNED.hold();
}

/// Releases what `prepare` has locked, if it did.
fn release() {
    RETURNED.release();
    ACCEPTED.release();
    TABLE.release();
    GRAPH.release();
}

extern "C" fn parent() {
    release();
}

extern "C" fn child() {
    let me = existing();
    for record in records() {
        match me {
            Some(me) if ptr::eq(me, record) => me.identity().set_tid(),
            // No thread gets this record again, since locks may name it as their holder.
            _ => record.vanish(),
        }
    }
    release();
}
