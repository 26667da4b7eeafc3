//! The protocol of a [`SemArray`](super::SemArray): values, what each thread has taken,
//! and a journal, on a [`Queue`].
//!
//! # Properties
//! - A set is performed whole or not at all, also if its thread dies at any step.
//! - What a thread took by a set with a permit is given back when the thread dies: each semaphore
//!   gets it, within 0 and the limit, as System V's `SEM_UNDO` does. It is given back once.
//! - A set that waits is performed as soon as it can be. Of several, the oldest that can proceed
//!   is.
//! - What the [queue](crate::robust::queue) promises for deaths. A thread that dies in a
//!   set that lets another one proceed, or while it sets a value, may leave waiters to their next
//!   look.
//!
//! # State
//! All of it changes under the queue lock. Each slot has a [`Row`]: the operations that its thread
//! waits for, the outcome, and for each semaphore what a death gives back.
//!
//! A change is written to the *journal* first, then the number of its entries is set, then the
//! change is made, then the number is cleared:
//!
//! | transition | label |
//! |---|---|
//! | the entries written, while their number is 0 | (journal) |
//! | their number set: from here on the change is made, if need be by another thread | (commit) |
//! | values, row, outcome written | (make) |
//! | the number cleared | (end) |
//!
//! `set` is such a change too: its only entry is for no row, and (make) clears what deaths give
//! back to the semaphore.
//!
//! # Invariants
//! 1. If the number of entries is not 0 when a thread gets the queue lock, the last holder has died
//!    between (commit) and (end). The thread makes the change again: (make) stores absolute values.
//! 2. A row whose owner is not 0 belongs to that thread, or to one that has died and whose row was
//!    not given back yet. It is given back before the slot's next thread uses the row.
//! 3. `holding` is the number of rows with an owner, unless a thread died with the queue lock: then
//!    the next thread counts again (`repair`).
//! 4. A thread that has to wait clears its outcome under the queue lock, before it enqueues its
//!    request. So the outcome beside a request is that of the request, and a request whose outcome
//!    is set is not performed again. A set that need not wait has no request.
//! 5. A permit has the number of sets before it. A permit that ends changes what its thread owes of
//!    a semaphore only if that was not set since: `set` has cleared it. The number grows twice if
//!    (make) of a `set` is made again. After 2^31 sets a permit may be taken for one from before a
//!    set.
//!
//! # Ordering
//! The queue lock orders all of it. A death is between two instructions of one thread: it sees
//! (journal) to (end) in program order, which the compiler must keep ([`in_order`]). Other threads
//! have acquired the kernel's barrier at the death.

use super::SemError;
use super::request::{Asked, Change, Changes, INDEX, NO_WAIT, UNDO, Verdict, WAIT_ZERO};
use crate::robust::mutex::Refused;
use crate::robust::queue::{Patience, Queue, Reap, Rule};
use crate::slots::{Member, Owner};
use core::array;
use ulocks_core::sync::AtomicU32;
use ulocks_core::sync::Ordering::{Relaxed, SeqCst};
use ulocks_core::sync::compiler_fence;
use ulocks_core::{Policy, Shared, futex};
use ulocks_semarray::Op;

/// The greatest value of a semaphore, as in System V.
pub(super) const LIMIT: i64 = 32_767;

/// The outcomes of a request.
mod outcome {
    pub const NONE: u32 = 0;
    pub const DONE: u32 = 1;
    pub const WOULD_BLOCK: u32 = 2;
    pub const LIMIT: u32 = 3;
}

/// What the thread of a slot asks for, and what its death gives back.
#[derive(Debug)]
#[repr(C)]
struct Row<const SEMS: usize, const OPS: usize> {
    /// The thread for which `undo` is, or 0 if all of that is 0.
    owner: AtomicU32,
    outcome: AtomicU32,
    /// How many operations.
    number: AtomicU32,
    /// The process of the thread, for people.
    process: AtomicU32,
    /// How often a semaphore had been set when the request was performed.
    sets: AtomicU32,
    /// Index and flags; the change, as an `i32`.
    ops: [[AtomicU32; 2]; OPS],
    /// What a death adds, as `i32`s.
    undo: [AtomicU32; SEMS],
}

/// The slot in the journal of a change by `set`.
const NO_ROW: u32 = u32::MAX;

