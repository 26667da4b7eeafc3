//! Sets that sleep: their slots, their order, and how they are completed.
//!
//! | status | meaning | set by |
//! |---|---|---|
//! | `FREE` | no set | the thread that slept, or a sweep after its death |
//! | `WAITING` | the set sleeps, and is in the queue | its thread, under the array lock |
//! | `DONE` | the set was performed | the holder of the array lock, by the journal |
//! | `FAILED` and an `errno` | the set ends with that | the holder of the array lock |
//!
//! A thread sleeps on the *bell* of its group of [`GROUP`] slots, and is woken by the bit of its
//! slot. So a change that completes many wakes them by one system call for each group.
//!
//! | transition | by | label |
//! |---|---|---|
//! | the bell one more; the sleepers of some bits woken | a thread that has completed their sets | (ring) |
//! | the number of the thread in its slot becomes the mark of a death | the kernel | (mark gone) |
//!
//! # Invariants
//! 1. A slot is in the queue while it is `WAITING`. The queue has the order of the tickets.
//! 2. A set is performed by the thread that makes it possible, with the process and adjustments of
//!    the set's own process. The woken thread only reads its status.
//! 3. Before a set is completed, its thread is known to live. Otherwise its slot is free. While a
//!    thread sleeps, its number in the slot is the pending word of its robust list. So the kernel
//!    makes (mark gone) when the thread ends, also by an `execve` of another thread. After that, a
//!    thread with the number of the first one exists. A thread that ends without the mark is looked
//!    for by its number: it was about to sleep, or took the array lock, or a handler that ours did
//!    not call has used a robust mutex.
//! 4. (ring) comes after the status. A thread reads the bell before the status, and sleeps if the
//!    bell is still the same. So it finds its set ended, or does not sleep, or is woken. If the
//!    thread dies that owes a (ring), the next one with the array lock makes it, or the sleeper
//!    looks by itself.
//! 5. Of the sets that can proceed, those that only wait for zero are first, of these the ones with
//!    a single operation; then the oldest. After a set that alters, the search starts again.
//!
//! # Ordering
//! The status of a set that has ended is Release, and the load of its thread is Acquire: it has no
//! lock. (ring) and the load of the bell are the same, for invariant 4. `WAITING` is Release for
//! the order of the compiler, which counts at a death. `FREE` is `Relaxed`: the thread that slept
//! looks at nothing else of the slot. The array lock orders the rest.

use crate::array::Array;
use crate::layout::{MOST_OPS, Sleeper};
use crate::lock::OWNER_DIED;
use crate::op::{NO_WAIT, Op, Ops, UNDO, Verdict, evaluate};
use crate::process::{self, Slot};
use crate::registry;
use crate::section::{Actor, Section};
use crate::sys::{self, Answer, Errno};
use ulocks_core::sync::AtomicU32;
use ulocks_core::sync::Ordering::{Relaxed, Release};

/// The status of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(pub u32);

impl Status {
    /// No set.
    pub const FREE: u32 = 0;
    /// It sleeps.
    pub const WAITING: u32 = 1;
    /// It was performed.
    pub const DONE: u32 = 2;
    const FAILED: u32 = 1 << 16;

    /// What the set ends with, once it has ended. The slot of a blank mapping is free.
    pub fn outcome(self) -> Option<Answer> {
        match self.0 {
            Self::WAITING => None,
            Self::DONE => Some(Ok(0)),
            Self::FREE => Some(Err(libc::EIDRM)),
            failed => Some(Err((failed & 0xffff) as Errno)),
        }
    }
}

/// How many slots share a bell: one for each bit of a wake-up.
pub const GROUP: usize = 32;

/// The group of a slot, and its bit there.
pub fn bell(slot: usize) -> (u32, u32) {
    ((slot / GROUP) as u32, 1 << (slot % GROUP))
}

/// The word on which the thread in `slot` sleeps.
pub fn bell_word(array: &Array, slot: usize) -> Option<&AtomicU32> {
    array.sleeper(slot / GROUP * GROUP).map(|first| &first.bell)
}

/// (ring)
pub fn ring(array: &Array, group: u32, sleepers: u32) {
    if let Some(bell) = bell_word(array, group as usize * GROUP) {
        bell.fetch_add(1, Release);
        sys::wake_some(bell, sleepers);
    }
}

