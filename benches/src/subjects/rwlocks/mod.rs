//! Reader-writer locks under test: one trait, and every lock by name.
//!
//! A subject has *classes* of readers. `Bulk` is the ordinary reader, of long sections; `Urgent`
//! the thread that must not wait for them; `Nested` a reader on a thread that may hold a lower
//! class already; `Handler` a reader in a signal handler. A lock that does not know of classes, as
//! none of the peers does, has one kind of reader, which plays the thread classes all alike. It is
//! not read in handlers at all, unless every thread blocks the signals for as long as it wants or
//! has the lock ([`Masked`]), which is what one does with such a lock.
//!
//! [`RwLock`] is what a lock implements to be measured, and a line in the list of entries is all
//! that it needs beside it. [`Subject`] is a lock without its type.

mod family;
pub mod mask;
mod peers;
mod timed;

pub use family::{Psrw, PsrwCentral, PsrwHandler, PsrwTimed};
pub use mask::Masked;
pub use peers::{ParkingLot, Pthread, Sharded, Std, Usync};
use timed::Placed;
pub use timed::{Ask, Read, Subject};

use anyhow::{Result, anyhow};
use serde::{Deserialize, Serialize};
use std::mem::MaybeUninit;
use std::sync::LazyLock;

/// A reader-writer lock that can be measured. It lives where it is placed.
pub trait RwLock: Send + Sync + Sized + 'static {
    /// Whether there is a class `Nested`. Where there is none, no thread plays it.
    const NESTED: bool = false;
    /// Whether all its ways into the kernel lead through libc's `syscall`, where
    /// [`futexes`](crate::run::syscalls) counts them.
    const COUNTABLE: bool = true;
    /// Whether it notes how long it keeps signals off, with [`mask`].
    const TIMED_MASK: bool = false;
    /// Where it can be read in signal handlers that interrupt its users: installs the handler of a
    /// signal for the whole process, which is wrapped as the lock demands and stays.
    const INSTALL: Option<fn(signal: i32) -> Result<()>> = None;

    /// Creates an unlocked lock where it stays.
    fn place(place: &mut MaybeUninit<Self>) -> Result<()>;

    /// Holding the lock alone.
    type Write<'a>;
    /// Holding it as a reader of a class that is a thread.
    type Read<'a>;

    /// Locks for writing. None only if it was not to `wait`.
    fn write(&self, wait: bool) -> Option<Self::Write<'_>>;
    /// Locks for reading in a class, or in `Bulk` where there is no such class. None only if it was
    /// not to `wait`.
    fn read(&self, rank: Rank, wait: bool) -> Option<Self::Read<'_>>;
}

/// Classes that are threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rank {
    /// Ordinary.
    Bulk,
    /// In a hurry.
    Urgent,
    /// On a thread that may hold a lower class.
    Nested,
}

/// A reader-writer lock by name.
pub type Entry = crate::subjects::Entry<Traits>;

/// What is known of a reader-writer lock.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// Whether there is a class `Nested`.
    pub nested: bool,
    /// Whether it says how long it keeps signals off.
    pub timed_mask: bool,
    install: Option<fn(i32) -> Result<()>>,
    /// A new lock, which stays until the process ends: it carries out one trial.
    pub place: fn() -> Result<&'static dyn Subject>,
}

impl crate::subjects::Kind for Traits {
    const WHAT: &'static str = "reader-writer lock";

    fn entries() -> &'static [Entry] {
        static ALL: LazyLock<Vec<Entry>> = LazyLock::new(|| {
            vec![
                entry::<Std>("std-rw", "std::sync::RwLock"),
                entry::<ParkingLot>("parking_lot-rw", "parking_lot 0.13 RwLock"),
                entry::<Pthread>("pthread-rw", "pthread_rwlock_t, readers first"),
                entry::<Usync>("usync-rw", "usync RwLock"),
                entry::<Sharded>("sharded-rw", "crossbeam ShardedLock"),
                entry::<Masked<Std>>("std-rw-masked", "std-rw, signals blocked from lock to unlock"),
                entry::<Masked<ParkingLot>>("parking_lot-rw-masked", "parking_lot-rw, signals blocked"),
                entry::<Masked<Pthread>>("pthread-rw-masked", "pthread-rw, signals blocked"),
                entry::<Psrw>("psrw", "ulocks PsRwLock: Bulk, Urgent, Nested"),
                entry::<PsrwHandler>("psrw-handler", "ulocks PsRwLock: Bulk, Urgent, Handler, soft mask"),
                entry::<PsrwTimed>("psrw-timed", "psrw-handler, whose mask is timed"),
                entry::<PsrwCentral>("psrw-central", "psrw, all readers counted in the state"),
            ]
        });
        &ALL
    }
}

/// A lock, which need not be in the list.
pub(crate) fn entry<L: RwLock>(name: &'static str, about: &'static str) -> Entry {
    let (nested, timed_mask, install) = (L::NESTED, L::TIMED_MASK, L::INSTALL);
    let kind = Traits { nested, timed_mask, install, place: Placed::<L>::place };
    Entry { name, about, family: name.starts_with("psrw"), kind }
}

impl Traits {
    /// Whether it can be read in signal handlers.
    pub fn handler(&self) -> bool {
        self.install.is_some()
    }

    /// From here on `on_signal` is run in the handler of `signal`, for the whole process.
    ///
    /// # Safety
    /// `on_signal` does only what is async-signal-safe, beside reading the lock by what it is
    /// given. The same function is named every time.
    ///
    /// # Errors
    /// If the lock is not read in handlers.
    pub unsafe fn install(&self, signal: i32, on_signal: fn(Read<'_>)) -> Result<()> {
        let none = "this lock is not read in signal handlers; allowed: its masked twin";
        let install = self.install.ok_or_else(|| anyhow!(none))?;
        timed::ON_SIGNAL.get_or_init(|| on_signal);
        install(signal)
    }
}

#[cfg(test)]
mod tests;
