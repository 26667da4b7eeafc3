//! Tasks that sleep on a futex.
//!
//! Some locks have no nodes: a waiter reads a word, looks at the lock, and sleeps on the word. A
//! task does the same with a [`TaskSleep`] in place of the kernel's queue. The sleepers of all
//! words are in lists of a static table, by address. So the lock keeps its size, and whoever wakes
//! needs its address only: the lock may be gone.
//!
//! # Properties
//! 1. *No wake-up is lost.* A wake-up follows a change of the word. Either it finds the task, or
//!    the task finds the change, and does not fall asleep.
//! 2. A task that is woken is told by the waker of its last poll that returned `Pending`.
//! 3. A task that is dropped is in no list any more. If it was woken before, its lock says what
//!    becomes of the wake-up, as for a thread whose time is up.
//! 4. Where one waiter is woken, the task that is first is passed by one thread at most.
//! 5. If no task sleeps, a wake-up costs a fence and a load more.
//! 6. A lock that is dropped leaves no task behind: futures that were forgotten take no wake-ups of
//!    another lock at its place. A lock that is moved leaves them behind.
//! 7. A child of `fork` has none of the tasks of its parent in its lists. It may drop their
//!    futures, but not poll them, which panics. It has tasks of its own.
//! 8. Of what belongs to others, only wakers are called, and those without a lock of ours.
//!
//! # State
//!
//! | what | accessed by |
//! |---|---|
//! | `Place::process`: of which process the rest of the place is | each sleeper, each wake-up |
//! | `Place::count`: tasks that are in the list, or look at the word to join it | each sleeper, each wake-up, (renew) |
//! | `Place::list` | the holder of its lock; (renew) |
//! | `TaskSleep::entry` | the holder of the lock of the place |
//! | `TaskSleep::address`: where it fell asleep, or zero; and in which process | the task |
//!
//! `process` is zero at first, and `RENEWING` with the number of the process that is at (renew). A
//! number is of one process only, also among those that were forked from one another. On a kernel
//! that cannot tell, it is zero in all. There a child may neither wait by a task nor wake one.
//!
//! # Invariants
//! 1. A task is in the list of its address, or in none. It is there from (join) to (take out).
//! 2. Whoever takes a task out gets its waker. It calls it after the lock of the place, and when
//!    nothing is left to do for others.
//! 3. A task that is in a list does not move and is not freed: it is pinned, and its drop takes it
//!    out.
//! 4. A thread looks at the count and the list of a place only if it is of its process. A sleeper
//!    that finds another one makes the place anew (renew), and publishes it (own). So a child meets
//!    neither the futures of its parent nor a lock that another thread held at the fork.
//! 5. A task knows the process in which it fell asleep. In a child it is in no list.
//!
//! # Ordering
//! A sleeper counts itself, and then looks at the word. A wake-up changes the word, and then looks
//! at the count and the process. Both have a fence in between, so one of the two sees all that the
//! other has done before: (fences). A wake-up that finds the count takes the lock of the place. If
//! it is before the task, the task finds the change when it has the lock. (own) releases what
//! (renew) has written; a thread that finds the place its own acquires.
//!
//! # Source
//! The kernel's futex, which counts the waiters of a bucket in the same way; WebKit's parking lot,
//! for a table in the process.

use crate::lock::api::{Mutex, MutexGuard};
use crate::lock::policy::Private;
use crate::lock::queue::{InOrder, QueueMutex, Wakers};
use crate::lock::spin;
use crate::sys::futex::{Bits, Futex, FutexKey, Scope};
use crate::sys::sync::Ordering::{Acquire, Relaxed, Release, SeqCst};
use crate::sys::sync::{AtomicU32, fence, is_abandoned, place_of, places};
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomPinned;
use core::pin::Pin;
use core::ptr;
use core::task::Waker;

/// How many lists there are. Others were not measured: a wake-up looks for its tasks among those of
/// a sixty-fourth of all addresses.
const PLACES: usize = places(64);

/// Two cache lines of its own: processors fetch them in pairs.
#[repr(align(128))]
struct Place {
    count: AtomicU32,
    process: AtomicU32,
    list: UnsafeCell<Mutex<QueueMutex<Private, InOrder>, List>>,
}

// SAFETY: the list has a lock. (renew) writes over it, which no other thread accesses then
// (invariant 4).
unsafe impl Sync for Place {}

/// The process whose number is beside it makes the place anew.
const RENEWING: u32 = 1 << 31;