/// A change that is being made.
#[derive(Debug)]
#[repr(C)]
struct Journal<const OPS: usize> {
    /// The number of entries, or 0.
    number: AtomicU32,
    /// The slot of the row, or `NO_ROW`.
    slot: AtomicU32,
    /// The owner of the row afterwards. Without a row, the process that sets.
    owner: AtomicU32,
    /// The outcome of the row afterwards.
    outcome: AtomicU32,
    /// The index of a semaphore; its value and the row's `undo` afterwards.
    entries: [[AtomicU32; 3]; OPS],
}

/// The raw array: all zero has all values zero.
#[derive(Debug)]
#[repr(C)]
pub struct RawSemArray<
    const SEMS: usize,
    const SLOTS: usize = 64,
    const OPS: usize = 8,
    P: Policy<Scope = futex::Global> = Shared,
> {
    queue: Queue<P>,
    /// How many rows have an owner.
    holding: AtomicU32,
    /// How often a semaphore was set.
    sets: AtomicU32,
    journal: Journal<OPS>,
    values: [AtomicU32; SEMS],
    /// The process that operated on the semaphore last, for people.
    last: [AtomicU32; SEMS],
    /// The number of the last `set` of the semaphore.
    set_at: [AtomicU32; SEMS],
    rows: [Row<SEMS, OPS>; SLOTS],
}

/// Keeps the order of the stores before and after it, as a death sees them.
#[inline]
fn in_order() {
    compiler_fence(SeqCst);
}

/// What a waiter wants: the numbers of its semaphores modulo 32, one bit each. A request can be
/// granted only after a change of one of them. (Two CPUs of a Xeon, `cargo run --release --bin
/// sembench -- --processes -t 250 -w 1 -o sysv,robust-semarray`, posts by the kernel's: 0.46 to
/// 0.72 in three runs, and 0.07 if the operations of each waiter are looked at.)
fn semaphores(ops: &[Op]) -> u32 {
    ops.iter().fold(0, |wanted, op| wanted | 1 << (op.index() % 32))
}

fn words<const N: usize>() -> [AtomicU32; N] {
    array::from_fn(|_| AtomicU32::new(0))
}

#[inline]
fn signed(word: &AtomicU32) -> i64 {
    i64::from(word.load(Relaxed).cast_signed())
}

