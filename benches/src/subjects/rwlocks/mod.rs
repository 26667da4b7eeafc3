//! Reader-writer locks under test: one trait, and every lock by name.
//!
//! A subject has *classes* of readers. `Bulk` is the ordinary reader, of long sections; `Urgent`
//! the thread that must not wait for them; `Nested` a reader on a thread that may hold a lower
//! class already; `Handler` a reader in a signal handler. A lock that does not know of classes, as
//! none of the peers does, has one kind of reader, which plays the thread classes all alike. It is
//! not read in handlers at all ([`Peer`]), unless every thread blocks the signals for as long as it
//! wants or has the lock ([`Masked`]), which is what one does with such a lock.

mod family;
pub mod mask;
mod peers;

pub use family::{FAMILY, Psrw, PsrwDistributed, PsrwHandler, PsrwTimed};
pub use mask::Masked;
pub use peers::{ParkingLot, Peer, Plain, Pthread, Std, Usync};

use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::mem::MaybeUninit;

/// A reader-writer lock that can be measured. It lives where it is placed.
pub trait RwLock: Send + Sync + Sized + 'static {
    /// Whether `Urgent` is a class of its own. Where it is none, its readers are `Bulk` ones.
    const URGENT: bool = false;
    /// Whether there is a class `Nested`. Where there is none, no thread plays it.
    const NESTED: bool = false;
    /// Whether it can be read in signal handlers that interrupt its users.
    const HANDLER: bool = false;
    /// Whether all its ways into the kernel lead through libc's `syscall`, where
    /// [`futexes`](crate::run::syscalls) counts them.
    const COUNTABLE: bool = true;
    /// Whether it notes how long it keeps signals off, with [`mask`].
    const TIMED_MASK: bool = false;

    /// Creates an unlocked lock where it stays.
    fn place(place: &mut MaybeUninit<Self>) -> Result<()>;

    /// Holding the lock alone.
    type Write<'a>;
    /// Holding it as a reader of a class that is a thread.
    type Read<'a>;
    /// Holding it in a signal handler.
    type Handler<'a>;
    /// What a signal handler is given.
    type Context<'a>;

    /// Locks for writing.
    fn write(&self) -> Self::Write<'_>;
    /// Locks for writing if that needs no waiting.
    fn try_write(&self) -> Option<Self::Write<'_>>;
    /// Locks for reading, in class `C`, or in `Bulk` where there is no such class.
    fn read<C: Class>(&self) -> Self::Read<'_>;
    /// The same if that needs no waiting.
    fn try_read<C: Class>(&self) -> Option<Self::Read<'_>>;
    /// Locks for reading in a signal handler; none if that needs more patience than a handler may
    /// have. A handler that must have it asks again.
    fn read_handler<'a>(&'a self, context: &'a Self::Context<'_>) -> Option<Self::Handler<'a>>;
    /// Locks for reading in a signal handler in the fewest steps that the lock has for that: one
    /// attempt, or a bounded one.
    fn try_read_handler<'a>(&'a self, context: &'a Self::Context<'_>) -> Option<Self::Handler<'a>>;

    /// Installs the handler of `signal` for the whole process, which is wrapped as the lock demands
    /// and stays.
    ///
    /// # Safety
    /// `H` does only what is async-signal-safe, beside the lock's own functions for handlers.
    unsafe fn install<H: OnSignal<Self>>(signal: i32) -> Result<()>;
}

/// What is run in a signal handler.
pub trait OnSignal<L: RwLock>: 'static {
    /// Runs.
    fn run(context: &L::Context<'_>);
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

/// A class of readers that are threads, as a type.
pub trait Class: 'static {
    /// Which.
    const RANK: Rank;
}

/// Declares the classes.
macro_rules! classes {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
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

/// What is known of a reader-writer lock.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// Whether `Urgent` is a class of its own.
    pub urgent: bool,
    /// Whether there is a class `Nested`.
    pub nested: bool,
    /// Whether it can be read in signal handlers.
    pub handler: bool,
    /// Whether it says how long it keeps signals off.
    pub timed_mask: bool,
}

impl Traits {
    fn of<L: RwLock>() -> Self {
        Self { urgent: L::URGENT, nested: L::NESTED, handler: L::HANDLER, timed_mask: L::TIMED_MASK }
    }
}

subjects! {
    Traits: RwLock, "reader-writer lock";
    peers {
        "std-rw" "std::sync::RwLock": Peer<Std>;
        "parking_lot-rw" "parking_lot 0.13 RwLock": Peer<ParkingLot>;
        "pthread-rw" "pthread_rwlock_t, readers first": Peer<Pthread<false>>;
        "pthread-rw-writer" "pthread_rwlock_t, writers first": Peer<Pthread<true>>;
        "usync-rw" "usync RwLock": Peer<Usync>;
        "std-rw-masked" "std::sync::RwLock, signals blocked from lock to unlock": Masked<Std>;
        "parking_lot-rw-masked" "parking_lot 0.13 RwLock, signals blocked from lock to unlock": Masked<ParkingLot>;
        "pthread-rw-masked" "pthread_rwlock_t, readers first, signals blocked from lock to unlock": Masked<Pthread<false>>;
        "pthread-rw-writer-masked" "pthread_rwlock_t, writers first, signals blocked from lock to unlock": Masked<Pthread<true>>;
    }
    family {
        "psrw" "ulocks PsRwLock: Bulk, Urgent, Nested": Psrw;
        "psrw-handler" "ulocks PsRwLock: Bulk, Urgent, Handler, soft mask": PsrwHandler;
        "psrw-timed" "ulocks PsRwLock: Bulk, Urgent, Handler, soft mask, which is timed": PsrwTimed;
        "psrw-distributed" "ulocks PsRwLock: Bulk counted in eight places, Urgent": PsrwDistributed;
    }
}

/// A lock on lines of its own, on the heap, where it stays.
#[derive(Debug)]
#[repr(align(128))]
pub struct Placed<L>(L);

impl<L: RwLock> Placed<L> {
    /// Creates a lock.
    pub fn new() -> Result<Box<Self>> {
        let mut place = Box::<Self>::new_uninit();
        // SAFETY: a pointer to the field of an allocated, aligned value; `MaybeUninit` may be
        // uninitialised, and no other code refers to it.
        let inner = unsafe { &mut *(&raw mut (*place.as_mut_ptr()).0).cast::<MaybeUninit<L>>() };
        L::place(inner)?;
        // SAFETY: the only field has just been initialised.
        Ok(unsafe { place.assume_init() })
    }

    /// The lock.
    pub fn lock(&self) -> &L {
        &self.0
    }
}

#[cfg(test)]
mod tests;
