//! The peers written in Rust, no lock at all, and reader-writer locks as mutexes.

use super::{Lock, Scope};
use crate::subjects::rwlocks::{Rank, RwLock};
use anyhow::{Result, ensure};
use arc_swap::ArcSwap;
use std::mem::MaybeUninit;
use std::sync::{Arc, PoisonError};
use ulocks_core::policy::Shared;
use ulocks_psrwlock::{BULK, PsRwLockWith, PsRwLockWriteGuard, Sifted, URGENT};

/// No lock: what the workload itself allows.
pub struct NoLock;

impl Lock for NoLock {
    const EXCLUDES: bool = false;
    const SHARED_MODE: bool = true;

    fn place(place: &mut MaybeUninit<Self>, _: Scope) -> Result<()> {
        place.write(Self);
        Ok(())
    }

    type Held<'a> = ();

    #[inline]
    fn acquire(&self, _: bool) -> Option<()> {
        Some(())
    }
}

/// A pointer that readers load and writers replace: for scale, since it keeps no reader out.
pub struct Swapped(ArcSwap<u64>);

/// A writer, which replaces the value when it is dropped.
pub struct Replaces<'a>(&'a ArcSwap<u64>);

impl Drop for Replaces<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(Arc::new(0));
    }
}

impl Lock for Swapped {
    const EXCLUDES: bool = false;
    const SHARED_MODE: bool = true;

    fn place(place: &mut MaybeUninit<Self>, scope: Scope) -> Result<()> {
        ensure!(scope == Scope::Threads, "arc-swap works in one process only; allowed: threads");
        place.write(Self(ArcSwap::from_pointee(0)));
        Ok(())
    }

    type Held<'a> = Replaces<'a>;

    #[inline]
    fn acquire(&self, _: bool) -> Option<Replaces<'_>> {
        Some(Replaces(&self.0))
    }

    #[inline]
    fn shared<R>(&self, f: impl FnOnce() -> R) -> R {
        let _held = self.0.load();
        f()
    }
}

/// Locks with guards: how one is locked and tried, and how readers lock it if they can.
macro_rules! guarded {
    ($($(#[$doc:meta])* $name:ident($lock:ty): $guard:ty, |$it:ident| $wait:expr, $try:expr $(, $read:expr)?;)*) => {$(
        $(#[$doc])*
        pub struct $name($lock);

        impl Lock for $name {
            const SHARED_MODE: bool = !<[&str]>::is_empty(&[$(stringify!($read))?]);

            fn place(place: &mut MaybeUninit<Self>, _: Scope) -> Result<()> {
                place.write(Self(<$lock>::new(())));
                Ok(())
            }

            type Held<'a> = $guard;

            #[inline]
            fn acquire(&self, wait: bool) -> Option<Self::Held<'_>> {
                let $it = &self.0;
                if wait { Some($wait) } else { $try }
            }

            $(#[inline]
            fn shared<R>(&self, f: impl FnOnce() -> R) -> R {
                let $it = &self.0;
                let _held = $read;
                f()
            })?
        }
    )*};
}

/// What the family's reader-writer lock has between processes: two classes.
type Between = Sifted<{ BULK | URGENT }, Shared>;

guarded! {
    /// `std::sync::Mutex`.
    Std(std::sync::Mutex<()>): std::sync::MutexGuard<'a, ()>,
        |it| it.lock().unwrap_or_else(PoisonError::into_inner), it.try_lock().ok();
    /// parking_lot 0.13.
    ParkingLot(parking_lot::Mutex<()>): parking_lot::MutexGuard<'a, ()>, |it| it.lock(), it.try_lock();
    /// usync.
    Usync(usync::Mutex<()>): usync::MutexGuard<'a, ()>, |it| it.lock(), it.try_lock();
    /// The family's reader-writer lock between processes.
    PsrwShared(PsRwLockWith<(), Between>): PsRwLockWriteGuard<'a, (), Between>,
        |it| it.write(), it.try_write(), it.read();
}

/// A reader-writer lock, whose writer is the holder, and whose readers are those of
/// class `Bulk`.
#[derive(Debug)]
#[repr(transparent)]
pub struct Rw<L>(L);

impl<L: RwLock> Lock for Rw<L> {
    const SHARED_MODE: bool = true;
    const COUNTABLE: bool = L::COUNTABLE;

    fn place(place: &mut MaybeUninit<Self>, scope: Scope) -> Result<()> {
        let known = scope == Scope::Threads;
        ensure!(known, "this reader-writer lock works in one process only; allowed: threads");
        // SAFETY: `Self` is transparent around `L`, and `MaybeUninit` may be uninitialised.
        L::place(unsafe { &mut *place.as_mut_ptr().cast::<MaybeUninit<L>>() })
    }

    type Held<'a> = L::Write<'a>;

    #[inline]
    fn acquire(&self, wait: bool) -> Option<L::Write<'_>> {
        self.0.write(wait)
    }

    #[inline]
    fn shared<R>(&self, f: impl FnOnce() -> R) -> R {
        let _held = self.0.read(Rank::Bulk, true);
        f()
    }
}
