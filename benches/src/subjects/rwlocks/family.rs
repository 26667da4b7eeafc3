//! The family's reader-writer locks: `PsRwLock` in those of its types that something is promised
//! of.

use super::mask::Timed;
use super::timed::struck;
use super::{Rank, RwLock};
use anyhow::{Result, anyhow};
use std::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};
use ulocks_core::Private;
use ulocks_core::signal::{self, Context, Soft};
use ulocks_psrwlock::{
    BULK, Bulk, ByClass, Central, HANDLER, NESTED, Nested, PhaseFair, PsRwLockReadGuard, PsRwLockWith,
    PsRwLockWriteGuard, Sifted, URGENT, Urgent,
};

/// Three classes of threads, as by default.
type Threads = Sifted<{ BULK | URGENT | NESTED }>;
/// Two, and readers in signal handlers, which the soft mask keeps off.
type Handlers = Sifted<{ BULK | URGENT | HANDLER }>;
/// The same, noting how long the mask is up.
type TimedHandlers = Sifted<{ BULK | URGENT | HANDLER }, Private, PhaseFair, Central, Timed<Soft>>;
/// As by default, but readers never borrow slots.
type InState = Sifted<{ BULK | URGENT | NESTED }, Private, PhaseFair, Central>;

/// The handlers that are installed. A signal has one, and in the tests several locks want it in
/// turn.
static INSTALLED: Mutex<Option<signal::Installed>> = Mutex::new(None);

/// Makes a lock of a discipline a subject. A class that a discipline does not have is an error of
/// the compiler wherever it is named, called or not: in its place stands `Bulk`, and no code calls
/// that.
macro_rules! subjects {
    ($(#[$doc:meta] $name:ident: $discipline:ty, nested $has_nested:literal $nested:ty,
       handler $handler:tt, timed $timed:literal;)*) => {$(
        #[$doc]
        #[derive(Debug)]
        pub struct $name(PsRwLockWith<(), $discipline>);

        impl RwLock for $name {
            const NESTED: bool = $has_nested;
            const TIMED_MASK: bool = $timed;
            const INSTALL: Option<fn(i32) -> Result<()>> = subjects!(@handler $handler);

            type Write<'a> = PsRwLockWriteGuard<'a, (), $discipline>;
            type Read<'a> = PsRwLockReadGuard<'a, (), $discipline>;

            fn place(place: &mut MaybeUninit<Self>) -> Result<()> {
                place.write(Self(PsRwLockWith::new(())));
                Ok(())
            }

            #[inline]
            fn write(&self, wait: bool) -> Option<Self::Write<'_>> {
                if wait { Some(self.0.write()) } else { self.0.try_write() }
            }

            #[inline]
            fn read(&self, rank: Rank, wait: bool) -> Option<Self::Read<'_>> {
                match (rank, wait) {
                    (Rank::Bulk, true) => Some(self.0.read()),
                    (Rank::Bulk, false) => self.0.try_read(),
                    (Rank::Urgent, true) => Some(self.0.read_in::<Urgent>()),
                    (Rank::Urgent, false) => self.0.try_read_in::<Urgent>(),
                    (Rank::Nested, true) => Some(self.0.read_in::<$nested>()),
                    (Rank::Nested, false) => self.0.try_read_in::<$nested>(),
                }
            }
        }
    )*};
    (@handler true) => {
        Some(|signal| install(signal, |context| struck(|lock: &'static Self| lock.0.read_handler(context))))
    };
    (@handler false) => { None };
}

subjects! {
    /// As by default.
    Psrw: Threads, nested true Nested, handler false, timed false;
    /// With readers in signal handlers.
    PsrwHandler: Handlers, nested false Bulk, handler true, timed false;
    /// The same, noting how long the mask is up.
    PsrwTimed: TimedHandlers, nested false Bulk, handler true, timed true;
    /// With all readers in the state.
    PsrwCentral: InState, nested true Nested, handler false, timed false;
}

/// Installs the handler, in place of the one before.
pub(super) fn install(signal: i32, run: fn(&Context<'_>)) -> Result<()> {
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(before) = installed.take() {
        before.uninstall();
    }
    // SAFETY: `run` reads the lock by its function for handlers, or a peer that no code below the
    // handler wants or has. Beside that it does what the caller of `Traits::install` has named,
    // which is async-signal-safe by that caller's word.
    let handlers = unsafe { signal::Handlers::new().signal(signal).install(run) };
    *installed = Some(handlers.map_err(|error| anyhow!("{error}"))?);
    Ok(())
}