crate::sync_table! {
    // SAFETY: no reference to it is in a value: each is of one call of a lock.
    unsafe static TABLE: [Place; PLACES] = crate::each!(Place::new(); PLACES);
}

impl Place {
    crate::const_fn! {
        fn new() -> Self {
            Self {
                count: AtomicU32::new(0),
                process: AtomicU32::new(0),
                list: UnsafeCell::new(Mutex::new(List::EMPTY)),
            }
        }
    }

    fn of(address: usize) -> &'static Self {
        let table: &'static [Self; PLACES] = &TABLE;
        &table[place_of(address, PLACES)]
    }

    /// Whether it is of the calling process.
    fn is_own(&self) -> bool {
        self.process.load(Acquire) == process()
    }

    /// Makes it one of the calling process.
    fn own(&self) {
        if self.is_own() {
            return;
        }
        let (mine, seen) = (process(), self.process.load(Relaxed));
        let renews = seen != mine
            && seen != mine | RENEWING
            && self.process.compare_exchange(seen, mine | RENEWING, Relaxed, Relaxed).is_ok();
        if renews {
            // (renew)
            self.count.store(0, Relaxed);
            // SAFETY: the place is no other thread's (invariant 4). What was there is left as it
            // is: the lock may be held, and entries are of futures that may be gone.
            unsafe { self.list.get().write(Mutex::new(List::EMPTY)) };
            self.process.store(mine, Release); // (own)
        } else {
            spin::outlast(|| self.is_own());
        }
    }

    /// The list of a place that is of the calling process.
    fn list(&self) -> MutexGuard<'_, QueueMutex<Private, InOrder>, List> {
        // SAFETY: it is written over only as long as the place is not of this process.
        unsafe { &*self.list.get() }.lock()
    }

    /// Takes out up to `count` tasks that sleep at `address` with a bit of `bits`, the one that
    /// came first before others, and adds their wakers. Returns how many.
    ///
    /// Memory for wakers is asked for between two holds of the list. What has joined since the
    /// first one has seen the change, and stays.
    #[cold]
    fn wake(&self, address: usize, count: u32, bits: Bits, wakers: &mut Wakers) -> u32 {
        let (mut woken, mut end) = (0, None);
        loop {
            let room = wakers.room() as u32;
            let taken = {
                let mut list = self.list();
                let end = *end.get_or_insert(list.joined);
                list.take(address, bits, room.min(count - woken), end, wakers)
            };
            self.count.fetch_sub(taken, Relaxed);
            woken += taken;
            if taken < room || woken == count {
                return woken;
            }
            wakers.make_room();
        }
    }

    /// Where one waiter is woken: whether the task that is first is the one, since a thread has
    /// passed it before; then its waker is added. Otherwise a thread passes it now, if one sleeps.
    /// `None` if there is no such task.
    fn is_turn_of_task(&self, address: usize, bits: Bits, wakers: &mut Wakers) -> Option<bool> {
        let mut list = self.list();
        let first = list.next(list.first, address, bits);
        if first.is_null() {
            return None;
        }
        // SAFETY: it is in the list, so it is pinned, and accessed under this lock (invariants 1
        // and 3).
        let is_turn = unsafe { core::mem::replace(&mut (*first).is_passed, true) };
        if is_turn {
            // SAFETY: it is in this list.
            let waker = unsafe { list.take_out(first) };
            self.count.fetch_sub(1, Relaxed);
            wakers.push(waker.expect("a task that sleeps has left its waker"));
        }
        Some(is_turn)
    }
}

/// What other threads access of a task that sleeps.
struct Entry {
    next: *mut Entry,
    before: *mut Entry,
    address: usize,
    bits: u32,
    /// How many have joined the list before.
    nth: u64,
    /// Whether a thread was woken that might have come later.
    is_passed: bool,
    /// `None` if it is in no list.
    waker: Option<Waker>,
}

struct List {
    first: *mut Entry,
    last: *mut Entry,
    /// How many have joined.
    joined: u64,
}

// SAFETY: its entries are of futures, which are `Send`, and a waker is.
unsafe impl Send for List {}

impl List {
    const EMPTY: Self = Self { first: ptr::null_mut(), last: ptr::null_mut(), joined: 0 };

