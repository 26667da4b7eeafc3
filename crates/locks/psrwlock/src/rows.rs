//! Rows of slots in static memory, which locks borrow while they are read by many threads.
//!
//! A lock whose readers meet gets a *row*. [`Bulk`](crate::Bulk) readers then count themselves in a
//! slot of the row, mostly one that only their CPU uses, and not in the state. The second word of
//! the lock has the number of the row, so the number moves with the lock. A reader stays counted if
//! its guard is forgotten. All-zero is a lock without a row.
//!
//! # Protocol
//! That of [`readers`](super::readers), with these additions:
//! - *A lock gets a row* from a reader in the state, while that reader is inside. An owner has seen
//!   the last reader in the state leave, Acquire. So it sees the row; or there is none, and no
//!   reader is at a slot.
//! - *A reader at a slot* learns the number from a hint. It counts itself, makes its fence, and
//!   reads the state and then the number, both Acquire. It is inside if the class is open, the
//!   number is the same, and the slot is not full. Otherwise it leaves again. The row may be
//!   another lock's by then: that lock's owner waits a moment longer.
//! - *An owner* that closes the class waits for the readers in the state, makes its fence, and sees
//!   each slot of the row at zero once. A reader that the owner does not see makes its fence later,
//!   and finds the class closed.
//! - *The row is taken away* by an owner, after it has seen all slots at zero, and before it opens
//!   the class. Each step that opens the class is Release, so a reader that finds it open again
//!   finds the row that the lock has then. If the number is the same, the reader is counted in that
//!   row. The lock got it by a step that is Release, too: so the reader comes after each writer
//!   that did not look at the row.
//! - (close all), where the class is not closed first, is for locks without a row. The hint may not
//!   know the row. So the writer reads the second word after (close all), and sifts if there is a
//!   row.
//!
//! A departing reader touches the row last, and not the lock. The row says whether an owner waits,
//! and the owner sleeps there. So a reader in a wrong row, too, wakes the owner that it delays.
//!
//! # When
//! At one of [`PERIOD`] reads in the state a thread that has met another reader asks for a row. An
//! owner that closes the class waits until each slot has been seen at zero. An attempt that finds
//! them so has waited, too. After [`WRITES`] such waits it compares the reads between them with the
//! slots in use. If there was not one for each slot, and [`WORTH`] more, it takes the row away.
//! Then locks of that place get none for [`WITHOUT`] times as long as it has taken to come to so
//! many waits, and for [`LONGEST_WITHOUT`] at most: a lock that was idle for an hour may be read by
//! many threads again. All that is advice: no invariant rests on it.
//!
//! Millions of reads and writes a second, sections of 100 ns, in the cost model of sixteen CPUs of
//! a Xeon and, with 64, of a larger machine; one thread a CPU; without rows, and with this rule:
//!
//! | writes | 2 CPUs | 16 | 64 |
//! |---|---|---|---|
//! | none | 10.4, 16.2 | 12.9, 130 | 10.9, 554 |
//! | 0.1 % | 10.4, 15.8 | 12.5, 51.3 | 9.2, 18.7 |
//! | 1 % | 9.9, 12.6 | 9.9, 6.6 | 6.3, 6.4 |
//! | 10 % | 7.6, 7.5 | 5.9, 5.9 | 4.5, 4.6 |
//! | 50 % | 7.0, 6.9 | 2.6, 2.6 | 1.9, 1.9 |
//!
//! At 1 % the rule follows a measurement, against the model. It was made outside of this project,
//! before rows, and was not repeated with them. On sixteen CPUs of a Xeon a lock with
//! sixteen slots of its own did 13.8, the same lock without 6.2, and the standard library's 5.3; at
//! 10 % they did 3.9, 3.0 and 2.7. The model lets an owner load one slot after the other, where a
//! CPU loads several at once. On two CPUs of an EPYC, with a row kept always: 1.38 of the lock
//! without rows at 1 %, 1.07 or 0.62 at 5 % (two or four threads), 0.49 at 10 %.
//!
//! What failed: to take a row away if its writes cost more than one part in four of the time, a
//! rule as BRAVO's (12.4 at 0.1 % on 16 CPUs); to compare the time that writes take with 50 ns for
//! each read (0.92 to 0.96 of no rows at 10 % on two CPUs); to ask at one of so many reads that
//! meet another one, a branch that CPUs cannot predict (0.94 to 0.97 of no rows at 5 and 10 % on
//! two CPUs, where this rule has 0.98 to 1.0); and to look at the lock for its row before the
//! addition in the state, which moves its line twice (9.6 at 0.1 % on 16 CPUs). Hence the hints.
//!
//! # Sources
//! D. Dice and A. Kogan, "BRAVO: Biased Locking for Reader-Writer Locks" (2019), for the bias, a
//! static table, and the time without. There a slot names the lock; here a row is the lock's, so
//! that slots count, locks do not collide, and locks can be moved.