impl<const SEMS: usize, const SLOTS: usize, const OPS: usize, P: Policy<Scope = futex::Global>>
    RawSemArray<SEMS, SLOTS, OPS, P>
{
    pub(super) fn new(values: [u32; SEMS]) -> Self {
        let word = || AtomicU32::new(0);
        let row = |_| Row {
            owner: word(),
            outcome: word(),
            number: word(),
            process: word(),
            sets: word(),
            ops: array::from_fn(|_| words()),
            undo: words(),
        };
        let entries = array::from_fn(|_| words());
        Self {
            queue: Queue::new(),
            holding: word(),
            sets: word(),
            journal: Journal { number: word(), slot: word(), owner: word(), outcome: word(), entries },
            values: values.map(AtomicU32::new),
            last: words(),
            set_at: words(),
            rows: array::from_fn(row),
        }
    }

    /// Performs `ops`, and notes what a death gives back if `undo`.
    ///
    /// # Safety
    /// All threads that use this array are members of one table of slots.
    pub(super) unsafe fn apply(
        &self,
        me: &Member<'_>,
        ops: &[Op],
        undo: bool,
        patience: Patience,
    ) -> Result<(), SemError> {
        self.check(ops)?;
        let Some(row) = self.rows.get(me.slot()) else {
            return Err(SemError::Refused(Refused::NoRoom { slot: me.slot(), room: SLOTS }));
        };
        let how = self.queue.take(me)?;
        let mut section = self.queue.section(me, self, how);
        // Invariant 2.
        if let Some(gone) = self.holder(me.slot()).filter(|owner| *owner != me.owner()) {
            self.reap(gone);
            section.settle(Reap::Nothing);
        }
        row.process.store(me.process(), Relaxed);
        let asked = ops.iter().map(|op| Asked::new(op, undo));
        // Without a request that others see: mostly it need not wait.
        let verdict = self.try_perform(me.owner(), row, asked.clone());
        if !matches!(verdict, Verdict::Waits) {
            section.changed = semaphores(ops);
            section.settle_own();
            return Self::ended(verdict);
        }
        row.outcome.store(outcome::NONE, Relaxed); // invariant 4
        for (place, asked) in row.ops.iter().zip(asked) {
            place[0].store(asked.first, Relaxed);
            place[1].store((asked.change as i32).cast_unsigned(), Relaxed);
        }
        row.number.store(ops.len() as u32, Relaxed);
        self.queue.acquire_in(section, semaphores(ops), patience)?;
        Self::ended(match row.outcome.load(Relaxed) {
            outcome::DONE => Verdict::Proceeds,
            why => Verdict::Fails(why),
        })
    }

    fn ended(verdict: Verdict) -> Result<(), SemError> {
        match verdict {
            Verdict::Fails(outcome::WOULD_BLOCK) => Err(SemError::WouldBlock),
            Verdict::Fails(outcome::LIMIT) => Err(SemError::Limit),
            _ => Ok(()),
        }
    }

    fn check(&self, ops: &[Op]) -> Result<(), SemError> {
        if ops.is_empty() {
            return Err(SemError::NoOperation);
        }
        if ops.len() > OPS {
            return Err(SemError::TooManyOperations { given: ops.len(), most: OPS });
        }
        if let Some(op) = ops.iter().find(|op| op.index() >= SEMS) {
            return Err(SemError::NoSuchSemaphore { index: op.index(), len: SEMS });
        }
        if ops.iter().any(|op| op.change().abs() > LIMIT) {
            return Err(SemError::Limit);
        }
        Ok(())
    }

    /// How often a semaphore had been set when the member's last request was performed.
    pub(super) fn sets(&self, me: &Member<'_>) -> u32 {
        self.rows.get(me.slot()).map_or(0, |row| row.sets.load(Relaxed))
    }

    /// Gives back what `ops` took with a permit, when a semaphore had been set `sets` times. `None`
    /// if that is not known, and the thread has only taken.
    ///
    /// # Safety
    /// As [`apply`](Self::apply).
    pub(super) unsafe fn give_back(&self, me: &Member<'_>, ops: &[Op], sets: Option<u32>) {
        let Some(row) = self.rows.get(me.slot()) else { return };
        // If the queue is corrupt, no thread can acquire any more.
        let Ok(how) = self.queue.take(me) else { return };
        let mut section = self.queue.section(me, self, how);
        let mut changes = Changes::<OPS>::new();
        for op in ops {
            let change = changes.of(op.index(), || self.now(row, op.index()));
            change.value -= op.change();
            let undo = change.undo + op.change();
            let set_since = |sets| self.set_at[op.index()].load(Relaxed).wrapping_sub(sets).cast_signed() > 0;
            match sets {
                Some(sets) if set_since(sets) => {} // invariant 5
                Some(_) => change.undo = undo,
                // All that the thread has was taken, but for what was set since.
                None => change.undo = undo.max(0),
            }
        }
        for change in &mut changes.list[..changes.number] {
            change.value = change.value.clamp(0, LIMIT);
        }
        self.make(me.owner(), outcome::DONE, &changes);
        section.changed = semaphores(ops);
        section.pass_on();
    }

    /// Sets semaphore `index`. No death gives anything back to it afterwards that was taken before.
    ///
    /// # Safety
    /// As [`apply`](Self::apply).
    pub(super) unsafe fn set(&self, me: &Member<'_>, index: usize, value: u32) -> Result<(), SemError> {
        if index >= SEMS {
            return Err(SemError::NoSuchSemaphore { index, len: SEMS });
        }
        if i64::from(value) > LIMIT {
            return Err(SemError::Limit);
        }
        let mut section = self.queue.enter(me, self)?;
        self.journal.slot.store(NO_ROW, Relaxed);
        self.journal.owner.store(me.process(), Relaxed);
        self.journal.entries[0][0].store(index as u32, Relaxed);
        self.journal.entries[0][1].store(value, Relaxed);
        in_order();
        self.journal.number.store(1, Relaxed); // (commit)
        self.complete();
        section.pass_on();
        Ok(())
    }

    /// Gives back what dead threads have.
    ///
    /// # Safety
    /// As [`apply`](Self::apply).
    pub(super) unsafe fn reclaim(&self, me: &Member<'_>) -> Result<(), SemError> {
        self.queue.enter(me, self)?.settle(Reap::Dead);
        Ok(())
    }

    /// What the death of `me` would add to semaphore `index`.
    pub(super) fn owed(&self, me: &Member<'_>, index: usize) -> i64 {
        let row = self.rows.get(me.slot()).filter(|_| self.holder(me.slot()) == Some(me.owner()));
        row.and_then(|row| row.undo.get(index)).map_or(0, signed)
    }

    pub(super) fn value(&self, index: usize) -> Option<u32> {
        self.values.get(index).map(|value| value.load(Relaxed))
    }

    pub(super) fn last_process(&self, index: usize) -> Option<u32> {
        self.last.get(index).map(|process| process.load(Relaxed))
    }

    pub(super) fn waiters(&self, me: &Member<'_>) -> usize {
        self.queue.waiters(me)
    }

    /// Makes it as new, if no thread uses it: no thread waits, and none has taken anything.
    #[cfg(regions)]
    pub(super) fn reset(&self) {
        self.repair();
        Rule::holders(self, &mut |owner| self.reap(owner));
        self.queue.reset();
    }

    /// The owner of `slot`, if something is noted for its death.
    fn holder(&self, slot: usize) -> Option<Owner> {
        let owner = Owner::of(self.rows.get(slot)?.owner.load(Relaxed));
        owner.filter(|owner| owner.slot() == slot)
    }

    /// Makes `owner` that of the row, and counts it.
    fn set_owner(&self, row: &Row<SEMS, OPS>, owner: u32) {
        let was = row.owner.load(Relaxed);
        row.owner.store(owner, Relaxed);
        let holding = self.holding.load(Relaxed);
        let (less, more) = (u32::from(was != 0), u32::from(owner != 0));
        self.holding.store(holding.wrapping_sub(less).wrapping_add(more), Relaxed);
    }

    /// What semaphore `index` and the row's part of it are now.
    fn now(&self, row: &Row<SEMS, OPS>, index: usize) -> Change {
        let value = i64::from(self.values[index].load(Relaxed));
        Change { index, value, undo: signed(&row.undo[index]) }
    }

    /// What the thread of the row asks for.
    fn asked(row: &Row<SEMS, OPS>) -> impl Iterator<Item = Asked> {
        let number = (row.number.load(Relaxed) as usize).min(OPS);
        row.ops[..number].iter().map(|op| Asked { first: op[0].load(Relaxed), change: signed(&op[1]) })
    }

    /// Whether what is asked for can be performed, and what it `changes`.
    #[inline]
    fn evaluate(
        &self,
        row: &Row<SEMS, OPS>,
        asked: impl Iterator<Item = Asked>,
        changes: &mut Changes<OPS>,
    ) -> Verdict {
        for Asked { first, change: by } in asked {
            let index = (first & INDEX) as usize;
            if index >= SEMS {
                return Verdict::Fails(outcome::LIMIT);
            }
            let change = changes.of(index, || self.now(row, index));
            let blocks = if first & WAIT_ZERO != 0 { change.value != 0 } else { change.value + by < 0 };
            if blocks && first & NO_WAIT != 0 {
                return Verdict::Fails(outcome::WOULD_BLOCK);
            }
            if blocks {
                return Verdict::Waits;
            }
            change.value += by;
            change.undo -= if first & UNDO != 0 { by } else { 0 };
            if change.value > LIMIT || !(-LIMIT - 1..=LIMIT).contains(&change.undo) {
                return Verdict::Fails(outcome::LIMIT);
            }
        }
        Verdict::Proceeds
    }

    /// Performs what is asked for, if that is possible.
    #[inline]
    fn try_perform(&self, owner: Owner, row: &Row<SEMS, OPS>, asked: impl Iterator<Item = Asked>) -> Verdict {
        let mut changes = Changes::new();
        let verdict = self.evaluate(row, asked, &mut changes);
        if matches!(verdict, Verdict::Proceeds) {
            row.sets.store(self.sets.load(Relaxed), Relaxed);
            self.make(owner, outcome::DONE, &changes);
        }
        verdict
    }

    /// (journal), (commit), then the rest.
    fn make(&self, owner: Owner, outcome: u32, changes: &Changes<OPS>) {
        let Some(row) = self.rows.get(owner.slot()) else { return };
        let changes = &changes.list[..changes.number];
        let journal = &self.journal;
        // A row without an owner owes nothing so far.
        let owes_else = |index| {
            let is_else = || changes.iter().all(|change| change.index != index);
            signed(&row.undo[index]) != 0 && is_else()
        };
        let is_holder = changes.iter().any(|change| change.undo != 0)
            || row.owner.load(Relaxed) != 0 && (0..SEMS).any(owes_else);
        journal.slot.store(owner.slot() as u32, Relaxed);
        journal.owner.store(if is_holder { owner.bits() } else { 0 }, Relaxed);
        journal.outcome.store(outcome, Relaxed);
        for (entry, change) in journal.entries.iter().zip(changes) {
            entry[0].store(change.index as u32, Relaxed);
            entry[1].store(change.value as u32, Relaxed);
            entry[2].store((change.undo as i32).cast_unsigned(), Relaxed);
        }
        in_order();
        journal.number.store(changes.len() as u32, Relaxed); // (commit)
        self.complete();
    }

    /// (make) and (end), of what the journal says.
    fn complete(&self) {
        in_order();
        let journal = &self.journal;
        let number = (journal.number.load(Relaxed) as usize).min(OPS);
        if number > 0 && journal.slot.load(Relaxed) == NO_ROW {
            let [index, value, _] = journal.entries[0].each_ref().map(|word| word.load(Relaxed));
            if let Some(place) = self.values.get(index as usize) {
                let sets = self.sets.load(Relaxed).wrapping_add(1);
                self.sets.store(sets, Relaxed);
                self.set_at[index as usize].store(sets, Relaxed);
                self.rows.iter().for_each(|row| row.undo[index as usize].store(0, Relaxed));
                place.store(value, Relaxed);
                self.last[index as usize].store(journal.owner.load(Relaxed), Relaxed);
            }
        } else if let Some(row) = self.rows.get(journal.slot.load(Relaxed) as usize).filter(|_| number > 0) {
            for entry in &journal.entries[..number] {
                let index = entry[0].load(Relaxed) as usize;
                if index < SEMS {
                    self.values[index].store(entry[1].load(Relaxed), Relaxed);
                    row.undo[index].store(entry[2].load(Relaxed), Relaxed);
                    self.last[index].store(row.process.load(Relaxed), Relaxed);
                }
            }
            self.set_owner(row, journal.owner.load(Relaxed));
            row.outcome.store(journal.outcome.load(Relaxed), Relaxed);
        }
        in_order();
        journal.number.store(0, Relaxed); // (end)
    }
}

