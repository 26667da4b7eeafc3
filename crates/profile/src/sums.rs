//! The sums of the profile: each thread adds to its own.
//!
//! A thread has one *table* while the profile is on. The table has an *entry* for each place of an
//! acquisition and each lock acquired there. Tables and entries are allocated once and never freed.
//! A thread that ends leaves its table to a later thread of the same name.
//!
//! | field | set by | read by |
//! |---|---|---|
//! | `SINCE`, `SINCE_TICKS`, `EPOCH` | `start`, `stop`, `reset`, the child of a fork | all |
//! | `taken` of a table | a thread, when it takes a table and when it ends | all |
//! | `counts`, `stamps`, `holds` of a table | its thread | its thread |
//! | the name of a table | its first thread, before (publish table) | all |
//! | a list of entries | the thread of the table puts a new one at the head (publish entry) | all |
//! | the key of an entry | its thread, before (publish entry) | all |
//! | the epoch and the counters of an entry | the thread of the table | all |
//!
//! # Invariants
//! 1. Only the thread of a table stores to the counters of its entries. So an addition is a load
//!    and a store, and nothing is locked. (pass on) orders the stores of two threads of one table.
//! 2. A counter counts in the epoch of its entry. `reset` begins a new epoch and touches no entry.
//!    A thread that meets an entry of an older epoch closes it (close), clears it behind a fence,
//!    and opens it (open) in the new epoch.
//! 3. What began before `SINCE` is not counted, by whichever clock. So a hold counts if the profile
//!    was on, and was not reset, from its begin to its end. `reset` stores `SINCE` before it
//!    begins the epoch (begin epoch), and `start` before it switches the profile on (want). A
//!    thread that adds in the new epoch, or finds the profile on again, has seen the new `SINCE`.
//!
//! # Reading
//! A reader loads the epoch (open), the counters, and behind a fence (close) the epoch again. If it
//! has read a counter that was cleared for a later epoch, the second load shows the closed epoch.
//! The counters of an entry that is in use may differ by the acquisition that is counted just then.

use crate::stamps::Stamps;
use crate::subject::{Place, Subject};
use crate::ticks::{Scale, now, ticks};
use crate::wanted::{PROFILE, is_wanted, is_wanted_now, want};
use core::cell::Cell;
use core::ptr;
use std::collections::BTreeSet;
use ulocks_core::sync::{
    AtomicBool, AtomicPtr, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

/// After so many names, threads of further names are told apart by no name.
const NAMES: usize = 256;
/// How many entries of a table may have a lock of their own, of those with a holder and of those
/// without. The others are told apart by their class and places. A million locks that one line
/// makes must not need a million entries.
const ENTRIES: u32 = 4096;
const LISTS: usize = 512;
const OTHERS: &str = "(other threads)";
/// How many checked locks a thread has slots for.
pub const SLOTS: usize = 64;
/// An epoch that no entry is read in.
const CLOSED: u64 = 0;

/// Since when waits count, in nanoseconds, and holds, in ticks.
static SINCE: AtomicU64 = AtomicU64::new(0);
static SINCE_TICKS: AtomicU64 = AtomicU64::new(0);
static EPOCH: AtomicU64 = AtomicU64::new(1);

/// Whether the profile is on.
#[inline]
pub fn is_on() -> bool {
    is_wanted(PROFILE)
}

fn begin() {
    SINCE.store(now(), Relaxed);
    SINCE_TICKS.store(ticks(), Relaxed);
}

pub(crate) fn switch(on: bool) {
    begin();
    want(PROFILE, on);
}

/// Forgets all sums.
pub(crate) fn reset() {
    begin();
    EPOCH.fetch_add(1, Release); // (begin epoch)
}

/// What an entry counts; times of waits in nanoseconds, and of holds in ticks.
#[derive(Clone, Copy)]
enum Counter {
    Acquired,
    Contended,
    Wait,
    LongestWait,
    Hold,
    LongestHold,
}

type Counters = [AtomicU64; 6];
/// Counters of an entry as a reader found them, in their order.
pub(crate) type Sums = [u64; 6];

/// Turns the ticks of holds into nanoseconds.
pub(crate) fn tell_holds(sums: &mut Sums, scale: &Scale) {
    for which in [Counter::Hold, Counter::LongestHold] {
        let time = &mut sums[which as usize];
        *time = scale.nanos(*time);
    }
}

/// The lock and the place that an entry is for.
#[derive(Clone, Copy)]
pub struct Key {
    /// The class of the lock.
    pub class: &'static dyn Subject,
    /// Where it is acquired.
    pub place: Place,
    /// The address of the lock; 0 for the locks of the class that have no entry of their own.
    pub lock: usize,
    /// Of waits: where the lock was acquired that was waited for, if that is known.
    pub holder: Option<Place>,
}

impl Key {
    fn is(&self, other: &Self) -> bool {
        let holders = [self.holder, other.holder].map(|place| place.map_or(ptr::null(), ptr::from_ref));
        self.lock == other.lock
            && ptr::addr_eq(self.class, other.class)
            && ptr::eq(self.place, other.place)
            && ptr::eq(holders[0], holders[1])
    }

    fn list(&self) -> usize {
        let class = ptr::from_ref(self.class).cast::<()>().addr() as u64;
        let place = ptr::from_ref(self.place).addr() as u64;
        let holder = self.holder.map_or(0, |holder| ptr::from_ref(holder).addr() as u64);
        let key = (self.lock as u64) ^ class.rotate_left(21) ^ place.rotate_left(42) ^ holder.rotate_left(11);
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55) as usize % LISTS
    }
}

