//! The record of the calling thread, from its first acquisition to its end.
//!
//! # The end
//! What a thread holds may be a guard in a thread-local variable, whose destructor may run after
//! that of [`EXIT`]. So a thread that holds something then is looked at once more, by a destructor
//! of pthread's, which runs after those of thread-local variables. In between nothing is checked,
//! and a release takes the lock out of the record.
//!
//! The main thread ends with the process, which may end while locks are held, and other threads may
//! run on. So what it holds is not reported, and stays in its record.
//!
//! A record that locks may name as that of their holder passes to no other thread, which would be
//! taken for the holder.

use super::deliver::From;
use super::{accept, clock, faults, fork, handler};
use crate::seen::stacks;
use crate::seen::thread::{CURRENT, ENDED, Record, records};
use core::ffi::c_void;
use core::ptr;
use ulocks_core::sync::{AtomicBool, AtomicU64, Ordering::Relaxed};
use ulocks_profile::counting::Once;

std::thread_local! {
    static EXIT: Exit = const { Exit };
}

/// Whether nothing is checked in this run.
static IS_OFF: AtomicBool = AtomicBool::new(false);

/// No thread gets a record from now on.
pub(crate) fn stop() {
    IS_OFF.store(true, Relaxed);
}

/// Whether nothing is checked in this run, as far as the environment was looked at.
pub(crate) fn is_off() -> bool {
    IS_OFF.load(Relaxed)
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
    // First: what follows takes a lock that the child of a fork must not find locked.
    fork::watch();
    accept::look_at_environment();
    if IS_OFF.load(Relaxed) {
        CURRENT.set(ENDED);
        return None;
    }
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
        if record.is_handler() {
            // Its context was forgotten, or is dropped later, which aborts.
            return;
        }
        record.sweep();
        handler::report_news(From::Inside);
        if !record.is_named() {
            record.give_back();
            return;
        }
        if !look_again(record) {
            end(record);
        }
    }
}

/// The key of pthread's with the record of a thread that is at its end. `None` if there is none.
fn key() -> Option<libc::pthread_key_t> {
    static ONCE: Once = Once::new();
    /// The key and one, or 0 if there is none.
    static KEY: AtomicU64 = AtomicU64::new(0);
    ONCE.call_once(|| {
        let mut key = 0;
        // SAFETY: `key` is a place for the key, and the function takes what `look_again` stores.
        if unsafe { libc::pthread_key_create(&raw mut key, Some(at_last)) } == 0 {
            KEY.store(u64::from(key) + 1, Relaxed);
        }
    });
    KEY.load(Relaxed).checked_sub(1).map(|key| key as libc::pthread_key_t)
}

/// Has the record of this thread looked at once more, after the destructors that are still to run.
/// `false` if that cannot be.
fn look_again(record: &'static Record) -> bool {
    let value = ptr::from_ref(record).cast();
    // SAFETY: the key was made, and is never deleted.
    key().is_some_and(|key| unsafe { libc::pthread_setspecific(key, value) } == 0)
}

extern "C" fn at_last(record: *mut c_void) {
    // SAFETY: `look_again` has stored a record.
    end(unsafe { &*record.cast::<Record>() });
}

/// The last look at the record of a thread. What the main thread holds is no fault.
fn end(record: &'static Record) {
    record.sweep();
    if !record.is_named() {
        record.give_back();
    } else if !record.is_main() {
        faults::exit(record);
        record.end();
    }
}

/// The record of this thread, if that is at its end and held something when it came there.
#[cold]
pub(crate) fn ending() -> Option<&'static Record> {
    if CURRENT.get() != ENDED {
        return None;
    }
    // SAFETY: the key was made, and its value is null or what `look_again` has stored.
    key().and_then(|key| unsafe { libc::pthread_getspecific(key).cast::<Record>().as_ref() })
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
