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
mod registry;

pub use family::{FAMILY, Psrw, PsrwDistributed, PsrwHandler, PsrwTimed};
pub use mask::Masked;
pub use peers::{ParkingLot, Peer, Plain, Pthread, Std, Usync};
pub use registry::{Entry, Visitor, all, find, visit};

use anyhow::Result;
use std::mem::MaybeUninit;

/// A reader-writer lock that can be measured. It lives where it is placed.
pub trait RwLock: Send + Sync + Sized + 'static {
    /// Whether `Urgent` is a class of its own. Where it is none, its readers are `Bulk` ones.
    const URGENT: bool = false;
    /// Whether there is a class `Nested`. Where there is none, nobody plays it.
    const NESTED: bool = false;
    /// Whether it can be read in signal handlers that interrupt those who use it.
    const HANDLER: bool = false;
    /// Whether all its ways into the kernel lead through libc's `syscall`, where
    /// [`futexes`](crate::run::syscalls) counts them.
    const COUNTABLE: bool = true;
    /// Whether it notes how long it keeps signals off, with [`mask`].
    const TIMED_MASK: bool = false;

    /// Creates an unlocked lock.
    fn place(place: &mut MaybeUninit<Self>) -> Result<()>;

    /// Holding the lock alone.
    type Write<'a>;
    /// Holding it as an ordinary reader.
    type Bulk<'a>;
    /// Holding it as a reader in a hurry.
    type Urgent<'a>;
    /// Holding it as a reader on a thread that may hold it already.
    type Nested<'a>;
    /// Holding it in a signal handler.
    type Handler<'a>;
    /// What a signal handler is given.
    type Context<'a>;

    /// Locks for writing.
    fn write(&self) -> Self::Write<'_>;
    /// Locks for writing if that needs no waiting.
    fn try_write(&self) -> Option<Self::Write<'_>>;
    /// Locks for reading.
    fn read(&self) -> Self::Bulk<'_>;
    /// Locks for reading if that needs no waiting.
    fn try_read(&self) -> Option<Self::Bulk<'_>>;
    /// Locks for reading, in a hurry.
    fn read_urgent(&self) -> Self::Urgent<'_>;
    /// The same if that needs no waiting.
    fn try_read_urgent(&self) -> Option<Self::Urgent<'_>>;
    /// Locks for reading on a thread that may hold a lower class.
    fn read_nested(&self) -> Self::Nested<'_>;
    /// The same if that needs no waiting.
    fn try_read_nested(&self) -> Option<Self::Nested<'_>>;
    /// Locks for reading in a signal handler; none if that needs more patience than a handler may
    /// have. Who must have it asks again.
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

/// A class of readers that are threads.
pub trait Class: 'static {
    /// Holding a lock in it.
    type Held<'a, L: RwLock>;
    /// Locks.
    fn read<L: RwLock>(lock: &L) -> Self::Held<'_, L>;
    /// Locks if that needs no waiting.
    fn try_read<L: RwLock>(lock: &L) -> Option<Self::Held<'_, L>>;
}

macro_rules! classes {
    ($($(#[$doc:meta])* $name:ident $read:ident $try_read:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub enum $name {}

        impl Class for $name {
            type Held<'a, L: RwLock> = L::$name<'a>;
            #[inline]
            fn read<L: RwLock>(lock: &L) -> L::$name<'_> {
                lock.$read()
            }
            #[inline]
            fn try_read<L: RwLock>(lock: &L) -> Option<L::$name<'_>> {
                lock.$try_read()
            }
        }
    )*};
}

classes! {
    /// Ordinary readers.
    Bulk read try_read;
    /// Readers in a hurry.
    Urgent read_urgent try_read_urgent;
    /// Readers on a thread that may hold a lower class.
    Nested read_nested try_read_nested;
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
        // uninitialised, and nobody else refers to it.
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