    /// (join): appends `entry`.
    ///
    /// # Safety
    /// It is in no list, and stays where it is until it is taken out.
    unsafe fn join(&mut self, entry: *mut Entry) {
        // SAFETY: the caller's promise for the entry; the last one is in this list.
        unsafe {
            (*entry).next = ptr::null_mut();
            (*entry).before = self.last;
            (*entry).nth = self.joined;
            (*entry).is_passed = false;
            match self.last.as_mut() {
                Some(last) => last.next = entry,
                None => self.first = entry,
            }
        }
        self.last = entry;
        self.joined += 1;
    }

    /// The first entry, from `entry` on, that sleeps at `address` with a bit of `bits`; or null.
    fn next(&self, mut entry: *mut Entry, address: usize, bits: Bits) -> *mut Entry {
        // SAFETY: it is in the list, so it is pinned, and accessed under the lock of the list
        // (invariants 1 and 3).
        while let Some(this) = unsafe { entry.as_ref() } {
            if this.address == address && this.bits & bits.get() != 0 {
                break;
            }
            entry = this.next;
        }
        entry
    }

    /// Takes out up to `count` such entries, of those before the `end`th that has joined, and adds
    /// their wakers. Returns how many.
    fn take(&mut self, address: usize, bits: Bits, count: u32, end: u64, wakers: &mut Wakers) -> u32 {
        let (mut taken, mut after) = (0, self.first);
        while taken < count {
            let entry = self.next(after, address, bits);
            // SAFETY: as in `next`.
            if entry.is_null() || unsafe { (*entry).nth } >= end {
                break;
            }
            // SAFETY: as in `next`.
            after = unsafe { (*entry).next };
            // SAFETY: it is in this list.
            let waker = unsafe { self.take_out(entry) };
            wakers.push(waker.expect("a task that sleeps has left its waker"));
            taken += 1;
        }
        taken
    }

    /// (take out): its waker, for the caller to call or to drop. `None` if it is in no list.
    ///
    /// # Safety
    /// `entry` is in this list, or in none.
    unsafe fn take_out(&mut self, entry: *mut Entry) -> Option<Waker> {
        // SAFETY: the caller's promise; its neighbours are in this list.
        unsafe {
            let waker = (*entry).waker.take()?;
            match (*entry).before.as_mut() {
                Some(before) => before.next = (*entry).next,
                None => self.first = (*entry).next,
            }
            match (*entry).next.as_mut() {
                Some(next) => next.before = (*entry).before,
                None => self.last = (*entry).before,
            }
            Some(waker)
        }
    }
}

/// A task's place among those that sleep on a futex of this process: a part of its future.
pub struct TaskSleep {
    /// Where it fell asleep last; zero if it knows that it is awake.
    address: usize,
    /// In which process.
    process: u32,
    /// In a cell: other threads write to it while the task has a reference to the rest.
    entry: UnsafeCell<Entry>,
    _pinned: PhantomPinned,
}

// SAFETY: the entry is accessed under the lock of its place, or by the task where it is in no list.
unsafe impl Send for TaskSleep {}
// SAFETY: a shared reference gives access to nothing.
unsafe impl Sync for TaskSleep {}

impl TaskSleep {
    /// A task that is awake.
    #[must_use]
    pub const fn new() -> Self {
        let entry = Entry {
            next: ptr::null_mut(),
            before: ptr::null_mut(),
            address: 0,
            bits: 0,
            nth: 0,
            is_passed: false,
            waker: None,
        };
        Self { address: 0, process: 0, entry: UnsafeCell::new(entry), _pinned: PhantomPinned }
    }

    /// The task falls asleep, if `futex` is what was `seen`: until a wake-up that has one of
    /// `bits`, which calls `waker`. For a task that is awake.
    ///
    /// # Panics
    /// If it sleeps.
    pub fn fall_asleep<S: Scope>(
        self: Pin<&mut Self>,
        futex: &Futex<S>,
        seen: u32,
        bits: Bits,
        waker: Waker,
    ) -> bool {
        const { assert!(S::PRIVATE, "tasks sleep in one process") };
        assert!(self.address == 0, "a task that sleeps falls asleep");
        let address = futex.key().address();
        let place = Place::of(address);
        place.own();
        place.count.fetch_add(1, Relaxed);
        fence(SeqCst); // (fences)
        let mut list = place.list();
        if futex.load(Relaxed) != seen {
            drop(list);
            place.count.fetch_sub(1, Relaxed);
            return false;
        }
        let entry = self.entry.get();
        // SAFETY: it is in no list, so the task's alone. It is pinned, and its drop takes it out.
        unsafe {
            (*entry).address = address;
            (*entry).bits = bits.get();
            (*entry).waker = Some(waker);
            list.join(entry);
        }
        drop(list);
        // SAFETY: nothing is moved.
        let this = unsafe { self.get_unchecked_mut() };
        (this.address, this.process) = (address, process());
        true
    }

