//! What each thread holds, and what it waits for.
//!
//! A thread has one *record*, from its first acquisition to its end. Records are allocated once,
//! never freed, and used again by later threads. So a pointer to a record is always valid, and
//! their number is that of the threads that were alive at once.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `owner_only`, `validated`, the cells of `counting`, the sums of `slots` | the thread | the thread |
//! | `used`, `slots` | the thread; another one that drops a lock clears that lock's address | all |
//! | `waits`, `waiting` | the thread | all |
//! | `taken`, `ended`, `identity` | the thread, at its first acquisition and its end | all |
//!
//! # What other threads see
//! Each held lock of a thread is an entry of a list (`slot.rs`) that any thread may read.
//! The walk for deadlocks (`wait.rs`) needs more and says how it gets it.

mod handlers;
mod identity;
mod room;
mod validated;
mod waits;

pub(crate) use crate::seen::slot::Held;
pub(crate) use handlers::is_in_handler;
#[cfg(checking)]
pub(crate) use handlers::{is_current, restore, swap};
pub(crate) use identity::ThreadIdentity;
pub(crate) use waits::Wait;

use crate::seen::access::Access;
use crate::seen::class::Node;
#[cfg(checking)]
use crate::seen::counting::Counting;
use crate::seen::report::{Place, ThreadName};
use crate::seen::slot::Slot;
use core::array;
use core::cell::Cell;
use core::ptr;
use ulocks_core::sync::{
    AtomicBool, AtomicPtr, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use ulocks_core::sync_static;
use waits::Waiting;

/// How many held locks of a thread are checked: the bits of a word.
pub(crate) const MOST: usize = if cfg!(modelled) { 2 } else { 64 };
/// How many of them have a slot in the record. Few threads ever hold more.
const NEAR: usize = if cfg!(modelled) { 1 } else { 16 };
/// How many validated sets of held locks a thread remembers.
const REMEMBERED: usize = 128;
/// A set has so many places to choose from.
const GROUP: usize = 8;

/// What a waiter on a condition variable had, and will have again.
#[derive(Clone, Copy)]
pub(crate) struct Rewait {
    pub lock: usize,
    pub subclass: u8,
    pub place: Place,
}

#[repr(C)]
pub(crate) struct OwnerOnly {
    /// Whether an entry was removed below another one. The sums of slots are not right then, until
    /// the first slot has the one entry.
    has_gap: Cell<bool>,
    /// The address of the lock of `rewait`, or 0.
    rewaits: Cell<usize>,
    rewait: Cell<Option<Rewait>>,
    /// How many held locks have no slot.
    pub(crate) over: Cell<u32>,
    /// Of a signal handler: its signal; otherwise 0.
    signal: Cell<u32>,
    /// Of a signal handler: the record of what it interrupts, if that has one.
    interrupted: Cell<Option<&'static Record>>,
    /// The slots of what watched futures hold and have reported, during the poll of an outer one.
    pub(crate) awaits: Cell<u64>,
}

/// Two lines are the unit in which CPUs fetch memory. No two records share such a unit. `used` and
/// what else each acquisition needs are in the first line.
#[repr(C, align(128))]
pub(crate) struct Record {
    /// A bit for each slot that has an entry.
    pub(crate) used: AtomicU64,
    pub(crate) owner_only: OwnerOnly,
    slots: [Slot; NEAR],
    /// The other slots, from the first time that they are needed.
    more: AtomicPtr<[Slot; MOST - NEAR]>,
    /// Keys of acquisitions that broke no rule. For the thread itself.
    validated: [Cell<u64>; REMEMBERED],
    #[cfg(checking)]
    counting: Counting,
    /// Odd while the thread waits.
    waits: AtomicU64,
    waiting: Waiting,
    taken: AtomicBool,
    /// The thread has ended with locks held.
    ended: AtomicBool,
    identity: ThreadIdentity,
    next: AtomicPtr<Record>,
}

// SAFETY: `owner_only`, `validated`, the cells of `counting` and the sums of slots are used by the
// thread of the record only, as their methods ask; the rest is atomic.
unsafe impl Sync for Record {}

sync_static! {
    static RECORDS: AtomicPtr<Record> = AtomicPtr::new(ptr::null_mut());
}

/// All records, also those without a thread.
pub(crate) fn records() -> impl Iterator<Item = &'static Record> {
    let mut next = RECORDS.load(Acquire); // (publish)
    core::iter::from_fn(move || {
        // SAFETY: records are never freed, and this one came by (publish).
        let record = unsafe { next.as_ref() }?;
        next = record.next.load(Relaxed);
        Some(record)
    })
}

