//! Lists that only grow, also in signal handlers: an entry is put at the head of its list, and
//! stays.

use core::iter;
use core::ptr::NonNull;
use ulocks_core::sync::{
    AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
};

/// The link of an entry to the next one.
pub(super) type Next<T> = fn(&T) -> &AtomicPtr<T>;

/// Publishes an entry that was written, and is never freed (publish).
pub(super) fn push<T>(head: &AtomicPtr<T>, new: NonNull<T>, next: Next<T>) {
    // SAFETY: it is never freed.
    let link = next(unsafe { new.as_ref() });
    let mut first = head.load(Relaxed);
    loop {
        link.store(first, Relaxed);
        match head.compare_exchange_weak(first, new.as_ptr(), Release, Relaxed) /* (publish) */ {
            Ok(_) => return,
            Err(other) => first = other,
        }
    }
}

/// The entries, the latest first.
pub(super) fn each<T: 'static>(
    head: &AtomicPtr<T>,
    next: Next<T>,
) -> impl Iterator<Item = &'static T> + use<T> {
    let follow = |entry: *mut T| {
        // SAFETY: entries are never freed, and those of the list came by (publish).
        unsafe { entry.as_ref() }
    };
    let first = follow(head.load(Acquire)); // (publish)
    iter::successors(first, move |entry| follow(next(entry).load(Relaxed)))
}