use crate::configuration::Configuration;
use crate::exits::Exit;
use crate::raw::{PolicyOf, RawPsRwLock};
use crate::readers::{Readers, Slot};
use crate::word::{Queues, State};
use core::cell::Cell;
use core::ptr;
use core::time::Duration;
use crossbeam_utils::CachePadded;
use ulocks_core::futex::Scope;
use ulocks_core::meter::{Event, Meter};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicU32, AtomicU64, interruption_point, place_of, places};
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, cpu, sleep, spin, sync, tid};

/// How many rows there are, and place 0, which is none. In a model there is one.
const ROWS: usize = if places(Queues::ROWS) == 1 { 2 } else { Queues::ROWS };
/// How many slots a row has, on more CPUs shared: 8 KiB. Others were not measured.
const SLOTS: usize = 64;
/// At one of so many reads a thread looks whether it has met another reader, and then asks for a
/// row: a look at each would be a branch that CPUs cannot predict. Others were not measured.
pub(crate) const PERIOD: u8 = 64;
/// A row is worth its cost if between two writes one read comes for each slot in use, and so many
/// more: a write moves the line of each slot, and takes a longer way.
const WORTH: u32 = 32;
/// How many writes are looked at together.
const WRITES: u32 = 16;
/// For how many times as long as those writes took a lock gets no row after that.
const WITHOUT: u64 = 64;
/// What a write costs at a row, in nanoseconds, by the table above. On 64 CPUs a thousand
/// operations take 53.5 us with one write among them, and 1.8 us without one.
const AT_ROW: u64 = 52_000;
/// And no longer than that, in nanoseconds. A lock has a row that is not worth it for [`WRITES`]
/// writes, and then none for so long. So such rows take less than a thousandth of its time.
const LONGEST_WITHOUT: u64 = 1000 * WRITES as u64 * AT_ROW;

/// The most readers that one slot counts; the state counts others.
const SLOT_LIMIT: u32 = 1 << 16;
/// A slot counts one more reader, and one more arrival.
const ARRIVAL: u64 = 1 | 1 << 32;

/// How many readers are at a slot.
const fn readers(slot: u64) -> u32 {
    slot as u32
}

/// What an owner has seen of a row.
#[derive(Default)]
pub(crate) struct Seen {
    /// The slots before this one, each at zero.
    slots: Cell<usize>,
    /// How many readers had come to those, modulo 2^32.
    arrivals: Cell<u32>,
}

/// The wait of an owner that is a task, for the readers of a row.
pub(crate) struct Drain {
    number: u8,
    seen: Seen,
}

impl Drain {
    /// The owner does not wait any more.
    pub(crate) fn end(&self) {
        Row::of(self.number).waiting.fetch_sub(1, Relaxed);
    }
}

/// A row: slots, each on cache lines of its own.
pub(crate) struct Row {
    /// How many readers are at the slot, and above that how many have come, from bit 32 on.
    slots: [CachePadded<AtomicU64>; SLOTS],
    /// How many slots have been used, from the first on.
    used: CachePadded<AtomicU32>,
    exit: CachePadded<Exit>,
    /// How many owners sleep at the exit, or are about to.
    waiting: AtomicU32,
    /// Since when, in nanoseconds, there were so many writes.
    since: AtomicU64,
    writes: AtomicU32,
    /// How many readers had come before that.
    arrivals: AtomicU32,
}

ulocks_core::sync_table! {
    // SAFETY: no reference to them is in a value: each is of one call of a lock.
    unsafe static TABLE: [Row; ROWS] = ulocks_core::each!(Row::new(); ROWS);
    /// The rows that locks have, as bits. Bit 0 stands for no row, and is always set.
    unsafe static LENT: CachePadded<AtomicU32> = CachePadded::new(AtomicU32::new(NONE_LENT));
    unsafe static HINTS: [CachePadded<Hint>; HINTS_LEN] =
        ulocks_core::each!(CachePadded::new(Hint::new()); HINTS_LEN);
}

