//! Every lock of this family that is a mutex, through its raw trait, and its semaphore as one.

use super::{Held, Lock, Meters, Scope};
use anyhow::Result;
use std::any::Any;
use std::mem::{ManuallyDrop, MaybeUninit};
use ulocks_core::meter::Counted;
use ulocks_core::policy::InOneProcess;
use ulocks_core::raw::{Metered, RawMutex};
use ulocks_fair::RawSemaphore;

/// What a meter has counted, if it is one that counts.
fn read(meter: &dyn Any) -> Option<Meters> {
    let seen = meter.downcast_ref::<Counted>()?.snapshot();
    Some([seen.acquired, seen.contended, seen.spun, seen.slept])
}

/// A raw mutex of the family.
#[derive(Debug)]
pub struct Ulock<M>(M);

impl<M: RawMutex + Metered + Sync + 'static> Lock for Ulock<M> {
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
        read(self.0.meter())
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

/// A semaphore of the family that has one permit when no thread holds it.
#[derive(Debug)]
pub struct Permit<S>(S);

impl<P: InOneProcess> Lock for Permit<RawSemaphore<P>> {
    fn place(place: &mut MaybeUninit<Self>, _: Scope) -> Result<()> {
        place.write(Self(RawSemaphore::new(1)));
        Ok(())
    }

    type Held<'a> = Held<'a, Self>;

    #[inline]
    fn acquire(&self, wait: bool) -> Option<Held<'_, Self>> {
        if wait {
            self.0.acquire(1);
        } else if !self.0.try_acquire(1) {
            return None;
        }
        Some(Held(self))
    }

    #[inline]
    fn release(&self) {
        // Only what an acquisition took comes back, so there are never too many.
        let _ = self.0.release(1);
    }

    fn meters(&self) -> Option<Meters> {
        read(self.0.meter())
    }
}