    /// Whether it may be in a list (invariant 5).
    fn may_sleep(&self) -> bool {
        self.address != 0 && self.process == process()
    }

    /// Whether the task sleeps on; then the end of its sleep calls `waker`. Otherwise it was awake,
    /// or was woken since it fell asleep, which is told once.
    pub fn sleeps_on(self: Pin<&mut Self>, waker: &Waker) -> Slept {
        if !self.may_sleep() {
            return Slept::Not;
        }
        let (place, fresh, entry) = (Place::of(self.address), waker.clone(), self.entry.get());
        let list = place.list();
        // SAFETY: it is accessed under the lock of its place.
        let before = match unsafe { &mut (*entry).waker } {
            Some(waker) => core::mem::replace(waker, fresh),
            None => {
                drop(list);
                // It may panic, and then the next poll is told.
                drop(fresh);
                // SAFETY: nothing is moved.
                unsafe { self.get_unchecked_mut() }.address = 0;
                return Slept::UntilWoken;
            }
        };
        drop(list);
        drop(before);
        Slept::On
    }

    /// The task wakes up by itself. Returns its waker, whose drop may panic; `None` if it was woken
    /// before, or was awake.
    pub fn wake_up(self: Pin<&mut Self>) -> Option<Waker> {
        if !self.may_sleep() {
            return None;
        }
        let (place, entry) = (Place::of(self.address), self.entry.get());
        // SAFETY: it is in the list of its place, or in none.
        let waker = unsafe { place.list().take_out(entry) };
        if waker.is_some() {
            place.count.fetch_sub(1, Relaxed);
        }
        // SAFETY: nothing is moved.
        unsafe { self.get_unchecked_mut() }.address = 0;
        waker
    }
}

impl Drop for TaskSleep {
    fn drop(&mut self) {
        if !is_abandoned() {
            // SAFETY: it was pinned when it fell asleep, and is not moved here.
            drop(unsafe { Pin::new_unchecked(self) }.wake_up());
        }
    }
}

impl Default for TaskSleep {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for TaskSleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TaskSleep { .. }")
    }
}

/// What became of a sleep since the last poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slept {
    /// The task was awake.
    Not,
    /// It goes on.
    On,
    /// A wake-up has ended it.
    UntilWoken,
}

/// The calling process, as far as a child of `fork` differs from its parent.
fn process() -> u32 {
    spin::process().unwrap_or(0)
}

/// Wakes up to `count` threads and tasks that sleep on the futex of that key with a bit of `bits`.
/// Returns how many. The wakers of tasks are added, to be called when nothing is left to do for
/// others. By address: the futex may be gone.
pub fn wake<S: Scope>(key: FutexKey<S>, count: u32, bits: Bits, wakers: &mut Wakers) -> u32 {
    if !S::PRIVATE {
        return key.wake_bits(count, bits);
    }
    fence(SeqCst); // (fences)
    let place = Place::of(key.address());
    if place.count.load(Relaxed) == 0 || !place.is_own() {
        return key.wake_bits(count, bits);
    }
    let address = key.address();
    if wakers.room() == 0 {
        wakers.make_room(); // not under the lock of the list
    }
    if count == 1 {
        match place.is_turn_of_task(address, bits, wakers) {
            Some(true) => return 1,
            Some(false) => {}
            None => return key.wake_bits(1, bits),
        }
    }
    let threads = key.wake_bits(count, bits);
    threads + place.wake(address, count - threads.min(count), bits, wakers)
}

/// A futex goes: the tasks that sleep on it are those of futures that were forgotten. They do not
/// take wake-ups of another futex at its place.
pub fn forget<S: Scope>(key: FutexKey<S>) {
    // A model may drop a lock when its execution has ended.
    if !S::PRIVATE || PLACES == 1 {
        return;
    }
    let place = Place::of(key.address());
    if place.count.load(Relaxed) > 0 && place.is_own() {
        let mut wakers = Wakers::new();
        place.wake(key.address(), u32::MAX, Bits::ANY, &mut wakers);
        wakers.wake();
    }
}
