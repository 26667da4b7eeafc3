//! The gate: whether releases of a mutex may be plain stores at the moment.
//!
//! A release by a plain store cannot know whether it overwrites a waiter's mark. So there is a
//! second word, a *gate*, which waiters shut before they mark a mutex. A thread looks at it before
//! it acquires the mutex. If the gate is open, the thread gets a *pass* to release by a store.
//! After the store it looks again, and if the gate has changed, it wakes a sleeper. The gate cannot
//! be a part of the mutex, because the mutex may be freed after the store (law 2). So there is a
//! fixed table of gates in static memory, and the address of a mutex selects one. Mutexes that
//! share a gate may slow one another down; nothing else changes.
//!
//! # State
//! One word of 64 bits:
//!
//! | part | bits | law |
//! |---|---|---|
//! | `OPEN` | 1 | set: releases may be plain as long as there is no marker. Zero, the beginning, is shut |
//! | `markers` | 23 | waiters between (enter) and (leave) |
//! | `opening` | 40 | the number of the newest opening, among those of all gates |
//!
//! | gate | `OPEN` | `markers` | a thread that acquires a mutex now |
//! |---|---|---|---|
//! | open | 1 | 0 | may release by a store: its pass is the word |
//! | closing | 1 | > 0 | releases by an exchange |
//! | shut | 0 | any | releases by an exchange |
//!
//! | from | to | by | label |
//! |---|---|---|---|
//! | open | closing | a waiter that is about to mark a mutex, `markers + 1` | (enter) |
//! | closing | shut | the same waiter, after its heavy fence | (fence), (shut) |
//! | shut | shut | a further waiter: no fence | (enter) |
//! | any | the same | a waiter that has set its mark, `markers - 1` | (leave) |
//! | shut | open or closing, with a new number | a release, after so many that found no mark | (open) |
//!
//! A second waiter that comes while the gate is closing makes a fence of its own instead of waiting
//! for the first one's.
//!
//! # Invariants
//! 1. While a marker is inside, no thread gets a pass.
//! 2. *A store whose thread then finds the gate as in its pass has overwritten no mark.* Take a
//!    mark set by `M` while `U` holds the mutex, and `U`'s store over it. `M` comes after a heavy
//!    fence made since the gate was last open: its own, or one it learnt of by (enter) from
//!    (shut). The store comes after the mark, hence the light fence behind it after (fence), and so
//!    `U`'s last look shows that closing or something newer. If it shows the gate of the pass all
//!    the same, that is a later opening, without a marker: `M` had left (invariant 1), and the pass
//!    has learnt of (leave). So the mark was there before `U` acquired, and no thread acquires a
//!    marked mutex.
//! 3. No two openings have the same number, of one gate or of two. A mutex that is moved while
//!    locked is released with another gate, whose word cannot be that of its pass.
//! 4. A gate opens only if the heavy fence is known to work.
//!
//! # Ordering
//! | access | order | pairs with |
//! |---|---|---|
//! | (enter) `fetch_add` | Acquire | (shut): what is marked now comes after that fence |
//! | (fence) | `membarrier::heavy` | the light fence of a release |
//! | (shut) `fetch_and` | Release | (enter) |
//! | (leave) `fetch_sub` | Release | (pass): the marks set so far |
//! | (open) `compare_exchange` | Relaxed | nothing |
//! | (pass) a pass is taken | Acquire | (leave) |
//! | (look back) the look after the store | Relaxed | nothing: the light fence before it does |
//!
//! All changes are read-modify-writes. So a thread that acquires from one synchronises with every
//! release before it.
//!
//! Without (leave) or (pass) a pass could learn of a mark that is set because of what its owner
//! does next. This is load buffering. Some processors allow it. The models do not: their mutants
//! exchange the two accesses, and `xtask/litmus/asym-gate.litmus` has the instructions.
//!
//! Without (enter) or (shut) a mark might be older than the fence it relies on
//! (`xtask/litmus/asym-gate-second.litmus`). The kernel's comparison would find it gone, and the
//! waiter awake. The proof does without the kernel.
//!
//! # When to open
//! A shut gate costs each release the difference between an exchange and a store. An open one costs
//! the next mark a heavy fence. This is the ski rental problem: rent until the rent has cost as
//! much as the purchase ([`membarrier::worth`]). The cost is then at most twice the optimum. Each
//! release that finds no mark pays one rent; a mark sets the bill anew. The bill is kept by loads
//! and stores, so a payment may get lost.
//!
//! # Wrap-around
//! `opening` has 40 bits, and an opening takes two thousand releases and a heavy fence, 20 us
//! together. A release would have to stay preempted between its pass and its last look for eight
//! months, and be resumed on the very opening.