/// The sums of a thread for one place and one lock.
pub(crate) struct Entry {
    key: Key,
    epoch: AtomicU64,
    counters: Counters,
    next: *const Entry,
}

/// The entries of a thread.
pub(crate) struct Table {
    lists: [AtomicPtr<Entry>; LISTS],
    /// How many entries there are without a holder, and with one; of the thread of the table.
    counts: [Cell<u32>; 2],
    /// Of the plain locks; of the thread of the table.
    pub stamps: Stamps,
    /// By slot of the thread's list of checked locks: where the hold is counted, and when it began,
    /// in ticks. What is left of an earlier hold counts for nothing: an acquisition while the
    /// profile is on writes it, and another one is older than the next profile.
    holds: [Cell<(Option<&'static Entry>, u64)>; SLOTS],
    taken: AtomicBool,
    name: Box<str>,
    next: *const Table,
}

// SAFETY: `counts`, `stamps` and `holds` are used by the thread of the table only; names and links
// do not change after (publish table) and (publish entry); the rest is atomic.
unsafe impl Sync for Table {}

static ALL: AtomicPtr<Table> = AtomicPtr::new(ptr::null_mut());

fn tables() -> impl Iterator<Item = &'static Table> {
    let mut next: *const Table = ALL.load(Acquire); // (publish table)
    core::iter::from_fn(move || {
        // SAFETY: null, or a table; those are never freed, and this one came by (publish table).
        let table = unsafe { next.as_ref() }?;
        next = table.next;
        Some(table)
    })
}

/// Adds to a counter of the calling thread.
#[inline]
fn add(counters: &Counters, which: Counter, value: u64) {
    let counter = &counters[which as usize];
    counter.store(counter.load(Relaxed).wrapping_add(value), Relaxed);
}

#[inline]
fn raise(counters: &Counters, which: Counter, value: u64) {
    let counter = &counters[which as usize];
    if counter.load(Relaxed) < value {
        counter.store(value, Relaxed);
    }
}

impl Entry {
    /// The counters, for the thread of the table, if what began at that time counts: it is of no
    /// earlier profile than `since`.
    #[inline]
    fn open(&self, began: u64, since: &AtomicU64) -> Option<&Counters> {
        // First: so `since` is that of the start which this finds, or of a later one.
        let is_on = is_wanted_now(PROFILE); // (want)
        let epoch = EPOCH.load(Acquire); // (begin epoch)
        if began < since.load(Relaxed) || !is_on {
            return None;
        }
        if self.epoch.load(Relaxed) != epoch {
            self.clear(epoch);
        }
        Some(&self.counters)
    }

    #[cold]
    fn clear(&self, epoch: u64) {
        self.epoch.store(CLOSED, Relaxed);
        fence(Release); // (close)
        for counter in &self.counters {
            counter.store(0, Relaxed);
        }
        self.epoch.store(epoch, Release); // (open)
    }

    /// The lock was acquired at `began`, in ticks.
    #[inline]
    pub fn acquired(&self, began: u64) {
        if let Some(counters) = self.open(began, &SINCE_TICKS) {
            add(counters, Counter::Acquired, 1);
        }
    }

    /// A wait has ended, also one without the lock.
    pub fn waited(&self, began: u64) {
        if let Some(counters) = self.open(began, &SINCE) {
            let wait = now().saturating_sub(began);
            add(counters, Counter::Contended, 1);
            add(counters, Counter::Wait, wait);
            raise(counters, Counter::LongestWait, wait);
        }
    }

    /// The lock that was acquired at `began`, in ticks, is about to be released.
    #[inline]
    pub fn released(&self, began: u64) {
        if let Some(counters) = self.open(began, &SINCE_TICKS) {
            let hold = ticks().saturating_sub(began);
            add(counters, Counter::Hold, hold);
            raise(counters, Counter::LongestHold, hold);
        }
    }

    /// The sums of this epoch, for any thread.
    fn read(&self) -> Option<Sums> {
        let epoch = self.epoch.load(Acquire); // (open)
        let sums = self.counters.each_ref().map(|counter| counter.load(Relaxed));
        fence(Acquire); // (close)
        let same = epoch == self.epoch.load(Relaxed) && epoch == EPOCH.load(Relaxed);
        (same && sums != Sums::default()).then_some(sums)
    }
}

impl Table {
    /// A table for the calling thread, whose name is `thread`.
    #[cold]
    pub fn take(thread: &str) -> &'static Self {
        // Most programs have few tables. Threads of one name may have many.
        let is_full = tables().count() >= NAMES
            && !tables().any(|table| &*table.name == thread)
            && tables().map(|table| &table.name).collect::<BTreeSet<_>>().len() >= NAMES;
        let name = if is_full { OTHERS } else { thread };
        let free = tables().filter(|table| &*table.name == name).find(|table| {
            !table.taken.load(Relaxed) && table.taken.compare_exchange(false, true, Acquire, Relaxed).is_ok() // (pass on)
        });
        free.unwrap_or_else(|| Self::leak(name))
    }

