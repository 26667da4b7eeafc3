//! What each thread holds, and what it waits for.
//!
//! A thread has one *record*, from its first acquisition to its end. Records are allocated once,
//! never freed, and used again by later threads. So a pointer to a record is always valid, and
//! their number is that of the threads that were alive at once.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `owner_only` | the thread | the thread |
//! | `used`, `slots` | the thread; another one that drops a lock clears that lock's address | all |
//! | `waits`, `waiting` | the thread | all |
//! | `taken`, `identity` | the thread, at its first acquisition and its end | all |
//!
//! # What other threads see
//! Each held lock of a thread is an entry of a list (`slot.rs`) that any thread may read.
//! The walk for deadlocks (`wait.rs`) needs more and says how it gets it.

use crate::access::Access;
use crate::class::Node;
use crate::clock::is_exact;
use crate::probes;
use crate::profile::counting::Counting;
use crate::report::{LockName, Place, ThreadName};
pub(crate) use crate::slot::Held;
use crate::slot::{Slot, how};
use crate::thread_identity::ThreadIdentity;
use core::array;
use core::cell::Cell;
use core::panic::Location;
use core::ptr;
use ulocks_core::sync::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};
use ulocks_core::sync::{
    Ordering::{AcqRel, Acquire, Relaxed, Release},
    fence,
};

/// How many held locks of a thread are checked: the bits of a word.
pub(crate) const MOST: usize = 64;
/// How many validated sets of held locks a thread remembers.
const REMEMBERED: usize = 256;

/// What a thread waits for.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    pub lock: usize,
    pub class: &'static Node,
    pub subclass: u8,
    pub access: Access,
    pub place: Place,
    pub timed: bool,
    /// By the coarse clock, in nanoseconds.
    pub since: u64,
}

impl Wait {
    pub fn name(&self) -> LockName {
        self.class.lock_name(self.lock, self.subclass, self.access)
    }
}

/// What a waiter on a condition variable had, and will have again.
#[derive(Clone, Copy)]
pub(crate) struct Rewait {
    pub lock: usize,
    pub subclass: u8,
    pub place: Place,
}

#[derive(Default)]
struct Waiting {
    lock: AtomicUsize,
    class: AtomicPtr<Node>,
    place: AtomicPtr<Location<'static>>,
    timed: AtomicBool,
    since: AtomicU64,
    /// The subclass in the low byte, the access above.
    how: AtomicU32,
}

struct OwnerOnly {
    /// The sum of the hashes of what is held.
    sum: Cell<u64>,
    /// A bit for the class of each held lock.
    classes: Cell<u64>,
    /// That bit, by slot.
    bits: [Cell<u64>; MOST],
    /// The slot of the last acquisition.
    last: Cell<u32>,
    /// How many held locks have no slot.
    over: Cell<u32>,
    profile: Counting,
    rewait: Cell<Option<Rewait>>,
    /// Keys of acquisitions that broke no rule.
    validated: [Cell<u64>; REMEMBERED],
}

pub(crate) struct Record {
    owner_only: OwnerOnly,
    used: AtomicU64,
    slots: [Slot; MOST],
    /// Odd while the thread waits.
    waits: AtomicU64,
    waiting: Waiting,
    taken: AtomicBool,
    identity: ThreadIdentity,
    next: AtomicPtr<Record>,
}

// SAFETY: `owner_only` is used by the thread of the record only, as its methods ask; the rest is
// atomic.
unsafe impl Sync for Record {}

static RECORDS: AtomicPtr<Record> = AtomicPtr::new(ptr::null_mut());

/// All records, also those without a thread.
pub(crate) fn records() -> impl Iterator<Item = &'static Record> {
    let mut next = RECORDS.load(Acquire); // (R)
    core::iter::from_fn(move || {
        // SAFETY: records are never freed, and (R) has published this one.
        let record = unsafe { next.as_ref() }?;
        next = record.next.load(Relaxed);
        Some(record)
    })
}