/// The record of a thread that is at its end.
pub(crate) const ENDED: *const Record = ptr::without_provenance(1);

std::thread_local! {
    pub(crate) static CURRENT: Cell<*const Record> = const { Cell::new(ptr::null()) };
}

/// The record of this thread, if it has one already.
#[inline(always)]
pub(crate) fn existing() -> Option<&'static Record> {
    let current = CURRENT.get();
    // SAFETY: neither of the two special values, so a record, and those are never freed.
    (!current.is_null() && current != ENDED).then(|| unsafe { &*current })
}

/// The set bits of `used`, from the lowest.
pub(crate) fn indices(mut used: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let index = used.trailing_zeros();
        used &= used.checked_sub(1)?;
        Some(index as usize)
    })
}

impl Record {
    pub fn leak() -> &'static Self {
        let owner_only = OwnerOnly {
            has_gap: Cell::new(false),
            rewaits: Cell::new(0),
            rewait: Cell::new(None),
            over: Cell::new(0),
            signal: Cell::new(0),
            interrupted: Cell::new(None),
            awaits: Cell::new(0),
        };
        let record: &'static Self = Box::leak(Box::new(Self {
            used: AtomicU64::new(0),
            owner_only,
            slots: array::from_fn(|_| Slot::new()),
            more: AtomicPtr::default(),
            validated: [const { Cell::new(0) }; REMEMBERED],
            #[cfg(checking)]
            counting: Counting::new(),
            waits: AtomicU64::new(0),
            waiting: Waiting::default(),
            taken: AtomicBool::new(true),
            ended: AtomicBool::new(false),
            identity: ThreadIdentity::new(),
            next: AtomicPtr::default(),
        }));
        record.publish();
        record
    }

    /// Enters a new record into the list of all.
    fn publish(&'static self) {
        let mut head = RECORDS.load(Relaxed);
        loop {
            self.next.store(head, Relaxed);
            let this = ptr::from_ref(self).cast_mut();
            match RECORDS.compare_exchange_weak(head, this, Release, Relaxed) /* (publish) */ {
                Ok(_) => return,
                Err(other) => head = other,
            }
        }
    }

    /// A thread without a record takes this one. `false` if another thread has it.
    pub fn take(&self) -> bool {
        !self.taken.load(Relaxed) && self.taken.compare_exchange(false, true, Acquire, Relaxed).is_ok() // (pass on)
    }

    pub fn give_back(&self) {
        self.set_rewait(None);
        self.owner_only.over.set(0);
        self.owner_only.awaits.set(0);
        self.taken.store(false, Release); // (pass on)
    }

    /// The name and the number of the thread.
    pub fn identity(&self) -> &ThreadIdentity {
        &self.identity
    }

    pub fn name(&self) -> ThreadName {
        self.identity.name()
    }

    pub fn is_taken(&self) -> bool {
        self.taken.load(Relaxed)
    }

    /// Whether the thread has ended with locks held. A thread that got one of these from the kernel
    /// sees it.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Relaxed)
    }

    /// The thread ends with locks held. They name this record as their holder: no other thread may
    /// get it.
    pub fn end(&self) {
        self.ended.store(true, Relaxed);
        self.used.store(0, Relaxed);
    }

    pub fn is_main(&self) -> bool {
        self.identity.tid() == std::process::id()
    }

    #[inline]
    pub fn holds_any(&self) -> bool {
        self.used.load(Relaxed) != 0
    }

    /// What the thread holds. Complete only for that thread itself.
    pub fn held(&self) -> impl Iterator<Item = Held> {
        let used = self.used.load(Acquire); // (publish): the slots outside of the record are there
        indices(used).filter_map(|index| self.slot(index).read(&self.used, 1 << index))
    }

    /// This thread holds `lock` from now on. `false` if there is no slot for it.
    #[inline(always)]
    pub fn push(&self, held: &Held) -> bool {
        let used = self.used.load(Relaxed);
        let free = used.trailing_ones();
        let Some(slot) = self.slots.get(free as usize).or_else(|| self.more_slot(free as usize)) else {
            return self.push_swept(held);
        };
        let hash = || held.class.hash((held.subclass, held.access.code()), held.instance);
        let sum = if used == 0 { 0 } else { self.sum().wrapping_add(hash()) };
        slot.write(held);
        slot.sum.set(sum);
        self.used.store(used | 1 << free, Release); // (publish) of `slot.rs`
        self.has_entered(free as usize, held);
        true
    }

    /// A slot for the next lock, if there is one in the record and the slots have no gap.
    #[cfg(checking)]
    #[inline(always)]
    pub fn place_at_once(&self) -> Option<(&Slot, u64)> {
        let used = self.used.load(Relaxed);
        let slot = self.slots.get(used.trailing_ones() as usize)?;
        (used & used.wrapping_add(1) == 0).then_some((slot, used))
    }

    /// As [`push`](Self::push), into that place. `sum` is that of all hashes, the new one included,
    /// if the thread holds something already. The time is one that nothing wants to know of.
    #[cfg(checking)]
    #[inline(always)]
    pub fn push_at_once(&self, (slot, used): (&Slot, u64), held: &Held, sum: u64) {
        slot.write(held);
        if used != 0 {
            slot.sum.set(sum);
        }
        // Mutant: Release -> Relaxed: models have `push` only, which stores in the same way.
        self.used.store(used << 1 | 1, Release); // (publish) of `slot.rs`
        self.is_acquired(held);
    }

    /// This thread no longer holds the mutex at the address `lock`, if it was the last one that it
    /// acquired, in the record, and nothing wants to know of it.
    #[cfg(checking)]
    #[inline(always)]
    pub fn pop_at_once(&self, lock: usize) -> bool {
        let used = self.used.load(Relaxed);
        let last = used.trailing_ones().wrapping_sub(1) as usize;
        let Some(slot) = self.slots.get(last) else { return false };
        let is_it = slot.is_mutex(lock) && !slot.is_noted() && used & used.wrapping_add(1) == 0;
        if is_it {
            self.is_released(slot);
            // Mutant: Release -> Relaxed: models have `pop_as` only, which clears in the same way.
            self.used.store(used >> 1, Release); // (publish): the entries that stay
        }
        is_it
    }

    /// The slot of that number. It has had an entry.
    #[inline(always)]
    pub(crate) fn slot(&self, index: usize) -> &Slot {
        match self.slots.get(index) {
            Some(slot) => slot,
            None => self.far_slot(index),
        }
    }

    /// Its wait, for the profile.
    #[cfg(checking)]
    #[inline]
    pub fn counting(&self) -> &Counting {
        &self.counting
    }

    /// The lock of that slot is about to be released.
    #[inline(always)]
    fn release(&self, used: u64, index: usize) {
        self.is_about_to_leave(index, self.slot(index));
        self.clear(used, index);
    }

    /// This thread no longer holds the lock at the address `lock`, if it holds it with an access
    /// that `fits`.
    #[inline]
    pub fn pop_as(&self, lock: usize, fits: impl Fn(Access) -> bool) -> bool {
        let used = self.used.load(Relaxed);
        let is_it = |index: &usize| {
            let slot = self.slot(*index);
            slot.lock() == lock && fits(slot.access())
        };
        // Mostly it is the last one. What is left of an older entry has no bit.
        let last = Some((used | 1).ilog2() as usize).filter(|last| used & 1 << last != 0);
        let found = last.filter(is_it).or_else(|| indices(used).filter(is_it).last());
        if let Some(index) = found {
            self.release(used, index);
        }
        found.is_some()
    }

    #[inline(always)]
    fn clear(&self, used: u64, index: usize) {
        if used >> index != 1 {
            self.owner_only.has_gap.set(true);
        }
        self.used.store(used & !(1 << index), Release); // (publish): the entries that stay
    }

    /// The sum of the hashes of what this thread holds, which is something.
    #[inline(always)]
    pub fn sum(&self) -> u64 {
        let used = self.used.load(Relaxed);
        self.sum_at_once(used).unwrap_or_else(|| self.sum_of_all(used))
    }

    /// The same, if the slots have no gap.
    #[inline(always)]
    pub fn sum_at_once(&self, used: u64) -> Option<u64> {
        if used == 1 {
            self.owner_only.has_gap.set(false);
            return Some(self.slots[0].hash());
        }
        let last = self.slots.get(used.trailing_ones().wrapping_sub(1) as usize)?;
        (!self.owner_only.has_gap.get()).then(|| last.sum.get())
    }

    #[inline(never)]
    fn sum_of_all(&self, used: u64) -> u64 {
        indices(used).map(|index| self.slot(index).hash()).fold(0, u64::wrapping_add)
    }

    /// Whether this thread holds a lock of `class`.
    #[inline]
    pub fn holds_one_of(&self, class: &Node) -> bool {
        indices(self.used.load(Relaxed)).any(|index| self.slot(index).is_of(class))
    }

    pub fn set_rewait(&self, rewait: Option<Rewait>) {
        self.owner_only.rewaits.set(rewait.map_or(0, |rewait| rewait.lock));
        self.owner_only.rewait.set(rewait);
    }

    /// Whether this thread released `lock` to wait on a condition variable.
    #[inline(always)]
    pub fn has_rewait(&self, lock: usize) -> bool {
        self.owner_only.rewaits.get() == lock
    }

    /// If this thread released `lock` to wait on a condition variable: how it had acquired it.
    #[inline(always)]
    pub fn take_rewait(&self, lock: usize) -> Option<Rewait> {
        if self.owner_only.rewaits.get() == lock { self.take_this_rewait() } else { None }
    }

    #[inline(never)]
    fn take_this_rewait(&self) -> Option<Rewait> {
        self.owner_only.rewaits.set(0);
        self.owner_only.rewait.take()
    }

    /// In the child of a fork: the thread of this record is not there.
    pub fn vanish(&self) {
        self.owner_only.over.set(0);
        self.set_rewait(None);
        self.used.store(0, Relaxed);
        self.waits.store(self.waits.load(Relaxed).next_multiple_of(2), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum is kept up to date, or computed where a gap has made it wrong.
    #[test]
    fn the_sum_is_that_of_what_is_held() {
        use crate::seen::class::{Origin, resolve};
        let record = Record::leak();
        let (place, mut random) = (core::panic::Location::caller(), 1_u64);
        let (class, own) =
            (resolve(Origin::made::<u8>(place), place, "T"), resolve(Origin::UNKNOWN, place, "T"));
        let mut locks: Vec<usize> = Vec::new();
        for lock in 1..if cfg!(miri) { 200 } else { 20_000 } {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let [choice, index, depth] = [32, 40, 48].map(|shift| (random >> shift) as usize % 8);
            if locks.len() <= depth {
                let class = if choice % 2 == 0 { class } else { own };
                let access = Access::from_code(choice as u32 / 2);
                let held = Held { lock, class, subclass: 0, access, instance: lock as u64, place, since: 0 };
                let sum = || {
                    let hash = class.hash((0, access.code()), lock as u64);
                    record.sum_at_once(record.used.load(Relaxed)).unwrap_or(0).wrapping_add(hash)
                };
                match record.place_at_once() {
                    Some((slot, 0)) => record.push_at_once((slot, 0), &held, 0),
                    Some((slot, used)) if record.sum_at_once(used).is_some() => {
                        record.push_at_once((slot, used), &held, sum());
                    }
                    _ => assert!(record.push(&held)),
                }
                locks.push(lock);
            } else {
                // Mostly the last one.
                let at = if choice < 6 { locks.len() - 1 } else { index % locks.len() };
                let lock = locks.remove(at);
                assert!(record.pop_at_once(lock) || record.pop_as(lock, |_| true), "it is held");
            }
            let used = record.used.load(Relaxed);
            assert_eq!(used.count_ones() as usize, locks.len());
            if used == 1 {
                record.sum_at_once(1);
                assert!(!record.owner_only.has_gap.get(), "a gap stays");
            }
            assert_eq!(record.sum(), record.sum_of_all(used), "after {lock} steps, {used:b}");
        }
    }

    /// A record is most of what the checker keeps of a thread.
    #[test]
    fn a_thread_takes_four_kilobytes() {
        assert!(size_of::<Record>() <= 4096, "{} bytes", size_of::<Record>());
    }
}
