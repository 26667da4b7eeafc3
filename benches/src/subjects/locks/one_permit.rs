//! The semaphore of the family as a mutex: one permit, taken and given back.

use ulocks_core::Policy;
use ulocks_core::raw::{Metered, RawMutex};
use ulocks_core::time::Deadline;
use ulocks_fair::RawSemaphore;

/// A semaphore that has one permit when no thread holds it.
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
