//! The checked locks below the names of parking_lot.

use crate::rwlock::{Patience, RecursiveRwLock};
use ulocks_core::raw::{
    Initial, RawRwLock, RawRwLockDowngrade, RawRwLockFair, RawRwLockUpgrade, RawRwLockUpgradeFair,
};
use ulocks_core::{futex, time::Deadline};
use ulocks_debug::{Access, Checked, CheckedReadToken, CheckedRw};

pub(crate) use ulocks_debug::FaultsAbort;
pub(crate) type Throughput = Checked<ulocks_unfair::RawThroughputMutex>;
pub(crate) type Fair = Checked<ulocks_fair::RawFairMutex>;

impl Initial for RecursiveRwLock {
    const INIT: Self = Self::new();
}

// SAFETY: the methods are those of the lock, which keeps the promise.
unsafe impl RawRwLock for RecursiveRwLock {
    type Scope = futex::Local;
    type ReadToken = ();
    type WriteToken = ();

    fn read(&self) {
        self.read(Patience::Forever);
    }

    fn try_read(&self) -> Option<()> {
        self.read(Patience::Never).then_some(())
    }

    fn read_until(&self, deadline: Deadline) -> Option<()> {
        self.read(Patience::Until(deadline)).then_some(())
    }

    unsafe fn unlock_read(&self, (): ()) {
        // SAFETY: the caller's promise.
        unsafe { self.unlock_read() };
    }

    fn write(&self) {
        self.write(Patience::Forever);
    }

    fn try_write(&self) -> Option<()> {
        self.write(Patience::Never).then_some(())
    }

    fn write_until(&self, deadline: Deadline) -> Option<()> {
        self.write(Patience::Until(deadline)).then_some(())
    }

    unsafe fn unlock_write(&self, (): ()) {
        // SAFETY: the caller's promise.
        unsafe { self.unlock_write() };
    }

    fn is_locked(&self) -> bool {
        self.is_locked()
    }

    fn is_write_locked(&self) -> bool {
        self.is_write_locked()
    }
}

// SAFETY: as above.
unsafe impl RawRwLockDowngrade for RecursiveRwLock {
    unsafe fn downgrade(&self, (): ()) {
        // SAFETY: the caller's promise.
        unsafe { self.downgrade() };
    }
}

// SAFETY: as above; what fails leaves the access as it was.
unsafe impl RawRwLockUpgrade for RecursiveRwLock {
    type UpgradableToken = ();

    fn upgradable(&self) {
        self.upgradable(Patience::Forever);
    }

    fn try_upgradable(&self) -> Option<()> {
        self.upgradable(Patience::Never).then_some(())
    }

    fn upgradable_until(&self, deadline: Deadline) -> Option<()> {
        self.upgradable(Patience::Until(deadline)).then_some(())
    }

    unsafe fn unlock_upgradable(&self, (): ()) {
        // SAFETY: the caller's promise.
        unsafe { self.unlock_upgradable() };
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

    unsafe fn downgrade_upgradable(&self, (): ()) {
        // SAFETY: the caller's promise.
        unsafe { self.downgrade_upgradable() };
    }

    unsafe fn downgrade_to_upgradable(&self, (): ()) {
        // SAFETY: the caller's promise.
        unsafe { self.downgrade_to_upgradable() };
    }
}

// SAFETY: as above; a fair release is a release.
unsafe impl RawRwLockFair for RecursiveRwLock {
    unsafe fn unlock_read_fair(&self, (): ()) {
        // SAFETY: the caller's promise.
        unsafe { self.unlock_read() };
    }

    unsafe fn unlock_write_fair(&self, (): ()) {
        // SAFETY: the caller's promise.
        unsafe { self.unlock_write_fair() };
    }
}

// SAFETY: as above.
unsafe impl RawRwLockUpgradeFair for RecursiveRwLock {
    unsafe fn unlock_upgradable_fair(&self, (): ()) {
        // SAFETY: the caller's promise.
        unsafe { self.unlock_upgradable_fair() };
    }
}

/// A [`RecursiveRwLock`] that is checked, with the same methods.
pub(crate) struct Recursive(CheckedRw<RecursiveRwLock>);

impl Recursive {
    pub const fn new() -> Self {
        Self(CheckedRw::INIT)
    }

    #[track_caller]
    pub fn read(&self, patience: Patience) -> bool {
        match patience {
            Patience::Forever => self.0.read(),
            Patience::Until(deadline) => return self.0.read_until(deadline).is_some(),
            Patience::Never => return self.0.try_read().is_some(),
        };
        true
    }

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
    /// The caller has acquired for reading.
    #[track_caller]
    pub unsafe fn unlock_read(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock_read(CheckedReadToken::new(())) };
    }

    #[track_caller]
    pub fn write(&self, patience: Patience) -> bool {
        match patience {
            Patience::Forever => self.0.write(),
            Patience::Until(deadline) => return self.0.write_until(deadline).is_some(),
            Patience::Never => return self.0.try_write().is_some(),
        }
        true
    }

    /// # Safety
    /// The caller has acquired for writing.
    #[track_caller]
    pub unsafe fn unlock_write(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock_write(()) };
    }

    /// # Safety
    /// The caller has acquired for writing.
    #[track_caller]
    pub unsafe fn unlock_write_fair(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock_write_fair(()) };
    }

    /// # Safety
    /// The caller has acquired for writing.
    #[track_caller]
    pub unsafe fn downgrade(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.0.downgrade(()) };
    }

    #[track_caller]
    pub fn upgradable(&self, patience: Patience) -> bool {
        match patience {
            Patience::Forever => self.0.upgradable(),
            Patience::Until(deadline) => return self.0.upgradable_until(deadline).is_some(),
            Patience::Never => return self.0.try_upgradable().is_some(),
        }
        true
    }

    /// # Safety
    /// The caller has acquired as an upgradable reader.
    #[track_caller]
    pub unsafe fn unlock_upgradable(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock_upgradable(()) };
    }

    /// # Safety
    /// The caller has acquired as an upgradable reader.
    #[track_caller]
    pub unsafe fn unlock_upgradable_fair(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock_upgradable_fair(()) };
    }

    /// # Safety
    /// The caller has acquired as an upgradable reader.
    #[track_caller]
    pub unsafe fn upgrade(&self, patience: Patience) -> bool {
        // SAFETY: the caller's promise; what fails leaves the access as it was.
        unsafe {
            match patience {
                Patience::Forever => self.0.upgrade(()),
                Patience::Until(deadline) => return self.0.upgrade_until((), deadline).is_ok(),
                Patience::Never => return self.0.try_upgrade(()).is_ok(),
            }
        }
        true
    }

    /// # Safety
    /// The caller has acquired as an upgradable reader.
    #[track_caller]
    pub unsafe fn downgrade_upgradable(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.0.downgrade_upgradable(()) };
    }

    /// # Safety
    /// The caller has acquired for writing.
    #[track_caller]
    pub unsafe fn downgrade_to_upgradable(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.0.downgrade_to_upgradable(()) };
    }

    pub fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    pub fn is_write_locked(&self) -> bool {
        self.0.is_write_locked()
    }
}
