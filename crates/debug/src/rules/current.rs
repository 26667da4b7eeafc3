//! The record of the calling thread, from its first acquisition to its end.

use super::deliver::From;
use super::{accept, clock, faults, fork, handler};
use crate::seen::stacks;
use crate::seen::thread::{CURRENT, ENDED, Record, records};
use ulocks_core::sync::{AtomicBool, Ordering::Relaxed};

std::thread_local! {
    static EXIT: Exit = const { Exit };
}

/// Whether nothing is checked in this run.
static IS_OFF: AtomicBool = AtomicBool::new(false);

/// No thread gets a record from now on.
pub(crate) fn stop() {
    IS_OFF.store(true, Relaxed);
}

/// The record of this thread. `None` if the thread is at its end, or if nothing is checked.
#[inline]
pub(crate) fn current() -> Option<&'static Record> {
    let current = CURRENT.get();
    if current.is_null() || current == ENDED {
        return begin();
    }
    // SAFETY: neither of the two special values, so a record, and those are never freed.
    Some(unsafe { &*current })
}

/// Gives this thread a record.
#[cold]
fn begin() -> Option<&'static Record> {
    if !CURRENT.get().is_null() || EXIT.try_with(|_| ()).is_err() {
        return None;
    }
    accept::look_at_environment();
    if IS_OFF.load(Relaxed) {
        CURRENT.set(ENDED);
        return None;
    }
    fork::watch();
    clock::find();
    stacks::look_at_environment();
    let free = records().find(|record| record.take());
    let record = free.unwrap_or_else(Record::leak);
    record.identity().set();
    CURRENT.set(record);
    Some(record)
}

/// Its drop is the end of a thread.
struct Exit;

impl Drop for Exit {
    fn drop(&mut self) {
        let current = CURRENT.replace(ENDED);
        if current.is_null() || current == ENDED {
            return;
        }
        // SAFETY: neither of the two special values, so a record.
        let record = unsafe { &*current };
        record.sweep();
        handler::report_news(From::Inside);
        // The main thread ends with the process, which may end while locks are held.
        if record.is_main() || !record.holds_any() {
            record.give_back();
            return;
        }
        faults::exit(record);
        record.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Locks whose guards were forgotten stay counted, so that a release is not taken for a wrong
    /// one.
    #[test]
    fn forgotten_guards_without_a_slot_never_wrap_their_count() {
        let me = current().expect("the thread has not ended");
        me.owner_only.over.set(u32::MAX - 1);
        for _ in 0..3 {
            assert!(!me.push_over());
        }
        assert!(me.pop_over(), "the count has wrapped");
        me.owner_only.over.set(0);
    }
}
