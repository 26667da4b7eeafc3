//! Parking slots: where a thread parks that finds a cell locked for long.
//!
//! A cell is locked for a fraction of a microsecond, unless its holder is preempted. Then threads
//! that spin for the cell keep the holder from running. But the word has no room for a mark that a
//! thread waits, and a mark would not help: the holder releases the cell by a plain store, which
//! would overwrite it. So a parking thread announces itself elsewhere, in a *slot* in static
//! memory. A releasing thread looks there after its stores.
//!
//! # Properties
//! - No thread parks for ever: a thread that parks because a cell is locked is woken after that
//!   cell's release.
//! - A release of any number of cells costs one fence and one load. It does not touch the array
//!   after its stores (law 2 of ARCHITECTURE.md).
//! - Arrays whose addresses select the same slot may wake each other's threads. This costs time and
//!   nothing else.
//!
//! # State
//! Two words:
//!
//! | word | law |
//! |---|---|
//! | `waiting` | threads between (announce) and (withdraw). It may be too great for a moment, never too small |
//! | `seq` | the futex: releases so far that found a parking thread |
//!
//! | | parking thread | releasing thread | |
//! |---|---|---|---|
//! | | | stores the words without `LOCK` | |
//! | (announce) | adds 1 to `waiting` | | |
//! | (parking fence) | fence | fence | (releasing fence) |
//! | (read seq) | reads `seq` | reads `waiting`; if it is not zero: | (look for parked) |
//! | (look) | reads the word; if it is locked, sleeps while `seq` is what (read seq) read, then goes to (read seq) | adds 1 to `seq` | (bump seq) |
//! | (withdraw) | subtracts 1 from `waiting` | wakes the threads that sleep with the bit of one of its cells | |
//!
//! The bit of a cell is its number modulo 32. All threads of the slot with this bit are woken, of
//! whatever array: each reads its own word again.
//!
//! # Invariants
//! 1. *The release sees the parking thread, or the parking thread sees the release.* This is store
//!    buffering. Both sides have the `SeqCst` fence that it needs. If (releasing fence) is before
//!    (parking fence), then (look) reads what was stored before (releasing fence), or a newer
//!    value. If (parking fence) is before (releasing fence), then (look for parked) sees the thread
//!    counted, unless it has left.
//! 2. *No thread sleeps for a cell that was released.* Let (look) find the word locked, and let R
//!    be the release that unlocks it. (look) did not see R's store, so by 1 R sees the thread, adds
//!    1 to `seq` at (bump seq), and wakes. Had (read seq) read what this (bump seq) wrote, then
//!    (look) would have seen the store. So the kernel finds `seq` changed, or has the thread in its
//!    queue before R's wake-up.
//! 3. If `waiting` is too great, a release makes a system call that finds no thread.
//!
//! # Ordering
//! (read seq) is Acquire and pairs with the fence (releasing fence), which is before (bump seq): a
//! thread that has read the changed `seq` sees the release
//! (`xtask/litmus/semarray-slot-seq.litmus`). (announce), (look for parked) and (bump seq) are
//! Relaxed, because the fences order them. (withdraw) is Relaxed, because it may be seen at any
//! time. A thread that finds the word unlocked still has to acquire the cell, and that orders what
//! it does then.
//!
//! # Wrap-around
//! A thread would have to stay preempted between (read seq) and the kernel for exactly 2^32
//! releases that wake.
//!
//! # Sources
//! Dekker's handshake as in Linux's `wait_event` and `wake_up` with `waitqueue_active`, whose
//! comment demands the same two fences. A table of static queues by address as in `wait_on_bit` (W.
//! L. Irwin, 2004).

use crossbeam_utils::CachePadded;
use ulocks_core::futex::{Bits, Futex, Local};
use ulocks_core::membarrier::SLOTS;
use ulocks_core::spin::{self, Look};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, SeqCst};
use ulocks_core::sync::{AtomicU32, fence, without_unwinding};
use ulocks_core::{Policy, const_fn, sync_table};

/// How long a thread polls before it parks, in nanoseconds: longer than a running holder keeps a
/// cell locked, which is 0.2 us for a set of 64, and shorter than a sleep and a wake-up take. No
/// other value between the two was measured.
const SPIN_NS: u32 = 4_000;

/// One slot; in the table each has cache lines of its own.
#[derive(Debug)]
pub struct Slot {
    seq: Futex<Local>,
    waiting: AtomicU32,
}

sync_table! {
    // SAFETY: no reference to it is in a value: each is of one call of a lock.
    unsafe static TABLE: [CachePadded<Slot>; SLOTS] = ulocks_core::each!(CachePadded::new(Slot::new()); SLOTS);
}

impl Slot {
    const_fn! {
        fn new() -> Self {
            Self { seq: Futex::new(0), waiting: AtomicU32::new(0) }
        }
    }

    /// The slot of the array at `address`.
    #[inline(always)]
    #[must_use]
    pub fn of(address: usize) -> &'static Self {
        // By cache line, and by page, because arrays may lie at the same offset of many pages.
        &TABLE[(address >> 6 ^ address >> 12) % TABLE.len()]
    }

    /// Waits while cell number `cell` is `locked`. On return it may be locked again, so the caller
    /// tries in a loop.
    ///
    /// `locked` must load the cell's word. It must be true only for a lock whose release calls
    /// [`released`](Self::released) with the bit of this cell.
    #[cold]
    pub fn wait_while<P: Policy>(&self, cell: u32, mut locked: impl FnMut() -> bool) {
        let look = || if locked() { Look::Taken } else { Look::Acquired };
        if !spin::backing_off_for::<P>(SPIN_NS, SPIN_NS, look) {
            // A panic between (announce) and (withdraw) would leave `waiting` too great, and the
            // cells of the session locked.
            without_unwinding(|| self.park(Bits::one(cell), locked));
        }
    }

    fn park(&self, bits: Bits, mut locked: impl FnMut() -> bool) {
        self.waiting.fetch_add(1, Relaxed); // (announce)
        fence(SeqCst); // (parking fence)
        loop {
            let seq = self.seq.load(Acquire); // (read seq)
            if !locked() {
                break; // (look)
            }
            self.seq.wait_bits(seq, bits, None);
        }
        self.waiting.fetch_sub(1, Relaxed); // (withdraw)
    }

    /// Wakes threads that wait for `cells`, which were released by stores before this call. Bit `n`
    /// stands for the cells whose number is `n` modulo 32. The array may be gone.
    #[inline]
    pub fn released(&self, cells: u32) {
        fence(SeqCst); // (releasing fence)
        if self.waiting.load(Relaxed) != 0 {
            self.wake(cells); // (look for parked)
        }
    }

    #[cold]
    fn wake(&self, cells: u32) {
        self.seq.fetch_add(1, Relaxed); // (bump seq)
        if let Some(bits) = Bits::new(cells) {
            self.seq.key().wake_bits(u32::MAX, bits);
        }
    }
}