/// The record of a thread that is at its end.
const ENDED: *const Record = ptr::without_provenance(1);

std::thread_local! {
    static CURRENT: Cell<*const Record> = const { Cell::new(ptr::null()) };
    static EXIT: Exit = const { Exit };
}

/// The record of this thread. `None` if the thread is at its end.
#[inline]
pub(crate) fn current() -> Option<&'static Record> {
    let current = CURRENT.get();
    if current.is_null() || current == ENDED {
        return begin();
    }
    // SAFETY: neither of the two special values, so a record, and those are never freed.
    Some(unsafe { &*current })
}

/// The record of this thread, if it has one already.
pub(crate) fn existing() -> Option<&'static Record> {
    let current = CURRENT.get();
    // SAFETY: neither of the two special values, so a record, and those are never freed.
    (!current.is_null() && current != ENDED).then(|| unsafe { &*current })
}

/// Gives this thread a record.
#[cold]
fn begin() -> Option<&'static Record> {
    if !CURRENT.get().is_null() || EXIT.try_with(|_| ()).is_err() {
        return None;
    }
    crate::fork::watch();
    let free = records().find(|record| {
        !record.taken.load(Relaxed) && record.taken.compare_exchange(false, true, AcqRel, Relaxed).is_ok() // (E)
    });
    let record = free.unwrap_or_else(Record::leak);
    record.identity.set();
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
        record.profile().give_back();
        // The main thread ends with the process, which may end while locks are held.
        if record.is_main() || !record.holds_any() {
            record.give_back();
            return;
        }
        crate::rules::exit(record);
        // Locks name this record as their holder: no other thread may get it.
        record.used.store(0, Relaxed);
    }
}

