//! The traits of a raw reader-writer lock.

use super::{CheckedReadToken, CheckedRw, CheckedUpgradableToken};
use crate::rules::current::current;
use crate::rules::waiting::waiting;
use crate::seen::access::Access;
use crate::seen::events;
use crate::seen::report::Place;
use crate::seen::thread::Record;
use core::panic::Location;
use ulocks_core::futex::Local;
use ulocks_core::raw::{
    Metered, RawInterruptible, RawRwLock, RawRwLockDowngrade, RawRwLockFair, RawRwLockUpgrade,
    RawRwLockUpgradeFair,
};
use ulocks_core::time::Deadline;

const READ: Access = Access::Read(0);

/// No wait, of the type that [`CheckedRw::attempt`] asks for.
fn no_wait<R, K>() -> Option<fn(&R) -> Option<K>> {
    None
}

/// To the checker it is an acquisition with a deadline.
impl<R: RawRwLock<Scope = Local> + RawInterruptible> RawInterruptible for CheckedRw<R> {}

// SAFETY: every token is one of `raw`, from an acquisition of `raw` that has just returned, and is
// given back to `raw` once at most. So exclusion and order are those of `raw`. A panic happens
// before the acquisition or the release, or, of two holders, in a lock that is broken.
unsafe impl<R: RawRwLock<Scope = Local>> RawRwLock for CheckedRw<R> {
    type Scope = Local;
    type ReadToken = CheckedReadToken<R::ReadToken>;
    type WriteToken = R::WriteToken;

    #[inline]
    #[track_caller]
    fn read(&self) -> Self::ReadToken {
        // SAFETY: both are acquisitions of the lock that they get.
        unsafe { self.read_as(READ, R::try_read, R::read) }
    }

    #[inline]
    #[track_caller]
    fn try_read(&self) -> Option<Self::ReadToken> {
        // SAFETY: as in `read`.
        unsafe { self.try_read_as(READ, R::try_read, no_wait::<R, _>()) }
    }

    #[track_caller]
    fn read_until(&self, deadline: Deadline) -> Option<Self::ReadToken> {
        // SAFETY: as in `read`.
        unsafe { self.try_read_as(READ, R::try_read, Some(|raw: &R| raw.read_until(deadline))) }
    }

    #[inline]
    #[track_caller]
    unsafe fn unlock_read(&self, token: Self::ReadToken) {
        if self.leave_read(&token) {
            // SAFETY: the caller's promise.
            unsafe { self.0.raw.unlock_read(token.token) };
            events::released();
        }
    }

    #[inline]
    #[track_caller]
    fn write(&self) -> R::WriteToken {
        self.acquire((Access::Write, 0), R::try_write, R::write)
    }

    #[inline]
    #[track_caller]
    fn try_write(&self) -> Option<R::WriteToken> {
        self.attempt(Access::Write, R::try_write, no_wait::<R, _>())
    }

    #[track_caller]
    fn write_until(&self, deadline: Deadline) -> Option<R::WriteToken> {
        self.attempt(Access::Write, R::try_write, Some(|raw: &R| raw.write_until(deadline)))
    }

    #[inline]
    #[track_caller]
    unsafe fn unlock_write(&self, token: R::WriteToken) {
        if self.leave(Access::Write, true) {
            // SAFETY: the caller's promise.
            unsafe { self.0.raw.unlock_write(token) };
            events::released();
        }
    }

    fn is_locked(&self) -> bool {
        self.0.raw.is_locked()
    }

    fn is_write_locked(&self) -> bool {
        self.0.raw.is_write_locked()
    }
}

// SAFETY: as `RawRwLock`; the downgrade is that of `raw`.
unsafe impl<R: RawRwLockDowngrade<Scope = Local>> RawRwLockDowngrade for CheckedRw<R> {
    #[track_caller]
    unsafe fn downgrade(&self, token: R::WriteToken) -> Self::ReadToken {
        let is_task = self.0.turn(current(), Access::Write, READ, Location::caller());
        // SAFETY: the caller's promise.
        let token = unsafe { self.0.raw.downgrade(token) };
        CheckedReadToken { token, access: Some(READ), is_task }
    }
}

