//! The protocol of `src/mutex/raw.rs` once more, with a switch for each way to get it wrong.
//!
//! `Mutant<SOUND>` is the protocol; its labels are those of the original. It is explored beside the original, so that a
//! model which finds nothing in either, and every seeded bug in the mutants, says something about the original.

use ulocks_core::Private;
use ulocks_core::futex::{Futex, FutexKey, Waited};
use ulocks_core::raw::RawMutex;
use ulocks_core::spin::{self, Look};
use ulocks_core::sync::Ordering::{self, Acquire, Relaxed, Release};
use ulocks_core::time::Deadline;

const UNLOCKED: u32 = 0;
const LOCKED: u32 = 1;
const CONTENDED: u32 = 2;

/// Which bug.
pub mod bug {
    /// None.
    pub const SOUND: u8 = 0;
    /// (L1) orders nothing.
    pub const RELAXED_L1: u8 = 1;
    /// (L2) orders nothing.
    pub const RELAXED_L2: u8 = 2;
    /// (L3) orders nothing.
    pub const RELAXED_L3: u8 = 3;
    /// (U1) and (U2) order nothing.
    pub const RELAXED_RELEASE: u8 = 4;
    /// (L1) is a load and a store.
    pub const LOAD_THEN_STORE: u8 = 5;
    /// The release wakes nobody.
    pub const NO_WAKE: u8 = 6;
    /// The release wakes before it frees.
    pub const WAKES_FIRST: u8 = 7;
    /// The release looks whether to wake, and frees by a store: a mark set in between is lost.
    pub const RELEASES_IN_TWO: u8 = 8;
    /// A waiter that was woken takes the mutex as an arrival would: (L3) leaves `LOCKED`.
    pub const L3_FORGETS: u8 = 9;
    /// A waiter sleeps without having marked the word.
    pub const SLEEPS_UNMARKED: u8 = 10;
    /// A timed waiter that was woken sees that its time is up, and leaves without (L2).
    pub const LEAVES_WITH_THE_WAKE_UP: u8 = 11;
    /// A timed waiter that leaves takes the mark with it, as if it had been the only one.
    pub const LEAVES_UNMARKED: u8 = 12;
    /// A waiter that was moved here takes the mutex as an arrival would, and so forgets those moved with it.
    pub const REQUEUED_FORGETS: u8 = 14;
    /// The release looks at the word once more afterwards.
    pub const TOUCHES_AFTER: u8 = 13;
}
use bug::*;

/// The protocol with the bug `BUG`.
pub struct Mutant<const BUG: u8> {
    futex: Futex<ulocks_core::futex::Private>,
}

fn unless(broken: bool, sound: Ordering) -> Ordering {
    if broken { Relaxed } else { sound }
}

impl<const BUG: u8> Mutant<BUG> {
    fn take(&self, held: u32, order: Ordering) -> bool {
        if BUG == LOAD_THEN_STORE && held == LOCKED {
            if self.futex.load(order) != UNLOCKED {
                return false;
            }
            self.futex.swap(LOCKED, order);
            return true;
        }
        self.futex.compare_exchange(UNLOCKED, held, order, Relaxed).is_ok()
    }

    fn arrive(&self) -> bool {
        self.take(LOCKED, unless(BUG == RELAXED_L1, Acquire)) // (L1)
    }

    fn lock_contended(&self, deadline: Option<Deadline>) -> bool {
        let look = || match self.futex.load(Relaxed) {
            UNLOCKED if self.arrive() => Look::Acquired,
            CONTENDED => Look::Saturated,
            _ => Look::Taken,
        };
        spin::backing_off::<Private>(look) || self.lock_asleep(deadline)
    }

    fn lock_asleep(&self, deadline: Option<Deadline>) -> bool {
        let mut expired = false;
        loop {
            if BUG == SLEEPS_UNMARKED {
                if self.take(CONTENDED, Acquire) {
                    return true;
                }
            } else if self.futex.swap(CONTENDED, unless(BUG == RELAXED_L2, Acquire)) == UNLOCKED {
                return true; // (L2)
            }
            if expired {
                if BUG == LEAVES_UNMARKED {
                    let _ = self.futex.compare_exchange(CONTENDED, LOCKED, Relaxed, Relaxed);
                }
                return false;
            }
            let expected = if BUG == SLEEPS_UNMARKED { LOCKED } else { CONTENDED };
            expired = self.futex.wait(expected, deadline) == Waited::TimedOut;
            if BUG == LEAVES_WITH_THE_WAKE_UP && !expired && deadline.is_some_and(|it| it.has_passed()) {
                return false;
            }
            let held = if BUG == L3_FORGETS { LOCKED } else { CONTENDED };
            let order = unless(BUG == RELAXED_L3, Acquire);
            let look = || match self.futex.load(Relaxed) {
                UNLOCKED if self.take(held, order) => Look::Acquired, // (L3)
                CONTENDED => Look::Saturated,
                _ => Look::Taken,
            };
            if spin::closely::<Private>(look) {
                return true;
            }
        }
    }
}

// SAFETY: for `SOUND` as for the original; the others are broken on purpose and live in models only, which detect it.
unsafe impl<const BUG: u8> RawMutex for Mutant<BUG> {
    ulocks_core::raw_init!(Self { futex: Futex::new(UNLOCKED) });

    type Scope = <Private as ulocks_core::Policy>::Scope;
    type Token = ();

    fn lock(&self) {
        if !self.arrive() {
            self.lock_contended(None);
        }
    }

    fn try_lock(&self) -> Option<()> {
        self.arrive().then_some(())
    }

    fn lock_until(&self, deadline: Deadline) -> Option<()> {
        (self.arrive() || (!deadline.has_passed() && self.lock_contended(Some(deadline)))).then_some(())
    }

    unsafe fn unlock(&self, (): ()) {
        let key = self.futex.key();
        let order = unless(BUG == RELAXED_RELEASE, Release);
        if BUG == WAKES_FIRST {
            if self.futex.load(Relaxed) == CONTENDED {
                key.wake(1);
            }
            self.futex.swap(UNLOCKED, order);
            return;
        }
        let was = if BUG == RELEASES_IN_TWO {
            let was = self.futex.load(Relaxed);
            self.futex.swap(UNLOCKED, order);
            was
        } else {
            self.futex.swap(UNLOCKED, order) // (U1) (U2)
        };
        if was == CONTENDED && BUG != NO_WAKE {
            key.wake(1);
        }
        if BUG == TOUCHES_AFTER {
            self.futex.load(Relaxed);
        }
    }

    fn is_locked(&self) -> bool {
        self.futex.load(Relaxed) != UNLOCKED
    }

    fn requeue_key(&self) -> Option<FutexKey<Self::Scope>> {
        Some(self.futex.key())
    }

    fn lock_requeued(&self) {
        if BUG == REQUEUED_FORGETS && self.arrive() {
            return;
        }
        self.lock_asleep(None);
    }
}