    fn leak(name: &str) -> &'static Self {
        let table = Box::leak(Box::new(Self {
            lists: [const { AtomicPtr::new(ptr::null_mut()) }; LISTS],
            counts: [const { Cell::new(0) }; 2],
            stamps: Stamps::new(),
            holds: [const { Cell::new((None, 0)) }; SLOTS],
            taken: AtomicBool::new(true),
            name: name.into(),
            next: ptr::null(),
        }));
        let mut head = ALL.load(Relaxed);
        loop {
            table.next = head;
            match ALL.compare_exchange_weak(head, table, Release, Relaxed) /* (publish table) */ {
                Ok(_) => return table,
                Err(other) => head = other,
            }
        }
    }

    /// Leaves the table to a later thread. The caller is the thread of the table.
    pub fn give_back(&self) {
        self.stamps.clear();
        self.taken.store(false, Release); // (pass on)
    }

    /// The thread of the table has acquired a checked lock in that slot.
    #[inline]
    pub fn begin_hold(&self, slot: usize, key: &Key) {
        let hold = &self.holds[slot];
        // Mostly it is what the slot had before.
        let entry = match hold.get().0 {
            Some(entry) if entry.key.is(key) => entry,
            _ => self.entry(key),
        };
        let began = ticks();
        entry.acquired(began);
        hold.set((Some(entry), began));
    }

    /// The thread of the table is about to release the lock of that slot.
    #[inline]
    pub fn end_hold(&self, slot: usize) {
        if let (Some(entry), began) = self.holds[slot].get() {
            entry.released(began);
        }
    }

    /// The entry of `key`, made if it is new. The caller is the thread of the table.
    #[inline]
    pub fn entry(&self, key: &Key) -> &'static Entry {
        match self.find(key) {
            Some(entry) => entry,
            None => self.enter(key),
        }
    }

    #[inline]
    fn find(&self, key: &Key) -> Option<&'static Entry> {
        list(&self.lists[key.list()]).find(|entry| entry.key.is(key))
    }

    #[cold]
    fn enter(&self, key: &Key) -> &'static Entry {
        let mut key = *key;
        let count = &self.counts[usize::from(key.holder.is_some())];
        if count.get() >= ENTRIES {
            key.lock = 0;
            if let Some(entry) = self.find(&key) {
                return entry;
            }
        }
        count.set(count.get() + 1);
        let head = &self.lists[key.list()];
        let entry: &'static Entry = Box::leak(Box::new(Entry {
            key,
            epoch: AtomicU64::new(CLOSED),
            counters: Default::default(),
            next: head.load(Relaxed),
        }));
        head.store(ptr::from_ref(entry).cast_mut(), Release); // (publish entry)
        entry
    }
}

fn list(head: &AtomicPtr<Entry>) -> impl Iterator<Item = &'static Entry> {
    let mut next: *const Entry = head.load(Acquire); // (publish entry)
    core::iter::from_fn(move || {
        // SAFETY: null, or an entry; those are never freed, and this one came by (publish entry).
        let entry = unsafe { next.as_ref() }?;
        next = entry.next;
        Some(entry)
    })
}

/// The sums of all threads, each with the name of its thread.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, Key, Sums)> {
    tables().flat_map(|table| {
        let entries = table.lists.iter().flat_map(list);
        entries.filter_map(|entry| Some((&*table.name, entry.key, entry.read()?)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;
    use std::collections::HashSet;

    static NAME: Name = Name::new("sums");

    /// Each lock is acquired and waited for, by one line.
    #[test]
    fn locks_that_are_waited_for_are_told_apart_as_others() {
        let table = Table::take("waits for many");
        let key = |lock, holder| Key { class: &NAME, place: NAME.place, lock, holder };
        let told_apart = |holder: Option<Place>| {
            let locks = (1..=5_000).map(|lock| table.entry(&key(lock, holder)).key.lock);
            locks.collect::<HashSet<_>>().len()
        };
        let most = ENTRIES as usize;
        // The last one is that of all others.
        assert_eq!([None, Some(NAME.place)].map(told_apart), [most + 1; 2]);
    }

    /// A name counts once, however many threads have it at once.
    #[test]
    fn threads_of_one_name_leave_room_for_other_names() {
        let pool: Vec<_> = (0..2 * NAMES).map(|_| Table::take("pool")).collect();
        assert!(pool.iter().all(|table| &*table.name == "pool"));
        assert_eq!(&*Table::take("main loop").name, "main loop");
    }
}
