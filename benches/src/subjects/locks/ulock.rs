//! Every lock of this family, through its raw trait.

use super::{Lock, Meters, Scope};
use anyhow::Result;
use std::mem::ManuallyDrop;
use ulocks_core::meter::{Counted, Off};
use ulocks_core::raw::{Metered, RawMutex};

/// A raw mutex of the family.
#[derive(Debug)]
pub struct Ulock<M>(M);

/// A meter whose counters a trial can record.
pub trait Readable {
    /// What it has counted.
    fn read(&self) -> Option<Meters>;
}

impl Readable for Off {
    fn read(&self) -> Option<Meters> {
        None
    }
}

impl Readable for Counted {
    fn read(&self) -> Option<Meters> {
        let seen = self.snapshot();
        Some(Meters {
            acquired: seen.acquired,
            contended: seen.contended,
            spun: seen.spun,
            slept: seen.slept,
            reader_contended: seen.reader_contended,
        })
    }
}

impl<M: RawMutex + Metered<Meter: Readable> + Sync + 'static> Lock for Ulock<M> {
    fn unlocked(_: Scope) -> Result<Self> {
        Ok(Self(M::INIT))
    }

    type Held<'a> = HeldUlock<'a, M>;

    #[inline]
    fn acquire(&self) -> Self::Held<'_> {
        HeldUlock { raw: &self.0, token: ManuallyDrop::new(self.0.lock()) }
    }

    #[inline]
    fn try_acquire(&self) -> Option<Self::Held<'_>> {
        let token = self.0.try_lock()?;
        Some(HeldUlock { raw: &self.0, token: ManuallyDrop::new(token) })
    }

    fn meters(&self) -> Option<Meters> {
        self.0.meter().read()
    }
}

/// Holding a raw mutex, with the token of its acquisition.
#[derive(Debug)]
pub struct HeldUlock<'a, M: RawMutex> {
    raw: &'a M,
    token: ManuallyDrop<M::Token>,
}

impl<M: RawMutex> Drop for HeldUlock<'_, M> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the token is taken once, here; it came from an acquisition of this mutex by this
        // thread, which alone may drop what holds the token.
        unsafe { self.raw.unlock(ManuallyDrop::take(&mut self.token)) };
    }
}
