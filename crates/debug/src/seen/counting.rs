//! What a thread counts of its waits and holds, for the contention profile and for the events. Only
//! that thread uses it.

use crate::seen::class::Node;
use crate::seen::events;
use crate::seen::report::Place;
use crate::seen::slot::Held;
use crate::seen::thread::Wait;
use core::cell::Cell;
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
    /// Where the lock of the wait was acquired then.
    holder: Cell<Option<Place>>,
}

impl Counting {
    pub const fn new() -> Self {
        Self { wait_began: Cell::new(None), holder: Cell::new(None) }
    }

    /// A wait begins. `holder` looks for the place of an acquisition that keeps it waiting.
    pub fn begin_wait(&self, holder: impl FnOnce() -> Option<Place>) {
        let is_on = is_on();
        self.holder.set(if is_on { holder() } else { None });
        if is_on || events::wants_waits() {
            self.wait_began.set(Some(now()));
        }
    }

    /// When the wait began that ends now, if anything asks for that.
    pub fn end_wait(&self) -> Option<u64> {
        self.wait_began.take()
    }

    /// The wait that began then has ended.
    #[cold]
    pub fn waited(&self, wait: &Wait, began: u64) {
        if is_on() {
            let holder = self.holder.take();
            let key = Key { class: wait.class, place: wait.place, lock: wait.lock, holder };
            counting::waited(&key, began);
        }
        events::waited(wait, now() - began);
    }
}