use crossbeam_utils::CachePadded;
use ulocks_core::membarrier::{self, SLOTS};
use ulocks_core::sync::AtomicU64;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::{const_fn, sync_table};

/// May be clear although releases could be plain, never set while the heavy fence does not work.
const OPEN: u64 = 1;
/// Never too few: a marker counts from before its mark until after it.
const ONE_MARKER: u64 = 1 << 1;
const OPENING_SHIFT: u32 = 24;
const MARKERS_MASK: u64 = (1 << OPENING_SHIFT) - ONE_MARKER;

/// One gate.
pub(crate) struct Gate {
    word: AtomicU64,
    /// How many more releases must find no mark before the gate opens.
    bill: AtomicU64,
}

sync_table! {
    // SAFETY: no reference to them is in a value: each is of one call of a lock.
    /// Each on cache lines of its own.
    unsafe static GATES: [CachePadded<Gate>; SLOTS] = ulocks_core::each!(CachePadded::new(Gate::new()); SLOTS);
    /// The openings of all gates.
    unsafe static OPENINGS: AtomicU64 = AtomicU64::new(0);
}

/// Whether the holder of a mutex may release it by a store, and what the gate was when it asked.
#[derive(Clone, Copy, Debug)]
pub struct Pass(u64);

impl Pass {
    /// Releases by an exchange.
    pub(crate) const NONE: Self = Self(0);

    #[inline(always)]
    pub(crate) fn is_some(self) -> bool {
        self.0 != Self::NONE.0
    }
}

impl Gate {
    const_fn! {
        fn new() -> Self {
            Self { word: AtomicU64::new(0), bill: AtomicU64::new(0) }
        }
    }

    /// The gate of the mutex at `address`.
    #[inline(always)]
    pub(crate) fn of(address: usize) -> &'static Self {
        // By cache line, and by page, for mutexes at the same offset of many pages.
        &GATES[(address >> 6 ^ address >> 12) % GATES.len()]
    }

    /// (pass): a pass, if the gate is open, for a thread that is about to acquire a mutex.
    #[inline(always)]
    pub(crate) fn pass(&self) -> Pass {
        // Mutant: Acquire -> Relaxed: load buffering, by litmus/asym-gate.litmus.
        let word = self.word.load(Acquire);
        if word & (OPEN | MARKERS_MASK) == OPEN { Pass(word) } else { Pass::NONE }
    }

    /// (look back): whether the gate is as it was, after a store with `pass` and its light fence.
    #[inline(always)]
    pub(crate) fn is_as_in(&self, pass: Pass) -> bool {
        self.word.load(Relaxed) == pass.0
    }

    /// A waiter that is about to mark a mutex. False if the gate cannot be shut, because the kernel
    /// refuses the fence: then the mark may get lost.
    pub(crate) fn enter(&self) -> bool {
        // Mutant: Acquire -> Relaxed: the kernel's comparison finds an overwritten mark gone.
        let before = self.word.fetch_add(ONE_MARKER, Acquire); // (enter)
        self.bill.store(membarrier::worth().into(), Relaxed);
        if before & OPEN == 0 {
            return true;
        }
        if !membarrier::heavy() {
            return false; // (fence)
        }
        // Mutant: Release -> Relaxed: as (enter).
        self.word.fetch_and(!OPEN, Release); // (shut)
        true
    }

    /// A waiter that has set its mark.
    pub(crate) fn leave(&self) {
        // Mutant: Release -> Relaxed: load buffering, by litmus/asym-gate.c.litmus.
        self.word.fetch_sub(ONE_MARKER, Release); // (leave)
    }

    /// A release that found the gate shut and no mark.
    #[inline]
    pub(crate) fn pay_rent(&self) {
        match self.bill.load(Relaxed) {
            0 => self.open(),
            due => self.bill.store(due - 1, Relaxed),
        }
    }

    #[cold]
    fn open(&self) {
        if !membarrier::ready() {
            self.bill.store(u64::MAX, Relaxed); // and never try again
            return;
        }
        let word = self.word.load(Relaxed);
        if word & OPEN == 0 {
            let nth = OPENINGS.fetch_add(1, Relaxed);
            let opened = nth << OPENING_SHIFT | word & MARKERS_MASK | OPEN;
            let _ = self.word.compare_exchange(word, opened, Relaxed, Relaxed); // (open)
        }
    }
}
