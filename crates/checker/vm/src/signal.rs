//! Signals of the machine: handlers that run on a thread between any two of its steps, unless it
//! masks them.
//!
//! A handler is the property of a process, as with `sigaction`. It runs nested on the thread it
//! strikes, with its own signal masked, and may itself be interrupted by others. A thread that
//! sleeps in a futex wait is interrupted there: the wait ends with `Interrupted` if it has a
//! deadline, and is begun again if it has none, as after a handler that was installed with
//! `SA_RESTART`.
//!
//! A new thread masks what its maker masks at that moment; a new process masks nothing.
//!
//! Signals exist in an exploration only.
//!
//! ```
//! use std::sync::Arc;
//! use ulocks_vm::explore::{Config, explore};
//! use ulocks_vm::signal::{self, Signal};
//! use ulocks_vm::sync::{AtomicU32, Ordering::Relaxed};
//!
//! explore(Config::exhaustive(), || {
//!     let hits = Arc::new(AtomicU32::new(0));
//!     let seen = Arc::clone(&hits);
//!     let usr1 = Signal::new(10);
//!     signal::install(usr1, 0, move || {
//!         seen.fetch_add(1, Relaxed);
//!     });
//!     signal::arm(usr1, 1); // it arrives at some step, or not at all
//!     let before = hits.load(Relaxed);
//!     assert!(before <= hits.load(Relaxed));
//! });
//! ```

use crate::engine::{self, linux};
use core::panic::Location;
use std::rc::Rc;

/// A signal, 1 to 31.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Signal(u8);

impl Signal {
    /// The signal of that number.
    ///
    /// # Panics
    /// If it is not from 1 to 31.
    #[must_use]
    pub const fn new(number: u8) -> Self {
        assert!(number >= 1 && number <= 31, "signals are numbered 1 to 31");
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Its bit in a mask.
    #[must_use]
    pub const fn bit(self) -> u32 {
        1 << self.0
    }
}

/// What a thread asks of the machine.
#[doc(hidden)]
pub enum Request {
    Install { signal: Signal, mask: u32, handler: Rc<dyn Fn()> },
    Send { thread: usize, signal: Signal },
    Arm { signal: Signal, times: u8 },
    Mask { masked: u32 },
    MaskOnReturn { more: u32 },
}

#[track_caller]
fn request(request: Request) -> u64 {
    let at = Location::caller();
    engine::with(|engine| linux::demand(engine, "a signal").signals(request, at))
}

/// Installs the process's handler of `signal`; while it runs, the signals in `mask` are masked too.
#[track_caller]
pub fn install(signal: Signal, mask: u32, handler: impl Fn() + 'static) {
    request(Request::Install { signal, mask, handler: Rc::new(handler) });
}

/// Sends `signal` to a thread. It is delivered at one of that thread's steps from now on, or, if it
/// is sent to the caller itself and not masked, before this returns. A signal that is already
/// pending is not sent twice.
#[track_caller]
pub fn send(thread: usize, signal: Signal) {
    request(Request::Send { thread, signal });
}

/// Lets `signal` strike the calling thread up to `times` times from now on, at steps that the run
/// chooses.
#[track_caller]
pub fn arm(signal: Signal, times: u8) {
    request(Request::Arm { signal, times });
}

/// Sets which signals the calling thread masks, and returns which it masked before: bit `n` for
/// signal `n`. What is pending and not masked any more is delivered before this returns.
#[track_caller]
pub fn mask(masked: u32) -> u32 {
    request(Request::Mask { masked }) as u32
}

/// Lets the code that the running handler has interrupted mask the signals in `more`, too, from the
/// return of the handler on, and returns which it would have masked: what a handler does that
/// changes the mask in its `ucontext_t`.
///
/// # Panics
/// If the calling thread runs no handler.
#[track_caller]
pub fn mask_on_return(more: u32) -> u32 {
    request(Request::MaskOnReturn { more }) as u32
}