/// No row is lent.
const NONE_LENT: u32 = 1;
/// How many hints there are.
const HINTS_LEN: usize = places(64);

/// What is known of the locks of a place, by address, on a line that seldom changes. The lock's own
/// line is taken by its readers: a look at it before an addition would move it twice.
struct Hint {
    /// The row of one of these locks, and from bit 4 on bits of the address of that lock; or zero.
    row: AtomicU32,
    /// Until when, in nanoseconds, they get no row.
    until: AtomicU64,
}

impl Hint {
    ulocks_core::const_fn! {
        fn new() -> Self {
            Self { row: AtomicU32::new(0), until: AtomicU64::new(0) }
        }
    }
}

/// Nanoseconds of a clock that goes on.
fn now() -> u64 {
    Deadline::after(Duration::ZERO).since_zero().as_nanos() as u64
}

impl Row {
    ulocks_core::const_fn! {
        fn new() -> Self {
            Self {
                slots: ulocks_core::each!(CachePadded::new(AtomicU64::new(0)); SLOTS),
                used: CachePadded::new(AtomicU32::new(0)),
                exit: CachePadded::new(Exit::new()),
                waiting: AtomicU32::new(0),
                since: AtomicU64::new(0),
                writes: AtomicU32::new(0),
                arrivals: AtomicU32::new(0),
            }
        }
    }

    /// The row of that number, which is not zero.
    #[inline(always)]
    fn of(number: u8) -> &'static Self {
        let table: &'static [Self; ROWS] = &TABLE;
        &table[usize::from(number) % ROWS]
    }

    /// A row that no lock has. Its number.
    fn borrow() -> Option<u8> {
        let mut lent = LENT.load(Relaxed);
        loop {
            let free = (0..ROWS as u8).find(|row| lent >> row & 1 == 0)?;
            // Mutant: Acquire -> Relaxed: no model has a lock with a row that was another's before.
            match LENT.compare_exchange(lent, lent | 1 << free, Acquire, Relaxed) {
                Ok(_) => return Some(free),
                Err(now) => lent = now,
            }
        }
    }

    /// How many readers have come to all slots, modulo 2^32.
    fn arrivals(&self) -> u32 {
        self.slots.iter().fold(0, |sum: u32, slot| sum.wrapping_add((slot.load(Relaxed) >> 32) as u32))
    }

    /// Looks at the writes from now on.
    fn begin(&self, now: u64, arrivals: u32) {
        self.arrivals.store(arrivals, Relaxed);
        self.since.store(now, Relaxed);
        self.writes.store(0, Relaxed);
    }

    /// Gives a row back. The caller has seen all its slots at zero, or no lock has had the row.
    ///
    /// An owner that is a task, and was forgotten as it waited, would wait for ever: each reader of
    /// the next lock would wake it as it leaves.
    fn give_back(number: u8) {
        Self::of(number).waiting.store(0, Relaxed);
        // Mutant: Release -> Relaxed: as above.
        LENT.fetch_and(!(1 << number), Release);
    }

    /// Whether each slot has been seen at zero, those before `seen` earlier.
    #[inline]
    fn was_empty(&self, seen: &Seen) -> bool {
        let used = (self.used.load(Relaxed) as usize).min(SLOTS);
        let rest = self.slots.get(seen.slots.get()..used).unwrap_or(&[]);
        for slot in rest {
            let slot = slot.load(Acquire);
            if readers(slot) > 0 {
                return false;
            }
            seen.slots.set(seen.slots.get() + 1);
            seen.arrivals.set(seen.arrivals.get().wrapping_add((slot >> 32) as u32));
        }
        true
    }
}

impl<D: Configuration> RawPsRwLock<D> {
    /// Whether the lock can have a row.
    pub(crate) const HAS_ROWS: bool = D::Readers::BIASED
        && <PolicyOf<D> as Policy>::Scope::PRIVATE
        && Self::is_bulk(0)
        && !Self::READERS_FIRST;

    /// The number of the row that the lock has, or zero.
    #[inline(always)]
    pub(crate) fn row(&self) -> u8 {
        if Self::HAS_ROWS { Queues(self.queues.load(Relaxed)).row() } else { 0 }
    }

