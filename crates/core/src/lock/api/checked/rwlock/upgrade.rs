//! Guards that turn into one another, as in lock_api.

use super::super::Token;
use super::super::access::{Exclusive, Shared, Upgradable, Watched};
use super::super::guard::{Guard, Hold};
use crate::lock::traits::{RawRwLockDowngrade, RawRwLockUpgrade};
use crate::sys::time::Deadline;
use core::time::Duration;
use std::time::Instant;

impl<H: Hold<L>, L: RawRwLockDowngrade> Guard<H, L, Exclusive> {
    /// Turns exclusive access into shared access; no writer gets in between.
    #[track_caller]
    pub fn downgrade(s: Self) -> Guard<H, L, Shared> {
        let (rwlock, token) = Self::into_parts(s);
        let token = rwlock.watched().weaken::<Exclusive, Shared>(token, |lock, token| {
            // SAFETY: the token is of the guard just taken apart.
            unsafe { lock.downgrade(token) }
        });
        Guard::new(rwlock, token)
    }
}

impl<H: Hold<L>, L: RawRwLockUpgrade> Guard<H, L, Exclusive> {
    /// Turns exclusive access into shared access that can become exclusive again; no writer gets in
    /// between.
    #[track_caller]
    pub fn downgrade_to_upgradable(s: Self) -> Guard<H, L, Upgradable> {
        let (rwlock, token) = Self::into_parts(s);
        // SAFETY: the token is of the guard just taken apart.
        let token = unsafe { to_upgradable(rwlock.watched(), token) };
        Guard::new(rwlock, token)
    }
}

/// # Safety
/// The caller holds `lock` alone by `token`, and uses no exclusive reference to the data any more.
#[track_caller]
unsafe fn to_upgradable<L: RawRwLockUpgrade>(
    lock: &Watched<L>,
    token: Token<L::WriteToken>,
) -> Token<L::UpgradableToken> {
    lock.weaken::<Exclusive, Upgradable>(token, |lock, token| {
        // SAFETY: the caller's promise.
        unsafe { lock.downgrade_to_upgradable(token) }
    })
}

/// Which of the raw lock's upgrades.
enum Patience {
    Endless,
    None,
    For(Duration),
    Until(Instant),
}

/// # Safety
/// The caller holds `lock` upgradable by `token`, and uses no reference to the data any more.
#[track_caller]
unsafe fn upgrade<L: RawRwLockUpgrade>(
    lock: &Watched<L>,
    token: Token<L::UpgradableToken>,
    patience: &Patience,
) -> Result<Token<L::WriteToken>, Token<L::UpgradableToken>> {
    let upgraded = lock.upgrade(token, |lock, token| {
        if let Patience::Endless = patience {
            // SAFETY: the caller's promise.
            return Ok(unsafe { lock.upgrade(token) });
        }
        // SAFETY: the caller's promise.
        let token = match unsafe { lock.try_upgrade(token) } {
            Err(token) => token,
            upgraded => return upgraded,
        };
        let deadline = match *patience {
            Patience::Endless | Patience::None => return Err(token),
            Patience::For(timeout) => Deadline::after(timeout),
            Patience::Until(timeout) => Deadline::at(timeout),
        };
        // SAFETY: the lock is still held by the token that came back.
        unsafe { lock.upgrade_until(token, deadline) }
    });
    upgraded.map_err(Token::new)
}

impl<H: Hold<L>, L: RawRwLockUpgrade> Guard<H, L, Upgradable> {
    #[track_caller]
    fn upgrade_with(s: Self, patience: &Patience) -> Result<Guard<H, L, Exclusive>, Self> {
        let (rwlock, token) = Self::into_parts(s);
        // SAFETY: the token is of the guard just taken apart.
        match unsafe { upgrade(rwlock.watched(), token, patience) } {
            Ok(token) => Ok(Guard::new(rwlock, token)),
            Err(token) => Err(Guard::new(rwlock, token)),
        }
    }