/// (ring) of all that sleep, when the lock is released; of more than 16 groups, at once.
pub fn ring_all(section: &mut Section) {
    queued(section.array).for_each(|(_, slot)| section.will_wake(slot));
}

impl Sleeper {
    fn ops(&self, slot: usize) -> Ops<'static> {
        Ops::Sleeper(slot, (self.nsops.load(Relaxed) as usize).clamp(1, MOST_OPS))
    }

    fn owner(&self) -> Slot {
        Slot {
            index: self.process.load(Relaxed) as usize,
            identity: self.identity.load(Relaxed),
            epoch: self.epoch.load(Relaxed),
        }
    }

    /// Invariant 3.
    fn is_gone(&self) -> bool {
        let thread = self.thread.load(Relaxed);
        thread & OWNER_DIED != 0
            || registry::get().is_ok_and(|registry| process::is_thread_gone(registry, self.owner(), thread))
    }
}

/// The slots in the queue, oldest first.
fn queued(array: &Array) -> impl Iterator<Item = (usize, usize)> {
    let len = (array.head().queued.load(Relaxed) as usize).min(array.slots());
    (0..len).filter_map(|at| array.place(at).map(|place| (at, place.load(Relaxed) as usize)))
}

/// Puts the set of the calling thread to sleep. `blocking` is the operation that blocks.
pub fn enqueue(section: &mut Section, ops: &[Op], owner: Slot, blocking: usize) -> Answer<usize> {
    let array = section.array;
    let slot = free_slot(section, ops.len())?;
    let (head, sleeper) = (array.head(), array.sleeper(slot).ok_or(libc::ENOMEM)?);
    let at = head.queued.load(Relaxed) as usize;
    let place = array.place(at).ok_or(libc::ENOMEM)?;
    for (place, value) in [
        (&sleeper.process, owner.index as u32),
        (&sleeper.epoch, owner.epoch),
        (&sleeper.thread, section.thread()),
        (&sleeper.nsops, ops.len() as u32),
        (&sleeper.blocking, blocking as u32),
        (&sleeper.alters, ops.iter().any(|op| op.op != 0).into()),
        (&sleeper.number, process::number()),
    ] {
        place.store(value, Relaxed);
    }
    sleeper.identity.store(owner.identity, Relaxed);
    sleeper.ticket.store(head.tickets.fetch_add(1, Relaxed), Relaxed);
    sleeper.first.store(ops.first().map_or(0, |op| op.pack()), Relaxed);
    if ops.len() > 1 {
        for (index, op) in ops.iter().enumerate() {
            array.operation(slot, index).ok_or(libc::ENOMEM)?.store(op.pack(), Relaxed);
        }
    }
    // Mutant: Release -> Relaxed: for the compiler, whose order counts at a death.
    sleeper.status.store(Status::WAITING, Release);
    place.store(slot as u32, Relaxed);
    head.queued.store(at as u32 + 1, Relaxed);
    ops.iter().for_each(|op| section.watch(op.num.into(), true));
    Ok(slot)
}

fn free_slot(section: &mut Section, nsops: usize) -> Answer<usize> {
    let array = section.array;
    let is_free =
        |slot: usize| array.sleeper(slot).is_some_and(|sleeper| sleeper.status.load(Relaxed) == Status::FREE);
    let head = array.head();
    let used = || (head.used_slots.load(Relaxed) as usize).min(array.slots());
    let last = array.last_slot.load(Relaxed) as usize;
    let mut slot = (last < used() && is_free(last)).then_some(last);
    slot = slot.or_else(|| (0..used()).find(|&slot| is_free(slot)));
    if slot.is_none() && used() == array.slots() {
        sweep(section);
        slot = (0..used()).find(|&slot| is_free(slot));
    }
    let slot = match slot {
        Some(slot) => {
            if nsops > 1 {
                array.populate_sleeper(slot, nsops)?;
            }
            slot
        }
        None if used() < array.slots() => {
            let slot = used();
            array.populate_sleeper(slot, nsops)?;
            head.used_slots.store(slot as u32 + 1, Relaxed);
            slot
        }
        None => return Err(libc::ENOMEM),
    };
    array.last_slot.store(slot as u32, Relaxed);
    Ok(slot)
}

