//! [`Checked`]: a raw mutex with a checker around it.

use super::lock::{Lock, no_wait};
use super::notified::Notified;
use crate::rules::current::current;
use crate::rules::faults::{self, TryLockError};
use crate::seen::access::Access::Exclusive;
use crate::seen::asked::Asked;
use crate::seen::class::Origin;
use crate::seen::events;
use crate::seen::report::Place;
use crate::seen::thread::{Record, Rewait};
use core::convert::Infallible;
use core::panic::Location;
use ulocks_core::futex::{FutexKey, Local};
use ulocks_core::raw::{Initial, Metered, RawInterruptible, RawMutex, RawMutexFair};
use ulocks_core::time::Deadline;

/// A raw mutex of the family that enforces the rules of a mutex; see the [crate](crate).
///
/// [`CheckedMutex`](crate::CheckedMutex) is its typed face, and knows the line of its making. A
/// lock that was made by `INIT`, or is zeroed memory, has no class, and an order of its own.
///
/// It is the raw lock and two words. It cannot be shared between processes.
#[derive(Debug)]
pub struct Checked<R>(pub(super) Lock<R>);

impl<R: Initial> Initial for Checked<R> {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self::with_origin(Origin::UNKNOWN);
}

impl<R: Initial> Checked<R> {
    pub(crate) const fn with_origin(origin: Origin) -> Self {
        Self(Lock::with_origin(origin))
    }
}

impl<R> Checked<R> {
    /// The lock that is checked.
    pub const fn inner(&self) -> &R {
        &self.0.raw
    }

    pub(super) fn address(&self) -> usize {
        self.0.address()
    }