/// Releases an upgradable access when dropped: what consumes an acquisition and panics has released
/// it.
struct Release<'a, R: RawRwLockUpgrade<Scope = Local>> {
    lock: &'a CheckedRw<R>,
    token: Option<CheckedUpgradableToken<R::UpgradableToken>>,
}

impl<R: RawRwLockUpgrade<Scope = Local>> Drop for Release<'_, R> {
    fn drop(&mut self) {
        if let Some(token) = self.token.take() {
            // SAFETY: the token of the access that its owner has given up.
            unsafe { self.lock.unlock_upgradable(token) };
        }
    }
}

impl<R: RawRwLockUpgrade<Scope = Local>> CheckedRw<R> {
    /// Enters an upgrade that was just made.
    #[track_caller]
    fn upgraded(&self, me: Option<&'static Record>, is_task: bool, at: Place) {
        if is_task {
            self.0.untracked(Access::Write, ());
        } else {
            self.0.turn(me, Access::Upgradable, Access::Write, at);
        }
    }
}

// SAFETY: as `RawRwLock`; all changes of an access are those of `raw`, and what fails there leaves
// the access as it was.
unsafe impl<R: RawRwLockUpgrade<Scope = Local>> RawRwLockUpgrade for CheckedRw<R> {
    type UpgradableToken = CheckedUpgradableToken<R::UpgradableToken>;

    #[inline]
    #[track_caller]
    fn upgradable(&self) -> Self::UpgradableToken {
        let token = self.acquire((Access::Upgradable, 0), R::try_upgradable, R::upgradable);
        CheckedUpgradableToken::new(token)
    }

    #[inline]
    #[track_caller]
    fn try_upgradable(&self) -> Option<Self::UpgradableToken> {
        let token = self.attempt(Access::Upgradable, R::try_upgradable, no_wait::<R, _>())?;
        Some(CheckedUpgradableToken::new(token))
    }

    #[track_caller]
    fn upgradable_until(&self, deadline: Deadline) -> Option<Self::UpgradableToken> {
        let wait = Some(|raw: &R| raw.upgradable_until(deadline));
        Some(CheckedUpgradableToken::new(self.attempt(Access::Upgradable, R::try_upgradable, wait)?))
    }

    #[inline]
    #[track_caller]
    unsafe fn unlock_upgradable(&self, token: Self::UpgradableToken) {
        if self.leave_upgradable(&token) {
            // SAFETY: the caller's promise.
            unsafe { self.0.raw.unlock_upgradable(token.token) };
            events::released();
        }
    }

    #[track_caller]
    unsafe fn upgrade(&self, token: Self::UpgradableToken) -> R::WriteToken {
        let (at, is_task) = (Location::caller(), token.is_task);
        let Some(me) = current().filter(|_| !is_task) else {
            // SAFETY: the caller's promise.
            let token = unsafe { self.0.raw.upgrade(token.token) };
            self.upgraded(None, is_task, at);
            return token;
        };
        let asked = self.0.asked(Access::Upgrade, 0, at);
        let mut release = Release { lock: self, token: Some(token) };
        self.0.check(me, asked);
        // SAFETY: the caller's promise. A failed attempt gives the token back.
        let upgrade = |token: Self::UpgradableToken| unsafe { self.0.raw.try_upgrade(token.token) };
        let token = match upgrade(release.token.take().expect("it is there until here")) {
            Ok(token) => token,
            Err(token) => {
                release.token = Some(CheckedUpgradableToken::new(token));
                waiting(me, &asked, false, || {
                    let token = release.token.take().expect("it was put back");
                    // SAFETY: the caller's promise.
                    unsafe { self.0.raw.upgrade(token.token) }
                })
            }
        };
        self.upgraded(Some(me), is_task, at);
        token
    }

    #[track_caller]
    unsafe fn try_upgrade(
        &self,
        token: Self::UpgradableToken,
    ) -> Result<R::WriteToken, Self::UpgradableToken> {
        let CheckedUpgradableToken { token, is_task } = token;
        // SAFETY: the caller's promise.
        let upgraded = unsafe { self.0.raw.try_upgrade(token) };
        let token = upgraded.map_err(|token| CheckedUpgradableToken { token, is_task })?;
        self.upgraded(current(), is_task, Location::caller());
        Ok(token)
    }

