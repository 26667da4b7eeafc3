//! What a thread counts of its waits and holds, for the contention profile and for the events. Only
//! that thread uses it, but for the place of the holder that it waits for.

use crate::seen::class::Node;
use crate::seen::events;
use crate::seen::report::Place;
use crate::seen::slot::Held;
use crate::seen::thread::Wait;
use core::cell::Cell;
use core::panic::Location;
use core::ptr;
use ulocks_core::sync::{AtomicPtr, Ordering::Relaxed};
use ulocks_profile::counting::{self, Key, SLOTS, Subject, now};
use ulocks_profile::is_on;

const _: () = assert!(SLOTS == crate::seen::thread::MOST);

impl Subject for Node {
    fn name(&self) -> &str {
        self.name()
    }

    fn made(&self) -> Place {
        self.place()
    }

    fn is_plain(&self) -> bool {
        false
    }
}

/// The thread has acquired a lock, while the profile was on.
#[inline]
pub(crate) fn acquired(slot: usize, held: &Held) {
    let key = Key { class: held.class, place: held.place, lock: held.lock, holder: None };
    counting::acquired(slot, &key);
}

pub(crate) struct Counting {
    /// When the wait began, if anything asks for that.
    wait_began: Cell<Option<u64>>,
    /// Where the lock of the wait was acquired, or null. It is `'static`, and tells of no other
    /// memory, so all its accesses are Relaxed.
    holder: AtomicPtr<Location<'static>>,
    /// Whether the thread has waited for what it acquires next.
    has_waited: Cell<bool>,
}

impl Counting {
    pub const fn new() -> Self {
        Self {
            wait_began: Cell::new(None),
            holder: AtomicPtr::new(ptr::null_mut()),
            has_waited: Cell::new(false),
        }
    }

    /// A wait begins. `holder` looks for the place of an acquisition that keeps it waiting.
    pub fn begin_wait(&self, holder: impl FnOnce() -> Option<Place>) {
        let is_on = is_on();
        self.holder.store(ptr::null_mut(), Relaxed);
        let holder = if is_on { holder() } else { None };
        holder.inspect(|place| self.is_kept_by(place));
        if is_on || events::wants_waits() {
            self.wait_began.set(Some(now()));
        }
    }

    /// A holder that acquired the lock at `place` keeps the thread waiting. The first one counts.
    pub fn is_kept_by(&self, place: Place) {
        let place = ptr::from_ref(place).cast_mut();
        let _ = self.holder.compare_exchange(ptr::null_mut(), place, Relaxed, Relaxed);
    }

    /// Whether the thread has waited for what it has acquired. It is asked once.
    pub fn has_waited(&self) -> bool {
        self.has_waited.take()
    }

    /// When the wait began that ends now, if anything asks for that.
    pub fn end_wait(&self) -> Option<u64> {
        self.wait_began.take()
    }

    /// The wait that began then has ended.
    #[cold]
    pub fn waited(&self, wait: &Wait, began: u64) {
        if is_on() {
            self.has_waited.set(true);
            // SAFETY: null, or stored from a reference that is `'static`.
            let holder = unsafe { self.holder.load(Relaxed).as_ref() };
            let key = Key { class: wait.class, place: wait.place, lock: wait.lock, holder };
            counting::waited(&key, began);
        }
        events::waited(wait, now() - began);
    }
}