    #[track_caller]
    fn with_upgraded_with<R>(&mut self, patience: &Patience, f: impl FnOnce(&mut H::Data) -> R) -> Option<R> {
        Self::replace(self, |rwlock, token| {
            // SAFETY: the token is of this guard, which is borrowed exclusively.
            match unsafe { upgrade(rwlock.watched(), token, patience) } {
                Ok(token) => {
                    // SAFETY: the lock is held alone.
                    let result = f(unsafe { &mut *rwlock.data() });
                    // SAFETY: the token is of the upgrade above, and the borrow for `f` has ended.
                    (unsafe { to_upgradable(rwlock.watched(), token) }, Some(result))
                }
                Err(token) => (token, None),
            }
        })
    }

    /// Turns the access into exclusive access, waiting for the readers to leave; no writer gets in
    /// between.
    #[track_caller]
    pub fn upgrade(s: Self) -> Guard<H, L, Exclusive> {
        Self::upgrade_with(s, &Patience::Endless).ok().expect("an upgrade without a deadline")
    }

    /// Turns the access into exclusive access if there are no readers.
    ///
    /// # Errors
    /// The guard, if there are.
    #[track_caller]
    pub fn try_upgrade(s: Self) -> Result<Guard<H, L, Exclusive>, Self> {
        Self::upgrade_with(s, &Patience::None)
    }

    /// Turns the access into exclusive access, or gives up after `timeout`.
    ///
    /// # Errors
    /// The guard, if there were readers until then.
    #[track_caller]
    pub fn try_upgrade_for(s: Self, timeout: Duration) -> Result<Guard<H, L, Exclusive>, Self> {
        Self::upgrade_with(s, &Patience::For(timeout))
    }

    /// Turns the access into exclusive access, or gives up at `timeout`.
    ///
    /// # Errors
    /// The guard, if there were readers until then.
    #[track_caller]
    pub fn try_upgrade_until(s: Self, timeout: Instant) -> Result<Guard<H, L, Exclusive>, Self> {
        Self::upgrade_with(s, &Patience::Until(timeout))
    }

    /// Turns the access into a reader's.
    #[track_caller]
    pub fn downgrade(s: Self) -> Guard<H, L, Shared> {
        let (rwlock, token) = Self::into_parts(s);
        let token = rwlock.watched().weaken::<Upgradable, Shared>(token, |lock, token| {
            // SAFETY: the token is of the guard just taken apart.
            unsafe { lock.downgrade_upgradable(token) }
        });
        Guard::new(rwlock, token)
    }

    /// Runs `f` with exclusive access, for which it waits.
    #[track_caller]
    pub fn with_upgraded<R>(&mut self, f: impl FnOnce(&mut H::Data) -> R) -> R {
        self.with_upgraded_with(&Patience::Endless, f).expect("an upgrade without a deadline")
    }

    /// Runs `f` with exclusive access, if there are no readers.
    #[track_caller]
    pub fn try_with_upgraded<R>(&mut self, f: impl FnOnce(&mut H::Data) -> R) -> Option<R> {
        self.with_upgraded_with(&Patience::None, f)
    }

    /// Runs `f` with exclusive access, for which it waits until `timeout` has passed.
    #[track_caller]
    pub fn try_with_upgraded_for<R>(
        &mut self,
        timeout: Duration,
        f: impl FnOnce(&mut H::Data) -> R,
    ) -> Option<R> {
        self.with_upgraded_with(&Patience::For(timeout), f)
    }

    /// Runs `f` with exclusive access, for which it waits until `timeout`.
    #[track_caller]
    pub fn try_with_upgraded_until<R>(
        &mut self,
        timeout: Instant,
        f: impl FnOnce(&mut H::Data) -> R,
    ) -> Option<R> {
        self.with_upgraded_with(&Patience::Until(timeout), f)
    }
}