    #[track_caller]
    unsafe fn upgrade_until(
        &self,
        token: Self::UpgradableToken,
        deadline: Deadline,
    ) -> Result<R::WriteToken, Self::UpgradableToken> {
        let at = Location::caller();
        let CheckedUpgradableToken { token, is_task } = token;
        // SAFETY: the caller's promise.
        let upgrade = || unsafe { self.0.raw.upgrade_until(token, deadline) };
        let upgraded = match current().filter(|_| !is_task) {
            Some(me) => waiting(me, &self.0.asked(Access::Upgrade, 0, at), true, upgrade),
            None => upgrade(),
        };
        let token = upgraded.map_err(|token| CheckedUpgradableToken { token, is_task })?;
        self.upgraded(current(), is_task, at);
        Ok(token)
    }

    #[track_caller]
    unsafe fn downgrade_upgradable(&self, token: Self::UpgradableToken) -> Self::ReadToken {
        let CheckedUpgradableToken { token, is_task } = token;
        if !is_task {
            self.0.turn(current(), Access::Upgradable, READ, Location::caller());
        }
        // SAFETY: the caller's promise.
        let token = unsafe { self.0.raw.downgrade_upgradable(token) };
        CheckedReadToken { token, access: Some(READ), is_task }
    }

    #[track_caller]
    unsafe fn downgrade_to_upgradable(&self, token: R::WriteToken) -> Self::UpgradableToken {
        let is_task = self.0.turn(current(), Access::Write, Access::Upgradable, Location::caller());
        // SAFETY: the caller's promise.
        CheckedUpgradableToken { token: unsafe { self.0.raw.downgrade_to_upgradable(token) }, is_task }
    }
}

// SAFETY: as `RawRwLock`; the fair releases are those of `raw`.
unsafe impl<R: RawRwLockFair<Scope = Local>> RawRwLockFair for CheckedRw<R> {
    /// To the checker it is a release, and a wait for the lock in the same way.
    #[track_caller]
    unsafe fn bump_read(&self, token: Self::ReadToken) -> Self::ReadToken {
        let (access, is_task) = (token.access, token.is_task);
        if !self.leave_read(&token) {
            return token;
        }
        // SAFETY: the caller's promise.
        let bump = |raw: &R| unsafe { raw.bump_read(token.token) };
        if is_task {
            return CheckedReadToken { token: bump(&self.0.raw), access, is_task };
        }
        // SAFETY: `bump` returns the token of an acquisition of the lock that it gets.
        let token = unsafe { self.read_as(access.unwrap_or(READ), |_| None, bump) };
        CheckedReadToken { access, ..token }
    }

    #[inline]
    #[track_caller]
    unsafe fn unlock_read_fair(&self, token: Self::ReadToken) {
        if self.leave_read(&token) {
            // SAFETY: the caller's promise.
            unsafe { self.0.raw.unlock_read_fair(token.token) };
            events::released();
        }
    }

    #[inline]
    #[track_caller]
    unsafe fn unlock_write_fair(&self, token: R::WriteToken) {
        if self.leave(Access::Write, true) {
            // SAFETY: the caller's promise.
            unsafe { self.0.raw.unlock_write_fair(token) };
            events::released();
        }
    }
}

// SAFETY: as `RawRwLockUpgrade`; the fair release is that of `raw`.
unsafe impl<R: RawRwLockUpgradeFair<Scope = Local>> RawRwLockUpgradeFair for CheckedRw<R> {
    #[inline]
    #[track_caller]
    unsafe fn unlock_upgradable_fair(&self, token: Self::UpgradableToken) {
        if self.leave_upgradable(&token) {
            // SAFETY: the caller's promise.
            unsafe { self.0.raw.unlock_upgradable_fair(token.token) };
            events::released();
        }
    }
}

impl<R: RawRwLock<Scope = Local> + Metered> Metered for CheckedRw<R> {
    type Meter = R::Meter;

    fn meter(&self) -> &R::Meter {
        self.0.raw.meter()
    }
}
