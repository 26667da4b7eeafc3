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
//! that it needs beside it. [`Subject`] is a lock without its type: the clock reads around an
//! acquisition are compiled for each lock, and so are the loops in which no clock is read.

mod family;
pub mod mask;
mod peers;
mod timed;

pub use family::{Psrw, PsrwDistributed, PsrwHandler, PsrwTimed};
pub use mask::Masked;
pub use peers::{ParkingLot, Peer, Pthread, Std, Usync};
pub use timed::{ASKS, Ask, ROW, Read, Row, Subject, Took};

use anyhow::{Result, anyhow};
use serde::{Deserialize, Serialize};
use std::mem::MaybeUninit;
use timed::install;

/// A reader-writer lock that can be measured. It lives where it is placed.
pub trait RwLock: Send + Sync + Sized + 'static {
    /// Whether `Urgent` is a class of its own. Where it is none, its readers are `Bulk` ones.
    const URGENT: bool = false;
    /// Whether there is a class `Nested`. Where there is none, no thread plays it.
    const NESTED: bool = false;
    /// Whether all its ways into the kernel lead through libc's `syscall`, where
    /// [`futexes`](crate::run::syscalls) counts them.
    const COUNTABLE: bool = true;
    /// Whether it notes how long it keeps signals off, with [`mask`].
    const TIMED_MASK: bool = false;
    /// Where it can be read in signal handlers that interrupt its users: installs the handler of a
    /// signal for the whole process, which is wrapped as the lock demands and stays.
    const INSTALL: Option<Install> = None;

    /// Creates an unlocked lock where it stays.
    fn place(place: &mut MaybeUninit<Self>) -> Result<()>;

    /// Holding the lock alone.
    type Write<'a>;
    /// Holding it as a reader of a class that is a thread.
    type Read<'a>;

    /// Locks for writing.
    fn write(&self) -> Self::Write<'_>;
    /// Locks for writing if that needs no waiting.
    fn try_write(&self) -> Option<Self::Write<'_>>;
    /// Locks for reading, in class `C`, or in `Bulk` where there is no such class.
    fn read<C: Class>(&self) -> Self::Read<'_>;
    /// The same if that needs no waiting.
    fn try_read<C: Class>(&self) -> Option<Self::Read<'_>>;
}

/// Installs the handler of a signal.
pub type Install = fn(signal: i32) -> Result<()>;

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

/// A class of readers that are threads, as a type.
pub trait Class: 'static {
    /// Which.
    const RANK: Rank;
}

/// Declares the classes.
macro_rules! classes {
    ($(#[$doc:meta] $name:ident;)*) => {$(
        #[$doc]
        #[derive(Debug)]
        pub enum $name {}

        impl Class for $name {
            const RANK: Rank = Rank::$name;
        }
    )*};
}

classes! {
    /// Ordinary readers.
    Bulk;
    /// Readers in a hurry.
    Urgent;
    /// Readers on a thread that may hold a lower class.
    Nested;
}

/// A reader-writer lock by name.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What it is called.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// Whether it belongs to this family, and is not a peer.
    pub family: bool,
    /// Whether `Urgent` is a class of its own.
    pub urgent: bool,
    /// Whether there is a class `Nested`.
    pub nested: bool,
    /// Whether it says how long it keeps signals off.
    pub timed_mask: bool,
    install: Option<Install>,
    place: fn(usize) -> Result<&'static dyn Subject>,
}

/// Every lock, peers first.
const ALL: &[Entry] = &[
    Entry::of::<Std>("std-rw", "std::sync::RwLock"),
    Entry::of::<ParkingLot>("parking_lot-rw", "parking_lot 0.13 RwLock"),
    Entry::of::<Pthread<false>>("pthread-rw", "pthread_rwlock_t, readers first"),
    #[cfg(target_env = "gnu")]
    Entry::of::<Pthread<true>>("pthread-rw-writer", "pthread_rwlock_t, writers first"),
    Entry::of::<Usync>("usync-rw", "usync RwLock"),
    Entry::of::<Masked<Std>>("std-rw-masked", "std::sync::RwLock, signals blocked from lock to unlock"),
    Entry::of::<Masked<ParkingLot>>(
        "parking_lot-rw-masked",
        "parking_lot 0.13 RwLock, signals blocked from lock to unlock",
    ),
    Entry::of::<Masked<Pthread<false>>>(
        "pthread-rw-masked",
        "pthread_rwlock_t, readers first, signals blocked from lock to unlock",
    ),
    #[cfg(target_env = "gnu")]
    Entry::of::<Masked<Pthread<true>>>(
        "pthread-rw-writer-masked",
        "pthread_rwlock_t, writers first, signals blocked from lock to unlock",
    ),
    Entry::of::<Psrw>("psrw", "ulocks PsRwLock: Bulk, Urgent, Nested").ours(),
    Entry::of::<PsrwHandler>("psrw-handler", "ulocks PsRwLock: Bulk, Urgent, Handler, soft mask").ours(),
    Entry::of::<PsrwTimed>("psrw-timed", "ulocks PsRwLock: Bulk, Urgent, Handler, soft mask, which is timed")
        .ours(),
    Entry::of::<PsrwDistributed>("psrw-distributed", "ulocks PsRwLock: Bulk counted in eight places, Urgent")
        .ours(),
];

impl Entry {
    /// A peer; it need not be in the list.
    pub const fn of<L: RwLock>(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            about,
            family: false,
            urgent: L::URGENT,
            nested: L::NESTED,
            timed_mask: L::TIMED_MASK,
            install: L::INSTALL,
            place: Row::<L>::place,
        }
    }

    const fn ours(self) -> Self {
        Self { family: true, ..self }
    }

    /// Every lock, peers first.
    pub fn all() -> &'static [Self] {
        ALL
    }

    /// The lock called `name`.
    pub fn find(name: &str) -> Result<&'static Self> {
        let names = || ALL.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
        let unknown = || anyhow!("unknown reader-writer lock '{name}'; allowed: {}", names());
        ALL.iter().find(|entry| entry.name == name).ok_or_else(unknown)
    }

    /// Whether it can be read in signal handlers.
    pub fn handler(&self) -> bool {
        self.install.is_some()
    }

    /// So many new locks, which stay until the process ends: it carries out one trial.
    pub fn place(&self, count: usize) -> Result<&'static dyn Subject> {
        (self.place)(count)
    }

    /// From here on `on_signal` is run in the handler of `signal`, for the whole process.
    ///
    /// # Safety
    /// `on_signal` does only what is async-signal-safe, beside reading the lock by what it is given.
    /// The same function is named every time.
    ///
    /// # Errors
    /// If the lock is not read in handlers.
    pub unsafe fn install(&self, signal: i32, on_signal: fn(Read<'_>)) -> Result<()> {
        let name = self.name;
        let none = || anyhow!("lock '{name}' is not read in signal handlers; allowed: its masked twin");
        install(on_signal);
        self.install.ok_or_else(none)?(signal)
    }
}

#[cfg(test)]
mod tests;
