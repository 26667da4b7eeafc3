//! Gates: where a thread parks that finds a cell locked whose holder does not come back soon.
//!
//! A cell is locked for a fraction of a microsecond, unless its holder is preempted; then those who
//! spin keep it from coming back. But the word has no room for "somebody waits", and would not help
//! if it had: a holder releases it by a plain store, which does not know what it overwrites. So a
//! parker announces itself elsewhere, at a *gate* in static memory, and a releaser looks there
//! after its stores.
//!
//! # Properties
//! - Nobody parks for ever: whoever parks while a cell is locked is woken after that cell's
//!   release.
//! - A release of any number of cells costs one fence and one load, and touches the array no more
//!   after its stores (law 2).
//! - Arrays whose addresses name the same gate disturb one another at times, in speed and in
//!   nothing else.
//!
//! # State
//! Two words:
//!
//! | word | law |
//! |---|---|
//! | `waiting` | threads between (W1) and (W5). May be too great for a moment, never too small |
//! | `seq` | the futex: releases so far that found somebody waiting |
//!
//! | | parker | releaser | |
//! |---|---|---|---|
//! | (W1) | `waiting` + 1 | stores the words without their lock bits | |
//! | (W2) | fence | fence | (W6) |
//! | (W3) | reads `seq` | reads `waiting`; if it is not zero: | (W7) |
//! | (W4) | looks at the word; while it is locked, sleeps while `seq` is that, and from (W3) again | `seq` + 1 | (W8) |
//! | (W5) | `waiting` - 1 | wakes those who sleep with a bit of one of the cells | |
//!
//! A bit is the number of the cell modulo 32. Whoever has it is woken, of whatever array: each
//! looks at its own word.
//!
//! # Invariants
//! 1. *A release sees the parker, or the parker sees the release.* This is store buffering, and
//!    both sides have the `SeqCst` fence it needs: if (W6) comes first of the two, every look (W4)
//!    shows the store before (W6) or a newer one; if (W2) does, (W7) shows the parker, or that it
//!    has left.
//! 2. *Nobody sleeps for a cell that was released.* Let a parker fall asleep because (W4) showed a
//!    word locked. The release that unlocks it was not seen by that look, and so sees the parker,
//!    comes to (W8), and wakes. If (W3) shows that (W8), then (W4) shows the release, which it did
//!    not. So the kernel finds `seq` changed, or has the parker in its queue before the call.
//! 3. A count that is too great costs a release a system call that finds nobody.
//!
//! # Ordering
//! (W3) is Acquire and pairs with the fence (W6), which comes before (W8): a parker that has read
//! the changed `seq` sees the release (`litmus/semarray-gate-seq.litmus`). (W1), (W7) and (W8) are
//! Relaxed and ordered by the fences. (W5) is Relaxed, for it may be seen at any time. What a
//! parker may do to a word that it finds unlocked it has from its own acquisition.
//!
//! # Wrap-around
//! A parker would have to stay preempted between (W3) and the kernel for exactly 2^32 releases that
//! wake.
//!
//! # Sources
//! Dekker's handshake as in Linux's `wait_event` and `wake_up` with `waitqueue_active`, whose
//! comment demands the same two fences; a table of static queues by address as in `wait_on_bit` (W.
//! L. Irwin, 2004).

use ulocks_core::futex::{Bits, Futex, Private};
use ulocks_core::membarrier::PLACES;
use ulocks_core::spin::{self, Look};
use ulocks_core::sync::Ordering::{Acquire, Relaxed, SeqCst};
use ulocks_core::sync::{AtomicU32, fence, without_unwinding};
use ulocks_core::{Policy, const_fn, sync_static};

/// How long a thread looks before it parks, in nanoseconds: longer than a cell is locked by a
/// holder that runs, shorter than to fall asleep and be woken.
const SPIN_NS: u32 = 4_000;

/// One gate, on cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
pub struct Slot {
    seq: Futex<Private>,
    waiting: AtomicU32,
}

sync_static! {
    static TABLE: [Slot; PLACES] = ulocks_core::each_place!(Slot::new());
}

impl Slot {
    const_fn! {
        fn new() -> Self {
            Self { seq: Futex::new(0), waiting: AtomicU32::new(0) }
        }
    }

    /// The gate of the array at `address`.
    #[inline(always)]
    #[must_use]
    pub fn of(address: usize) -> &'static Self {
        // By cache line, and by page, for what lies at the same place of many pages.
        &TABLE[(address >> 6 ^ address >> 12) % TABLE.len()]
    }

    /// Waits while cell number `cell` is `locked`. It may be locked again on return: try, and come
    /// back.
    ///
    /// `locked` must load the cell's word, and be true only for a lock that is released by a call
    /// of [`released`](Self::released) with the bit of this cell.
    #[cold]
    pub fn wait_while<P: Policy>(&self, cell: u32, mut locked: impl FnMut() -> bool) {
        let look = || if locked() { Look::Taken } else { Look::Acquired };
        if !spin::backing_off_for::<P>(SPIN_NS, SPIN_NS, look) {
            // A panic between (W1) and (W5) would leave the count too high, and the cells of the
            // session locked.
            without_unwinding(|| self.park(Bits::one(cell), locked));
        }
    }

    fn park(&self, bits: Bits, mut locked: impl FnMut() -> bool) {
        self.waiting.fetch_add(1, Relaxed); // (W1)
        fence(SeqCst); // (W2)
        loop {
            let seq = self.seq.load(Acquire); // (W3)
            if !locked() {
                break; // (W4)
            }
            self.seq.wait_bits(seq, bits, None);
        }
        self.waiting.fetch_sub(1, Relaxed); // (W5)
    }

    /// Cells were released, by stores before this call: bit `n` stands for those whose number is
    /// `n` modulo 32. The array may be gone.
    #[inline]
    pub fn released(&self, cells: u32) {
        fence(SeqCst); // (W6)
        if self.waiting.load(Relaxed) != 0 {
            self.wake(cells); // (W7)
        }
    }

    #[cold]
    fn wake(&self, cells: u32) {
        self.seq.fetch_add(1, Relaxed); // (W8)
        if let Some(bits) = Bits::new(cells) {
            self.seq.key().wake_bits(u32::MAX, bits);
        }
    }
}
