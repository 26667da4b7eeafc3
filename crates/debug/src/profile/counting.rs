//! What the profile keeps in the record of a thread. Only that thread uses it.

use super::events;
use super::sums::{self, Key, Table};
use crate::rules::clock::now;
use crate::seen::report::Place;
use crate::seen::thread::ThreadIdentity;
use crate::seen::thread::{Held, Wait};
use core::cell::Cell;

pub(crate) struct Counting {
    /// The sums, once the profile was on at an acquisition.
    table: Cell<Option<&'static Table>>,
    /// When the wait began; 0 if nothing asks for that.
    wait_began: Cell<u64>,
    /// Where the lock of the wait was acquired then.
    holder: Cell<Option<Place>>,
}

impl Counting {
    pub const fn new() -> Self {
        Self { table: Cell::new(None), wait_began: Cell::new(0), holder: Cell::new(None) }
    }

    /// The sums of the calling thread, whose name is that of `me`.
    #[inline]
    pub fn table(&self, me: &ThreadIdentity) -> &'static Table {
        self.known_table().unwrap_or_else(|| self.take_table(me))
    }

    #[cold]
    fn take_table(&self, me: &ThreadIdentity) -> &'static Table {
        let taken = Table::take(&me.name().name);
        self.table.set(Some(taken));
        taken
    }

    /// The sums of the thread, if the profile was on at one of its acquisitions.
    #[inline]
    pub fn known_table(&self) -> Option<&'static Table> {
        self.table.get()
    }

    /// The thread ends.
    pub fn give_back(&self) {
        if let Some(table) = self.table.take() {
            table.give_back();
        }
    }

    /// The thread has acquired a lock, while the profile was on.
    #[inline]
    pub fn acquired(&self, me: &ThreadIdentity, slot: usize, held: &Held) {
        self.table(me).begin_hold(slot, held);
    }

    /// The thread is about to release a lock that it has acquired so.
    #[inline]
    pub fn released(&self, slot: usize) {
        if let Some(table) = self.known_table() {
            table.end_hold(slot);
        }
    }

    /// A wait begins. `holder` looks for the place of an acquisition that keeps it waiting.
    pub fn begin_wait(&self, holder: impl FnOnce() -> Option<Place>) {
        let is_on = sums::is_on();
        self.holder.set(if is_on { holder() } else { None });
        if is_on || events::wants_waits() {
            self.wait_began.set(now());
        }
    }

    /// When the wait began that ends now, if anything asks for that.
    pub fn end_wait(&self) -> Option<u64> {
        Some(self.wait_began.replace(0)).filter(|&began| began != 0)
    }

    /// The wait that began then has ended.
    #[cold]
    pub fn waited(&self, me: &ThreadIdentity, wait: &Wait, began: u64) {
        if sums::is_on() {
            let holder = self.holder.take();
            let key = Key { class: wait.class, place: wait.place, lock: wait.lock, holder };
            self.table(me).entry(&key).waited(began);
        }
        events::waited(wait, now() - began);
    }
}
