//! The counters of typed locks, read without `unsafe`.

use super::{Mutex, RwLock};
use crate::lock::traits::{Metered, RawMutex, RawRwLock};

impl<L: RawMutex + Metered, T: ?Sized> Metered for Mutex<L, T> {
    type Meter = L::Meter;

    fn meter(&self) -> &L::Meter {
        // SAFETY: the lock is not acquired or released: only its meter is taken, which any thread
        // may use at any time.
        unsafe { self.raw() }.inner().meter()
    }
}

impl<L: RawRwLock + Metered, T: ?Sized> Metered for RwLock<L, T> {
    type Meter = L::Meter;

    fn meter(&self) -> &L::Meter {
        // SAFETY: as above.
        unsafe { self.raw() }.inner().meter()
    }
}