/// Frees the slots of dead threads.
fn sweep(section: &mut Section) {
    let array = section.array;
    for slot in 0..(array.head().used_slots.load(Relaxed) as usize).min(array.slots()) {
        let Some(sleeper) = array.sleeper(slot) else { return };
        if sleeper.status.load(Relaxed) != Status::FREE && sleeper.is_gone() {
            withdraw(section, slot);
        }
    }
}

/// Takes a set out of the queue, if it is there, and frees its slot.
pub fn withdraw(section: &mut Section, slot: usize) {
    let at = queued(section.array).find(|&(_, of)| of == slot).map(|(at, _)| at);
    if let Some(at) = at {
        dequeue(section, at, slot);
    }
    if let Some(sleeper) = section.array.sleeper(slot) {
        sleeper.status.store(Status::FREE, Relaxed);
    }
}

/// Takes the set at place `at` out of the queue.
fn dequeue(section: &mut Section, at: usize, slot: usize) {
    let (array, head) = (section.array, section.array.head());
    let len = (head.queued.load(Relaxed) as usize).min(array.slots());
    for to in at..len.saturating_sub(1) {
        if let (Some(to), Some(from)) = (array.place(to), array.place(to + 1)) {
            to.store(from.load(Relaxed), Relaxed);
        }
    }
    head.queued.store(len.saturating_sub(1) as u32, Relaxed);
    let Some(sleeper) = array.sleeper(slot) else { return };
    let ops = sleeper.ops(slot);
    ops.iter(array).for_each(|op| section.watch(op.num.into(), false));
}

/// Ends the set at place `at` with an `errno`.
fn fail(section: &mut Section, at: usize, slot: usize, error: Errno) {
    if let Some(sleeper) = section.array.sleeper(slot) {
        sleeper.status.store(Status::FAILED | error as u32, Release);
    }
    dequeue(section, at, slot);
    section.will_wake(slot);
}

/// Ends all sets with an `errno`.
pub fn fail_all(section: &mut Section, error: Errno) {
    while let Some((at, slot)) = queued(section.array).last() {
        fail(section, at, slot, error);
    }
}

/// What became of a set that was looked at.
#[derive(PartialEq, Eq)]
enum Look {
    Sleeps,
    /// It is not in the queue any more, and nothing has changed.
    Left,
    Performed,
}

/// Evaluates the set at place `at`, and ends it if it need not sleep any more.
fn look(section: &mut Section, at: usize, slot: usize) -> Look {
    let array = section.array;
    let Some(sleeper) = array.sleeper(slot) else { return Look::Sleeps };
    let ops = sleeper.ops(slot);
    if ops.len() == 1 && !can_proceed(array, Op::unpack(sleeper.first.load(Relaxed))) {
        return Look::Sleeps;
    }
    let row = ops.iter(array).any(|op| op.has(UNDO)).then_some(sleeper.owner().index);
    let error = match evaluate(array, ops, row) {
        Verdict::Blocks(index) if ops.get(array, index).is_some_and(|op| !op.has(NO_WAIT)) => {
            sleeper.blocking.store(index as u32, Relaxed);
            return Look::Sleeps;
        }
        _ if sleeper.is_gone() => {
            dequeue(section, at, slot);
            sleeper.status.store(Status::FREE, Relaxed);
            return Look::Left;
        }
        Verdict::Blocks(_) => libc::EAGAIN,
        Verdict::Fails(error) => error,
        Verdict::Proceeds(entries) => {
            let process = sleeper.number.load(Relaxed);
            section.commit(entries, Actor { process, row, slot: Some(slot), sets: false });
            dequeue(section, at, slot);
            section.will_wake(slot);
            return Look::Performed;
        }
    };
    fail(section, at, slot, error);
    Look::Left
}

/// Whether a single operation that has slept may be possible now.
fn can_proceed(array: &Array, op: Op) -> bool {
    let value = array.load(op.num.into()).value();
    if op.op == 0 { value == 0 } else { value + i32::from(op.op) >= 0 }
}