    /// Acquires for reading at a slot of the lock's row, if it has one and the class is open.
    // Out of the way of readers in the state.
    #[inline(never)]
    pub(crate) fn read_at_row(&self) -> Option<Slot> {
        let number = self.hinted();
        // Looks first: a reader that comes again and again would delay the owner each time.
        if number == 0 || !Self::LAYOUT.admits(self.look(), 0) {
            return None;
        }
        let row = Row::of(number);
        let nth = cpu::current().unwrap_or_else(tid::current) as usize % SLOTS;
        if row.used.load(Relaxed) <= nth as u32 {
            row.used.fetch_max(nth as u32 + 1, Relaxed);
        }
        let was = row.slots[nth].fetch_add(ARRIVAL, Relaxed);
        Self::fence_of_reader();
        interruption_point();
        let slot = Slot { row: number, nth: nth as u8 };
        // In this order: see "The row is taken away".
        let open = Self::LAYOUT.admits(State(self.state.load(Acquire)), 0);
        // Acquire: see "A reader at a slot".
        let is_ours = Queues(self.queues.load(Acquire)).row() == number;
        if open && is_ours && readers(was) < SLOT_LIMIT {
            self.meter.count(Event::Acquired);
            return Some(slot);
        }
        Self::depart_row(slot);
        if !is_ours {
            self.take_hint_back(number);
        }
        None
    }

    /// Leaves by a slot of a row: the lock may be gone.
    #[inline(never)]
    pub(crate) fn depart_row(Slot { row, nth }: Slot) {
        interruption_point();
        let row = Row::of(row);
        let was = row.slots[usize::from(nth) % SLOTS].fetch_sub(1, Release);
        Self::fence_of_reader();
        if row.waiting.load(Relaxed) > 0 && readers(was) == 1 {
            row.exit.tell_last();
        }
    }

    /// A reader in the state, which is inside since it was as it `was`, gets the lock a row if it
    /// has met another reader, and if that is not forbidden.
    #[cold]
    pub(crate) fn ask_for_row(&self, was: State) {
        if !D::Readers::EAGER && Self::LAYOUT.count(was, 0) == 0 {
            return;
        }
        let hint = self.hint();
        if self.row() != 0 {
            // The lock was moved, or another one has this place.
            return hint.row.store(self.hint_of(self.row()), Relaxed);
        }
        if now() < hint.until.load(Relaxed) {
            return;
        }
        let Some(number) = Row::borrow() else { return };
        Row::of(number).begin(now(), Row::of(number).arrivals());
        let mut queues = Queues(self.queues.load(Relaxed));
        while queues.row() == 0 {
            // Release: what a reader that finds this number sees of the state is not older.
            match self.queues.compare_exchange(queues.0, queues.with_row(number).0, Release, Relaxed) {
                Ok(_) => return hint.row.store(self.hint_of(number), Relaxed),
                Err(other) => queues = Queues(other),
            }
        }
        Row::give_back(number);
    }

