//! A lock made of a word and its parking slot, like a cell of the array. And a client for what a
//! mutex does not have.

use ulocks_core::membarrier;
use ulocks_core::raw::{Metered, RawMutex};
use ulocks_core::sync::AtomicU32;
use ulocks_core::sync::Ordering::{Acquire, Relaxed, Release};
use ulocks_core::time::Deadline;
use ulocks_core::{Policy, Private, meter};
use ulocks_semarray::slots::Slot;
use ulocks_testkit::thread::{Arc, spawn, together};

const UNLOCKED: u32 = 0;
const LOCKED: u32 = 1;

/// Cell number `CELL` of an array without an address: in a model all cells use one slot.
pub struct Latch<const CELL: u32 = 0>(AtomicU32);

impl<const CELL: u32> Latch<CELL> {
    fn slot() -> &'static Slot {
        Slot::of(0)
    }

    /// The store of a release, without what follows.
    fn store(&self) {
        membarrier::store(&self.0, UNLOCKED, Release);
    }
}

ulocks_core::initial!([const CELL: u32] Latch<CELL> = Self(AtomicU32::new(UNLOCKED)));

// SAFETY: one of many exchanges succeeds until the next store, and a release happens before the
// acquisition that follows. The token is empty. That this holds is what the clients test.
unsafe impl<const CELL: u32> RawMutex for Latch<CELL> {
    type Scope = <Private as Policy>::Scope;
    type Token = ();
    type Condvar = ulocks_core::condvar::Sequence<Self>;

    fn lock(&self) {
        while self.try_lock().is_none() {
            Self::slot().wait_while::<Private>(CELL, || self.is_locked());
        }
    }

    fn try_lock(&self) -> Option<()> {
        self.0.compare_exchange(UNLOCKED, LOCKED, Acquire, Relaxed).ok().map(drop)
    }

    fn lock_until(&self, deadline: Deadline) -> Option<()> {
        assert_eq!(deadline, Deadline::NEVER, "no thread waits for a cell with another deadline");
        self.lock();
        Some(())
    }

    unsafe fn unlock(&self, (): ()) {
        let slot = Self::slot();
        self.store(); // From here on the latch may be gone.
        slot.released(1 << (CELL % 32));
    }

    fn is_locked(&self) -> bool {
        self.0.load(Relaxed) != UNLOCKED
    }
}

impl<const CELL: u32> Metered for Latch<CELL> {
    type Meter = meter::Off;

    fn meter(&self) -> &meter::Off {
        &meter::Off
    }
}

/// One thread holds two cells, and releases both with one load of the slot. Other threads wait for
/// the one and the other.
pub fn one_load_for_two_cells(waiters: usize) {
    let cells = Arc::new((ulocks_testkit::new_lock::<Latch<3>>(), ulocks_testkit::new_lock::<Latch<36>>()));
    cells.0.lock();
    cells.1.lock();
    let waiting = Arc::clone(&cells);
    let others = spawn(move || {
        together(waiters, move |me| {
            if me % 2 == 0 {
                waiting.0.lock();
                // SAFETY: locked here.
                unsafe { waiting.0.unlock(()) };
            } else {
                waiting.1.lock();
                // SAFETY: locked here.
                unsafe { waiting.1.unlock(()) };
            }
        });
    });
    cells.0.store();
    cells.1.store();
    Slot::of(0).released(1 << 3 | 1 << 4);
    others.join().unwrap();
}
