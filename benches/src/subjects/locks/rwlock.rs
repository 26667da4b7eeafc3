//! Reader-writer locks in the registry of all locks, for the programs that know of a share of
//! readers.

use super::{Lock, Scope};
use crate::subjects::rwlocks::{Rank, RwLock};
use anyhow::{Result, ensure};
use std::mem::MaybeUninit;
use ulocks_core::policy::Shared;
use ulocks_psrwlock::{BULK, PsRwLockWith, PsRwLockWriteGuard, Sifted, URGENT};

/// A reader-writer lock, whose writer is the holder, and whose readers are those of
/// class `Bulk`.
#[derive(Debug)]
#[repr(transparent)]
pub struct Rw<L>(L);

impl<L: RwLock> Lock for Rw<L> {
    const SHARED_MODE: bool = true;
    const COUNTABLE: bool = L::COUNTABLE;

    unsafe fn place(place: *mut Self, scope: Scope) -> Result<()> {
        ensure!(
            scope == Scope::Threads,
            "this reader-writer lock works in one process only; allowed: threads"
        );
        // SAFETY: `Self` is transparent around `L`; the place is valid for writes and aligned, by
        // the contract, and `MaybeUninit` may be uninitialised.
        L::place(unsafe { &mut *place.cast::<MaybeUninit<L>>() })
    }

    type Held<'a> = L::Write<'a>;

    #[inline]
    fn acquire(&self) -> L::Write<'_> {
        self.0.write(true).expect("it waits")
    }

    #[inline]
    fn try_acquire(&self) -> Option<L::Write<'_>> {
        self.0.write(false)
    }

    #[inline]
    fn shared<R>(&self, f: impl FnOnce() -> R) -> R {
        let _held = self.0.read(Rank::Bulk, true);
        f()
    }
}

/// The family's lock between processes: the classes that it has there are two.
#[derive(Debug)]
pub struct PsrwShared(PsRwLockWith<(), Between>);

type Between = Sifted<{ BULK | URGENT }, Shared>;

impl Lock for PsrwShared {
    const SHARED_MODE: bool = true;

    fn unlocked(_: Scope) -> Result<Self> {
        Ok(Self(PsRwLockWith::new(())))
    }

    type Held<'a> = PsRwLockWriteGuard<'a, (), Between>;

    #[inline]
    fn acquire(&self) -> Self::Held<'_> {
        self.0.write()
    }

    #[inline]
    fn try_acquire(&self) -> Option<Self::Held<'_>> {
        self.0.try_write()
    }

    #[inline]
    fn shared<R>(&self, f: impl FnOnce() -> R) -> R {
        let _held = self.0.read();
        f()
    }
}
