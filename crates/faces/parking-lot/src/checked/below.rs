//! The checked locks below the names of parking_lot.

use crate::rwlock::{Patience, RecursiveRwLock};
use ulocks_core::raw::{
    Initial, RawRwLock, RawRwLockDowngrade, RawRwLockFair, RawRwLockUpgrade, RawRwLockUpgradeFair,
};
use ulocks_core::{futex, time::Deadline};
use ulocks_debug::{Access, Checked, CheckedReadToken, CheckedUpgradableToken, CheckedRw};

pub(crate) use ulocks_debug::FaultsAbort;
pub(crate) type Throughput = Checked<ulocks_unfair::RawThroughputMutex>;
pub(crate) type Fair = Checked<ulocks_fair::RawFairMutex>;

impl Initial for RecursiveRwLock {
    const INIT: Self = Self::new();
}

macro_rules! acquires {
    ($acquire:ident, $attempt:ident, $until:ident) => {
        fn $acquire(&self) {
            self.$acquire(Patience::Forever);
        }

        fn $attempt(&self) -> Option<()> {
            self.$acquire(Patience::Never).then_some(())
        }

        fn $until(&self, deadline: Deadline) -> Option<()> {
            self.$acquire(Patience::Until(deadline)).then_some(())
        }
    };
}

/// What ends an access or makes another of it.
macro_rules! leaves {
    ($($method:ident = $leave:ident;)*) => { $(
        unsafe fn $method(&self, (): ()) {
            // SAFETY: the caller's promise.
            unsafe { self.$leave() };
        }
    )* };
}

// SAFETY: the methods are those of the lock, which keeps the promise.
unsafe impl RawRwLock for RecursiveRwLock {
    type Scope = futex::Local;
    type ReadToken = ();
    type WriteToken = ();

    acquires!(read, try_read, read_until);
    acquires!(write, try_write, write_until);
    leaves! { unlock_read = unlock_read; unlock_write = unlock_write; }

    fn is_locked(&self) -> bool {
        self.is_locked()
    }

    fn is_write_locked(&self) -> bool {
        self.is_write_locked()
    }
}

// SAFETY: as above.
unsafe impl RawRwLockDowngrade for RecursiveRwLock {
    leaves! { downgrade = downgrade; }
}

// SAFETY: as above; what fails leaves the access as it was.
unsafe impl RawRwLockUpgrade for RecursiveRwLock {
    type UpgradableToken = ();

    acquires!(upgradable, try_upgradable, upgradable_until);
    leaves! {
        unlock_upgradable = unlock_upgradable;
        downgrade_upgradable = downgrade_upgradable;
        downgrade_to_upgradable = downgrade_to_upgradable;
    }

    unsafe fn upgrade(&self, (): ()) {
        // SAFETY: the caller's promise.
        unsafe { self.upgrade(Patience::Forever) };
    }

    unsafe fn try_upgrade(&self, (): ()) -> Result<(), ()> {
        // SAFETY: the caller's promise.
        unsafe { self.upgrade(Patience::Never) }.then_some(()).ok_or(())
    }

    unsafe fn upgrade_until(&self, (): (), deadline: Deadline) -> Result<(), ()> {
        // SAFETY: the caller's promise.
        unsafe { self.upgrade(Patience::Until(deadline)) }.then_some(()).ok_or(())
    }
}

// SAFETY: as above; a fair release is a release.
unsafe impl RawRwLockFair for RecursiveRwLock {
    leaves! { unlock_read_fair = unlock_read; unlock_write_fair = unlock_write_fair; }
}

// SAFETY: as above.
unsafe impl RawRwLockUpgradeFair for RecursiveRwLock {
    leaves! { unlock_upgradable_fair = unlock_upgradable_fair; }
}

macro_rules! patiently {
    ($acquire:ident, $attempt:ident, $until:ident) => {
        #[track_caller]
        pub fn $acquire(&self, patience: Patience) -> bool {
            match patience {
                Patience::Forever => _ = self.0.$acquire(),
                Patience::Until(deadline) => return self.0.$until(deadline).is_some(),
                Patience::Never => return self.0.$attempt().is_some(),
            }
            true
        }
    };
}

/// What ends an access or makes another of it, by the token of that access.
macro_rules! by_token {
    ($token:expr => $($method:ident)*) => { $(
        /// # Safety
        /// The caller has acquired in this way.
        #[track_caller]
        pub unsafe fn $method(&self) {
            // SAFETY: the caller's promise.
            unsafe { self.0.$method($token) };
        }
    )* };
}

/// A [`RecursiveRwLock`] that is checked, with the same methods.
pub(crate) struct Recursive(CheckedRw<RecursiveRwLock>);

impl Recursive {
    pub const fn new() -> Self {
        Self(CheckedRw::INIT)
    }

    patiently!(read, try_read, read_until);
    patiently!(write, try_write, write_until);
    patiently!(upgradable, try_upgradable, upgradable_until);
    by_token!(CheckedReadToken::new(()) => unlock_read);
    by_token!(() => unlock_write unlock_write_fair downgrade downgrade_to_upgradable);
    by_token!(CheckedUpgradableToken::new(()) => unlock_upgradable unlock_upgradable_fair downgrade_upgradable);

    #[track_caller]
    pub fn read_again(&self, patience: Patience) -> bool {
        type Lock = RecursiveRwLock;
        let attempt = |raw: &Lock| raw.read_again(Patience::Never).then_some(());
        let wait = |raw: &Lock| _ = raw.read_again(Patience::Forever);
        let until = match patience {
            Patience::Until(deadline) => {
                Some(move |raw: &Lock| raw.read_again(Patience::Until(deadline)).then_some(()))
            }
            _ => None,
        };
        // SAFETY: all three acquire the lock that they get.
        unsafe {
            match patience {
                Patience::Forever => _ = self.0.read_as(Access::Recursive, attempt, wait),
                _ => return self.0.try_read_as(Access::Recursive, attempt, until).is_some(),
            }
        }
        true
    }

    /// # Safety
    /// The caller has acquired as an upgradable reader.
    #[track_caller]
    pub unsafe fn upgrade(&self, patience: Patience) -> bool {
        let token = CheckedUpgradableToken::new(());
        // SAFETY: the caller's promise; what fails leaves the access as it was.
        unsafe {
            match patience {
                Patience::Forever => self.0.upgrade(token),
                Patience::Until(deadline) => return self.0.upgrade_until(token, deadline).is_ok(),
                Patience::Never => return self.0.try_upgrade(token).is_ok(),
            }
        }
        true
    }

    pub fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    pub fn is_write_locked(&self) -> bool {
        self.0.is_write_locked()
    }
}