    #[inline(always)]
    fn hint(&self) -> &'static Hint {
        let table: &'static [CachePadded<Hint>; HINTS_LEN] = &HINTS;
        &table[place_of(ptr::from_ref(self).addr(), HINTS_LEN)]
    }

    /// What the hint is if the lock has that row.
    #[inline(always)]
    fn hint_of(&self, number: u8) -> u32 {
        (ptr::from_ref(self).addr() as u32) << 1 & !0xF | u32::from(number)
    }

    /// Whether any lock has a row, and this one can have one: one load is enough where none has.
    #[inline(always)]
    pub(crate) fn rows_are_lent() -> bool {
        Self::HAS_ROWS && LENT.load(Relaxed) != NONE_LENT
    }

    /// The number of the lock's row as far as is known without a look at the lock, or zero.
    #[inline(always)]
    fn hinted(&self) -> u8 {
        if !Self::rows_are_lent() {
            return 0;
        }
        let hint = self.hint().row.load(Relaxed);
        let number = hint as u8 & 0xF;
        if hint == self.hint_of(number) { number } else { 0 }
    }

    /// Whether the lock has a row, as far as the hint knows.
    #[inline(always)]
    pub(crate) fn hint_has_row(&self) -> bool {
        let number = self.hinted();
        number != 0 && self.has_hinted(number)
    }

    #[cold]
    fn has_hinted(&self, number: u8) -> bool {
        let has = self.row() == number;
        if !has {
            self.take_hint_back(number);
        }
        has
    }

    /// The lock does not have the row of its hint: that is a lock's that was at this place, and was
    /// moved. Readers and writers would go the longer way as long as this one stays there.
    #[cold]
    fn take_hint_back(&self, number: u8) {
        _ = self.hint().row.compare_exchange(self.hint_of(number), 0, Relaxed, Relaxed);
    }

    /// Whether no reader is at a slot of the lock's row. If the class is closed, and the caller has
    /// seen that no reader is in the state, acquiring, none will be. For others it is a hint.
    pub(crate) fn row_is_empty(&self) -> bool {
        self.row_was_empty(&Seen::default())
    }

    /// The same, which adds to what was `seen`.
    pub(crate) fn row_was_empty(&self, seen: &Seen) -> bool {
        if !Self::HAS_ROWS {
            return true;
        }
        match self.row() {
            0 => true,
            number => {
                sync::without_unwinding(|| Self::fence_of_owner());
                Row::of(number).was_empty(seen)
            }
        }
    }

    /// An attempt has closed the class of a lock with a row, and has `seen` all slots at zero, and
    /// no reader in the state: a write like one that has waited.
    #[cold]
    pub(crate) fn attempted_at_row(&self, seen: &Seen) {
        self.judge_row(self.row(), seen.arrivals.get());
    }

    /// The owner has closed the class, and the readers in the state have left: waits for those at
    /// slots. False if `deadline` passed first.
    pub(crate) fn drain_row(&self, deadline: Option<Deadline>) -> bool {
        let number = self.row();
        if number == 0 {
            return true;
        }
        let (row, seen) = (Row::of(number), Seen::default());
        Self::fence_of_owner();
        let left = || row.was_empty(&seen);
        let done = left() || spin::head_waiter::<PolicyOf<D>>(false, left) || {
            self.meter.count(Event::Slept);
            row.waiting.fetch_add(1, Relaxed);
            Self::fence_of_owner();
            let left = row.exit.wait(deadline, left);
            row.waiting.fetch_sub(1, Relaxed);
            left
        };
        if done {
            self.judge_row(number, seen.arrivals.get());
        }
        done
    }

    /// As [`drain_row`](Self::drain_row), by an owner that is a task: from here on it waits, if the
    /// lock has a row.
    pub(crate) fn begin_drain(&self) -> Option<Drain> {
        let number = self.row();
        if number == 0 {
            return None;
        }
        Row::of(number).waiting.fetch_add(1, Relaxed);
        Self::fence_of_owner();
        Some(Drain { number, seen: Seen::default() })
    }

    /// A look by an owner that waits. If readers are at slots still, the exit to sleep at, and what
    /// to see there. Otherwise the wait is over.
    pub(crate) fn look_at_row(&self, drain: &Drain) -> Result<(), (&'static Exit, u32)> {
        let row = Row::of(drain.number);
        let exit = row.exit.seen();
        if !row.was_empty(&drain.seen) {
            return Err((&row.exit, exit));
        }
        drain.end();
        self.judge_row(drain.number, drain.seen.arrivals.get());
        Ok(())
    }

    /// Takes the row away if it was not worth its last [`WRITES`] writes. For the owner, which has
    /// closed the class and has seen all slots at zero, where so many readers had come.
    fn judge_row(&self, number: u8, arrivals: u32) {
        let row = Row::of(number);
        let writes = row.writes.load(Relaxed) + 1;
        if !D::Readers::EAGER && writes < WRITES {
            return row.writes.store(writes, Relaxed);
        }
        let (now, since) = (now(), row.since.load(Relaxed));
        let reads = arrivals.wrapping_sub(row.arrivals.load(Relaxed));
        row.begin(now, arrivals);
        if !D::Readers::EAGER && reads / WRITES > WORTH + row.used.load(Relaxed) {
            return;
        }
        let without = WITHOUT.saturating_mul(now.saturating_sub(since)).min(LONGEST_WITHOUT);
        self.hint().until.store(now.saturating_add(without), Relaxed);
        self.hint().row.store(0, Relaxed);
        self.queues.fetch_and(!Queues::ROW, Relaxed);
        Row::give_back(number);
    }
}

/// A lock gives its row back. A row is lost if readers whose guards were forgotten are in it, or at
/// that moment a late reader of another lock.
impl<D: Configuration> Drop for RawPsRwLock<D> {
    fn drop(&mut self) {
        sleep::forget(self.event.key());
        // A model has one row, and may drop a lock when its execution has ended.
        if places(2) == 1 {
            return;
        }
        let number = self.row();
        if number == 0 {
            return;
        }
        self.take_hint_back(number);
        if Row::of(number).was_empty(&Seen::default()) {
            Row::give_back(number);
        }
    }
}

#[cfg(test)]
mod tests;