    #[inline(always)]
    #[track_caller]
    fn leave(&self) -> bool {
        self.0.leave_at_once() || self.leave_slowly()
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn leave_slowly(&self) -> bool {
        self.0.leave(Exclusive, true, |_| true)
    }

    /// Enters the release of a wait on a condition variable, before the raw lock makes it. Returns
    /// whether it may, and how the thread held the lock.
    #[track_caller]
    pub(super) fn leave_to_wait(&self) -> (bool, Option<(&'static Record, Asked)>) {
        let holds = |me: &'static Record| me.held().find(|held| held.lock == self.0.address());
        let held = current().and_then(|me| Some((me, Asked::again(&holds(me)?))));
        if !self.leave() {
            return (false, None);
        }
        if let Some((me, asked)) = &held
            && me.holds_any()
        {
            faults::wait(me, asked);
        }
        (true, held)
    }
}

impl<R: RawMutex<Scope = Local>> Checked<R> {
    /// # Safety
    /// As that of [`RawMutex::unlock`].
    #[cold]
    #[inline(never)]
    #[track_caller]
    unsafe fn unlock_slowly(&self, token: R::Token) {
        if self.leave_slowly() {
            // SAFETY: the caller's promise.
            unsafe { self.0.raw.unlock(token) };
            events::released();
        }
    }

    /// Acquires the lock in a subclass of its class.
    #[inline]
    #[track_caller]
    pub(crate) fn lock_at(&self, subclass: u8, at: Place) -> R::Token {
        match subclass {
            0 => self.0.acquire_at_once(at, R::try_lock).unwrap_or_else(|| self.lock_slowly(0, at)),
            _ => self.lock_slowly(subclass, at),
        }
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn lock_slowly(&self, subclass: u8, at: Place) -> R::Token {
        let Some(me) = current() else { return self.0.untracked(Exclusive, self.0.raw.lock()) };
        let asked = match me.take_rewait(self.0.address()) {
            // It was checked before the wait on the condition variable.
            Some(rewait) => self.0.asked(Exclusive, rewait.subclass, rewait.place),
            None => {
                let asked = self.0.asked(Exclusive, subclass, at);
                self.0.check(me, asked);
                asked
            }
        };
        let Ok(token) =
            self.0.take(me, asked, |raw| Ok::<_, Infallible>(raw.try_lock()), |raw| Ok(raw.lock()));
        token
    }

    #[inline]
    #[track_caller]
    pub(crate) fn try_lock_at(&self, at: Place) -> Option<R::Token> {
        let Ok(token) = self.0.attempt(Exclusive, at, |raw| Ok(raw.try_lock()), no_wait::<R, _>());
        token
    }

    #[track_caller]
    pub(crate) fn lock_until_at(&self, deadline: Deadline, at: Place) -> Option<R::Token> {
        let wait = Some(|raw: &R| Ok::<_, Infallible>(raw.lock_until(deadline)));
        let Ok(token) = self.0.attempt(Exclusive, at, |raw| Ok(raw.try_lock()), wait);
        token
    }

    /// As [`CheckedMutex::try_lock_checked`](crate::CheckedMutex::try_lock_checked).
    #[track_caller]
    pub(crate) fn try_checked(&self) -> Result<R::Token, TryLockError> {
        self.0.try_checked(Exclusive, R::try_lock)
    }
}

// SAFETY: every token is one of `raw`, from an acquisition of `raw` that has just returned, and is
// given back to `raw` once at most. So exclusion and order are those of `raw`. A panic happens
// before the acquisition or the release, or, of two holders, in a lock that is broken.
unsafe impl<R: RawMutex<Scope = Local>> RawMutex for Checked<R> {
    type Scope = Local;
    type Token = R::Token;
    type Condvar = Notified<R>;

    const CONDVAR_NS: u32 = R::CONDVAR_NS;

    #[inline]
    #[track_caller]
    fn lock(&self) -> R::Token {
        self.lock_at(0, Location::caller())
    }

    #[inline]
    #[track_caller]
    fn try_lock(&self) -> Option<R::Token> {
        self.try_lock_at(Location::caller())
    }

    #[track_caller]
    fn lock_until(&self, deadline: Deadline) -> Option<R::Token> {
        self.lock_until_at(deadline, Location::caller())
    }

    #[inline]
    #[track_caller]
    unsafe fn unlock(&self, token: R::Token) {
        if self.0.leave_at_once() {
            // SAFETY: the caller's promise.
            unsafe { self.0.raw.unlock(token) };
            events::released();
        } else {
            // SAFETY: as above.
            unsafe { self.unlock_slowly(token) };
        }
    }

    #[track_caller]
    unsafe fn unlock_to_wait(&self, token: R::Token) {
        let (may, held) = self.leave_to_wait();
        if !may {
            return;
        }
        if let Some((me, Asked { lock, subclass, at, .. })) = held {
            me.set_rewait(Some(Rewait { lock, subclass, place: at }));
        }
        // SAFETY: the caller's promise.
        unsafe { self.0.raw.unlock_to_wait(token) };
    }

    fn is_locked(&self) -> bool {
        self.0.raw.is_locked()
    }

    fn requeue_key(&self) -> Option<FutexKey<Local>> {
        self.0.raw.requeue_key()
    }

    fn mark_for_requeued(&self) -> bool {
        self.0.raw.mark_for_requeued()
    }

    #[track_caller]
    fn lock_requeued(&self) -> R::Token {
        let token = self.0.raw.lock_requeued();
        let Some(me) = current() else { return self.0.untracked(Exclusive, token) };
        let mut asked = self.0.asked(Exclusive, 0, Location::caller());
        if let Some(rewait) = me.take_rewait(asked.lock) {
            (asked.subclass, asked.at) = (rewait.subclass, rewait.place);
        }
        self.0.enter(me, asked);
        token
    }
}

/// To the checker it is an acquisition with a deadline.
impl<R: RawInterruptible> RawInterruptible for Checked<R> {}

// SAFETY: as `RawMutex`; the fair release is that of `raw`.
unsafe impl<R: RawMutexFair<Scope = Local>> RawMutexFair for Checked<R> {
    #[inline]
    #[track_caller]
    unsafe fn unlock_fair(&self, token: R::Token) {
        if self.leave() {
            // SAFETY: the caller's promise.
            unsafe { self.0.raw.unlock_fair(token) };
            events::released();
        }
    }
}

impl<R: Metered> Metered for Checked<R> {
    type Meter = R::Meter;

    fn meter(&self) -> &R::Meter {
        self.0.raw.meter()
    }
}

impl<R> Drop for Checked<R> {
    #[track_caller]
    fn drop(&mut self) {
        if self.0.has_holder() {
            self.0.dropped(|_| true, true);
        }
    }
}
