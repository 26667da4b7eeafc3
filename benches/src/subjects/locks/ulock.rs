//! Every lock of this family that is a mutex, through its raw trait.

use super::{Lock, Meters, Scope};
use anyhow::Result;
use std::mem::{ManuallyDrop, MaybeUninit};
use ulocks_core::Policy;
use ulocks_core::meter::{Counted, Off};
use ulocks_core::raw::{Metered, RawMutex};
use ulocks_core::time::Deadline;
use ulocks_fair::RawSemaphore;

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
        Some([seen.acquired, seen.contended, seen.spun, seen.slept])
    }
}

impl<M: RawMutex + Metered<Meter: Readable> + Sync + 'static> Lock for Ulock<M> {
    fn place(place: &mut MaybeUninit<Self>, _: Scope) -> Result<()> {
        place.write(Self(M::INIT));
        Ok(())
    }

    type Held<'a> = HeldUlock<'a, M>;

    #[inline]
    fn acquire(&self, wait: bool) -> Option<HeldUlock<'_, M>> {
        let token = if wait { self.0.lock() } else { self.0.try_lock()? };
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

/// The semaphore of the family as a mutex: one permit, taken and given back.
#[derive(Debug)]
pub struct OnePermit<P: Policy>(RawSemaphore<P>);

ulocks_core::initial!([P: Policy] OnePermit<P> = Self(RawSemaphore::new(1)));

// SAFETY: there is one permit, and `unlock` puts back the permit that an acquisition took; that a
// release happens before the acquisition that takes what it gave is the semaphore's promise. It
// borrows nothing, so a token may be forgotten and the semaphore moved or dropped.
unsafe impl<P: Policy> RawMutex for OnePermit<P> {
    type Scope = P::Scope;
    type Token = ();

    #[inline]
    fn lock(&self) {
        self.0.acquire(1);
    }

    #[inline]
    fn try_lock(&self) -> Option<()> {
        self.0.try_acquire(1).then_some(())
    }

    #[inline]
    fn lock_until(&self, deadline: Deadline) -> Option<()> {
        self.0.acquire_until(1, deadline).then_some(())
    }

    #[inline]
    unsafe fn unlock(&self, (): ()) {
        // Only what an acquisition took comes back, so there are never too many.
        let _ = self.0.release(1);
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.available() == 0
    }
}

impl<P: Policy> Metered for OnePermit<P> {
    type Meter = P::Meter;

    fn meter(&self) -> &P::Meter {
        self.0.meter()
    }
}