impl<const SEMS: usize, const SLOTS: usize, const OPS: usize, P: Policy<Scope = futex::Global>> Rule
    for RawSemArray<SEMS, SLOTS, OPS, P>
{
    const OVERTAKES: bool = true;

    fn would_grant(&self, owner: Owner) -> bool {
        let Some(row) = self.rows.get(owner.slot()) else { return false };
        let evaluate = || self.evaluate(row, Self::asked(row), &mut Changes::new());
        row.outcome.load(Relaxed) != outcome::NONE || !matches!(evaluate(), Verdict::Waits)
    }

    fn grant(&self, owner: Owner, _want: u32) -> bool {
        let Some(row) = self.rows.get(owner.slot()) else { return false };
        if row.outcome.load(Relaxed) != outcome::NONE {
            return true; // Another thread has died after it, and before it said so.
        }
        match self.try_perform(owner, row, Self::asked(row)) {
            Verdict::Waits => return false,
            Verdict::Fails(why) => row.outcome.store(why, Relaxed),
            Verdict::Proceeds => {}
        }
        true
    }

    fn holders(&self, each: &mut dyn FnMut(Owner)) {
        let holding = self.holding.load(Relaxed) as usize;
        (0..SLOTS).filter_map(|slot| self.holder(slot)).take(holding).for_each(each);
    }

    fn has_no_holder(&self) -> bool {
        self.holding.load(Relaxed) == 0
    }

    fn is_held_only_by(&self, owner: Owner) -> bool {
        self.holding.load(Relaxed) == 1 && self.holder(owner.slot()) == Some(owner)
    }

    fn is_holder(&self, owner: Owner) -> bool {
        self.holder(owner.slot()) == Some(owner)
    }

    /// One semaphore after the other: each is given back by a change of its own.
    fn reap(&self, gone: Owner) {
        if self.holder(gone.slot()) != Some(gone) {
            return;
        }
        let row = &self.rows[gone.slot()];
        for index in 0..SEMS {
            let Change { value, undo, .. } = self.now(row, index);
            if undo != 0 {
                let mut changes = Changes::new();
                let back = Change { index, value: (value + undo).clamp(0, LIMIT), undo: 0 };
                changes.of(index, || back);
                self.make(gone, row.outcome.load(Relaxed), &changes);
            }
        }
        self.set_owner(row, 0); // It has nothing any more; or its semaphores were set.
    }

    fn repair(&self) {
        self.complete();
        let holding = self.rows.iter().filter(|row| row.owner.load(Relaxed) != 0).count();
        self.holding.store(holding as u32, Relaxed);
    }
}

#[cfg(all(test, regions, not(miri)))]
mod tests;