impl Record {
    fn leak() -> &'static Self {
        let owner_only = OwnerOnly {
            sum: Cell::new(0),
            classes: Cell::new(0),
            bits: [const { Cell::new(0) }; MOST],
            last: Cell::new(0),
            over: Cell::new(0),
            profile: Counting::new(),
            rewait: Cell::new(None),
            validated: [const { Cell::new(0) }; REMEMBERED],
        };
        let record: &'static Self = Box::leak(Box::new(Self {
            owner_only,
            used: AtomicU64::new(0),
            slots: array::from_fn(|_| Slot::new()),
            waits: AtomicU64::new(0),
            waiting: Waiting::default(),
            taken: AtomicBool::new(true),
            identity: ThreadIdentity::new(),
            next: AtomicPtr::default(),
        }));
        let mut head = RECORDS.load(Relaxed);
        loop {
            record.next.store(head, Relaxed);
            let this = ptr::from_ref(record).cast_mut();
            match RECORDS.compare_exchange_weak(head, this, Release, Relaxed) /* (R) */ {
                Ok(_) => return record,
                Err(other) => head = other,
            }
        }
    }

    fn give_back(&self) {
        self.owner_only.rewait.set(None);
        self.owner_only.over.set(0);
        self.taken.store(false, Release); // (E)
    }

    /// The name and the number of the thread.
    pub fn identity(&self) -> &ThreadIdentity {
        &self.identity
    }

    pub fn name(&self) -> ThreadName {
        self.identity.name()
    }

    pub fn is_taken(&self) -> bool {
        self.taken.load(Acquire)
    }

    fn is_main(&self) -> bool {
        self.identity.tid() == std::process::id()
    }

    #[inline]
    pub fn holds_any(&self) -> bool {
        self.used.load(Relaxed) != 0
    }

    /// What the thread holds. Complete only for that thread itself.
    pub fn held(&self) -> impl Iterator<Item = Held> {
        let used = self.used.load(Acquire);
        let slots = self.slots.iter().enumerate();
        slots.filter(move |(index, _)| used & (1 << index) != 0).filter_map(|(_, slot)| slot.read())
    }

    /// This thread holds `lock` from now on. `false` if there is no slot for it.
    #[inline]
    pub fn push(&self, held: &Held) -> bool {
        let used = self.used.load(Relaxed);
        let free = used.trailing_ones();
        let Some(slot) = self.slots.get(free as usize) else {
            return self.push_over();
        };
        slot.write(held);
        self.used.store(used | 1 << free, Release);
        let own = &self.owner_only;
        own.last.set(free);
        own.sum.set(own.sum.get().wrapping_add(held.class.hash(held.subclass, held.access)));
        own.classes.set(own.classes.get() | held.class.bit());
        own.bits[free as usize].set(held.class.bit());
        probes::acquired(held.lock, held.class, held.place);
        if is_exact(held.since) {
            own.profile.acquired(&self.identity, free as usize, held);
        }
        true
    }

    #[cold]
    fn push_over(&self) -> bool {
        self.owner_only.over.set(self.owner_only.over.get() + 1);
        false
    }

    /// What the profile keeps of this thread.
    #[inline]
    pub fn profile(&self) -> &Counting {
        &self.owner_only.profile
    }

    /// This thread no longer holds the lock at the address `lock`. `false` if it had no slot.
    #[inline]
    pub fn pop(&self, lock: usize) -> bool {
        let own = &self.owner_only;
        let mut index = own.last.get() as usize;
        let used = self.used.load(Relaxed);
        if used & (1 << index) == 0 || self.slots[index].lock() != lock {
            match self.find(used, lock) {
                Some(found) => index = found,
                None => {
                    own.over.set(own.over.get().saturating_sub(1));
                    return false;
                }
            }
        }
        self.release(used, index, lock);
        true
    }

    /// The lock of that slot is about to be released.
    #[inline]
    fn release(&self, used: u64, index: usize, lock: usize) {
        probes::released(lock);
        let since = self.slots[index].since();
        if is_exact(since) {
            self.owner_only.profile.released(index, since);
        }
        self.clear(used, index);
    }

    fn find(&self, used: u64, lock: usize) -> Option<usize> {
        (0..MOST).rev().find(|&index| used & (1 << index) != 0 && self.slots[index].lock() == lock)
    }

    /// As [`pop`](Self::pop), if this thread holds the lock with an access that `fits`.
    #[inline]
    pub fn pop_as(&self, lock: usize, fits: impl Fn(Access) -> bool) -> bool {
        let used = self.used.load(Relaxed);
        let is_it = |index: usize| {
            let slot = &self.slots[index];
            used & (1 << index) != 0 && slot.lock() == lock && fits(slot.access())
        };
        let last = self.owner_only.last.get() as usize;
        let found = if is_it(last) { Some(last) } else { (0..MOST).rev().find(|&index| is_it(index)) };
        if let Some(index) = found {
            self.release(used, index, lock);
        }
        found.is_some()
    }

    /// Forgets one lock that has no slot. `false` if there is none.
    pub fn pop_over(&self) -> bool {
        let over = self.owner_only.over.get();
        self.owner_only.over.set(over.saturating_sub(1));
        over > 0
    }

    #[inline]
    fn clear(&self, used: u64, index: usize) {
        let (own, slot) = (&self.owner_only, &self.slots[index]);
        own.sum.set(own.sum.get().wrapping_sub(slot.class_hash()));
        slot.clear();
        let used = used & !(1 << index);
        self.used.store(used, Release);
        if used == 0 {
            own.classes.set(0);
            own.sum.set(0);
        } else {
            own.last.set(63 - used.leading_zeros());
            own.classes.set(self.classes_of(used));
        }
    }

    #[inline]
    fn classes_of(&self, mut used: u64) -> u64 {
        let mut classes = 0;
        while used != 0 {
            classes |= self.owner_only.bits[used.trailing_zeros() as usize].get();
            used &= used - 1;
        }
        classes
    }

    /// Another thread, or this one, drops a lock that this thread holds.
    pub fn forget(&self, lock: usize) {
        for slot in &self.slots {
            // The slot stays used until its thread needs it.
            slot.forget(lock);
        }
    }

    /// Frees the slots of locks that were dropped.
    #[cold]
    pub fn sweep(&self) {
        let mut used = self.used.load(Relaxed);
        for index in 0..MOST {
            if used & (1 << index) != 0 && self.slots[index].lock() == 0 {
                self.clear(used, index);
                used = self.used.load(Relaxed);
            }
        }
    }

    /// The sum of the hashes of what this thread holds.
    #[inline]
    pub fn sum(&self) -> u64 {
        self.owner_only.sum.get()
    }

    /// Whether this thread may hold a lock of `class`.
    #[inline]
    pub fn may_hold(&self, class: &Node) -> bool {
        self.owner_only.classes.get() & class.bit() != 0
    }

    /// Whether an acquisition with this key has been found to break no rule.
    #[inline]
    pub fn is_validated(&self, key: u64) -> bool {
        self.owner_only.validated[key as usize % REMEMBERED].get() == key
    }

    pub fn validate(&self, key: u64) {
        self.owner_only.validated[key as usize % REMEMBERED].set(key);
    }

    pub fn set_rewait(&self, rewait: Option<Rewait>) {
        self.owner_only.rewait.set(rewait);
    }

    /// If this thread released `lock` to wait on a condition variable: how it had acquired it.
    #[inline]
    pub fn take_rewait(&self, lock: usize) -> Option<Rewait> {
        let rewait = self.owner_only.rewait.get()?;
        if rewait.lock != lock {
            return None;
        }
        self.owner_only.rewait.take()
    }

    pub fn begin_wait(&self, wait: &Wait) {
        let waiting = &self.waiting;
        waiting.class.store(ptr::from_ref(wait.class).cast_mut(), Relaxed);
        waiting.place.store(ptr::from_ref(wait.place).cast_mut(), Relaxed);
        waiting.timed.store(wait.timed, Relaxed);
        waiting.since.store(wait.since, Relaxed);
        waiting.how.store(how(wait.subclass, wait.access), Relaxed);
        waiting.lock.store(wait.lock, Relaxed);
        self.waits.store(self.waits.load(Relaxed) + 1, Release); // (W)
        probes::wait_begin(wait.lock, wait.class, wait.place);
        self.profile().begin_wait();
    }

    pub fn end_wait(&self) {
        probes::wait_end(self.waiting.lock.load(Relaxed));
        if let Some(began) = self.profile().end_wait()
            && let Some((wait, _)) = self.waiting()
        {
            self.profile().waited(&self.identity, &wait, began);
        }
        self.waits.store(self.waits.load(Relaxed) + 1, Release);
        fence(Release);
    }

    /// What the thread waits for, and the number of that wait.
    pub fn waiting(&self) -> Option<(Wait, u64)> {
        let number = self.waits.load(Acquire); // (W)
        if number.is_multiple_of(2) {
            return None;
        }
        let waiting = &self.waiting;
        let (class, place) = (waiting.class.load(Relaxed), waiting.place.load(Relaxed));
        // SAFETY: a wait that has begun was written, with references that are `'static`.
        let (class, place) = unsafe { (&*class, &*place) };
        let (lock, timed) = (waiting.lock.load(Relaxed), waiting.timed.load(Relaxed));
        let (how, since) = (waiting.how.load(Relaxed), waiting.since.load(Relaxed));
        fence(Acquire);
        // A later wait may have been written in the meantime.
        let same = self.waits.load(Relaxed) == number;
        let (subclass, access) = (how as u8, Access::from_code(how >> 8));
        same.then_some((Wait { lock, class, subclass, access, place, timed, since }, number))
    }

    /// In the child of a fork: the thread of this record is not there.
    pub fn vanish(&self) {
        for slot in &self.slots {
            slot.clear();
        }
        let own = &self.owner_only;
        own.sum.set(0);
        own.classes.set(0);
        own.over.set(0);
        own.rewait.set(None);
        self.used.store(0, Relaxed);
        self.waits.store(self.waits.load(Relaxed).next_multiple_of(2), Relaxed);
    }
}