impl Section {
    /// Completes the sleepers that a change has made possible (invariant 5). `ops` are the
    /// operations that were performed; `None` if any semaphore may have changed. Whether a set
    /// was performed.
    pub fn settle(&mut self, ops: Option<Ops<'_>>) -> bool {
        if self.array.head().queued.load(Relaxed) == 0 {
            return false;
        }
        let mut performed = self.settle_zero(ops);
        'again: loop {
            let mut at = 0;
            while let Some(slot) = slot_at(self.array, at) {
                let array = self.array;
                let Some(sleeper) = array.sleeper(slot).filter(|sleeper| sleeper.alters.load(Relaxed) != 0)
                else {
                    at += 1;
                    continue;
                };
                let done = sleeper.ops(slot);
                match look(self, at, slot) {
                    Look::Sleeps => at += 1,
                    Look::Left => {}
                    Look::Performed => {
                        performed = true;
                        // The slot may be used again by now only by a thread with the array lock.
                        self.settle_zero(Some(done));
                        continue 'again;
                    }
                }
            }
            return performed;
        }
    }

    /// Completes the sets that only wait for zero: those of one operation first, as in the kernel.
    /// The order decides which process is the last.
    fn settle_zero(&mut self, ops: Option<Ops<'_>>) -> bool {
        let array = self.array;
        let is_zero = |num: u32| array.load(num).value() == 0;
        let got_zero = match ops {
            Some(ops) => ops.iter(array).any(|op| is_zero(op.num.into())),
            None => (0..array.nsems).any(is_zero),
        };
        if !got_zero {
            return false;
        }
        let mut performed = false;
        for is_large in [false, true] {
            let mut at = 0;
            while let Some(slot) = slot_at(array, at) {
                let is_next = array.sleeper(slot).is_some_and(|sleeper| {
                    sleeper.alters.load(Relaxed) == 0 && (sleeper.ops(slot).len() > 1) == is_large
                });
                match if is_next { look(self, at, slot) } else { Look::Sleeps } {
                    Look::Sleeps => at += 1,
                    Look::Left => {}
                    Look::Performed => performed = true,
                }
            }
        }
        performed
    }

    /// How many living sleepers have their first blocking operation on semaphore `num`: an
    /// operation that waits for zero, or one that subtracts.
    pub fn count(&mut self, num: u32, for_zero: bool) -> i32 {
        let array = self.array;
        let mut count = 0;
        for (_, slot) in queued(array) {
            let Some(sleeper) = array.sleeper(slot) else { continue };
            let blocking = sleeper.blocking.load(Relaxed) as usize;
            let Some(op) = sleeper.ops(slot).get(array, blocking) else { continue };
            if u32::from(op.num) == num && (op.op == 0) == for_zero && !sleeper.is_gone() {
                count += 1;
            }
        }
        count
    }
}

fn slot_at(array: &Array, at: usize) -> Option<usize> {
    let len = array.head().queued.load(Relaxed) as usize;
    array.place(at).filter(|_| at < len).map(|place| place.load(Relaxed) as usize)
}

/// Derives the queue and its watch counts from the slots, after the death of a holder. Threads that
/// were completed are woken again.
pub fn rebuild(section: &mut Section) {
    let (array, head) = (section.array, section.array.head());
    let used = (head.used_slots.load(Relaxed) as usize).min(array.slots());
    let mut len = 0_usize;
    let ticket = |slot: usize| array.sleeper(slot).map_or(0, |sleeper| sleeper.ticket.load(Relaxed));
    for (slot, sleeper) in (0..used).filter_map(|slot| array.sleeper(slot).map(|sleeper| (slot, sleeper))) {
        match sleeper.status.load(Relaxed) {
            Status::FREE => continue,
            Status::WAITING => {}
            _ => {
                section.will_wake(slot);
                continue;
            }
        }
        // Insertion, from the young end.
        let mut at = len;
        while let Some(before) = at.checked_sub(1).and_then(|at| array.place(at)) {
            let before = before.load(Relaxed);
            if ticket(before as usize) <= ticket(slot) {
                break;
            }
            if let Some(place) = array.place(at) {
                place.store(before, Relaxed);
            }
            at -= 1;
        }
        if let Some(place) = array.place(at) {
            place.store(slot as u32, Relaxed);
        }
        len += 1;
        for op in sleeper.ops(slot).iter(array) {
            if let Some(count) = array.watch(op.num.into()) {
                count.store(count.load(Relaxed).saturating_add(1), Relaxed);
            }
        }
    }
    head.queued.store(len as u32, Relaxed);
}
