//! The wrapper: handlers that keep each other out, and wait for masks.
//!
//! One function is the handler of all signals of the class. It keeps errno, looks the closure up in a table of
//! atomics, and hands both to the soft mask. It allocates nothing and touches no thread-local memory that would have
//! to be made first.
//!
//! # Invariants
//! 1. A closure, once in the table, is never freed: a handler on another thread may run it, or be about to, whatever
//!    `sigaction` says. So the table needs no reader's protocol.
//! 2. A signal is in the class before its action is the wrapper's, and leaves it after.
//! 3. The `sa_mask` of each action of the wrapper contains the class. A signal joins all masks before it has a handler.
//!
//! What a handler that is already running has blocked does not change with 3: one installed meanwhile may interrupt it
//! this once.

use super::context::Context;
use super::error::InstallError;
use super::set::{SIGNALS, bit, signals_in};
use super::soft::arrive;
use crate::errno;
use crate::world::signal::{CAN_DEFER, CLASS, Handler, Interrupted, sigset};
use core::ffi::c_void;
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr::{null, null_mut};
use core::sync::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// By number: the closure of a signal. The pointer is to a wide one, which an atomic could not hold.
static TABLE: [AtomicPtr<Handler>; SIGNALS as usize + 1] =
    [const { AtomicPtr::new(null_mut()) }; SIGNALS as usize + 1];

/// Guards the class and the actions, against other installations only: handlers do without.
static INSTALLING: Mutex<()> = Mutex::new(());

fn installing() -> MutexGuard<'static, ()> {
    INSTALLING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Signals that get a handler.
///
/// Handlers installed with this make up a class: they do not interrupt each other, and they wait while a
/// [`Soft`](super::Soft) mask is up on the thread that they strike. They may read-lock what is written under such a mask.
///
/// # Blocking
/// Not in a handler: installing takes a mutex against other installations, allocates, and makes a system call for
/// each signal of the class. A handler itself blocks on nothing, allocates nothing, and keeps errno.
///
/// # Panics
/// A handler that panics aborts the process: what it interrupted expects no unwinding.
///
/// # Signals and forks
/// `SA_RESTART`, so that system calls go on after the handler as far as the kernel can; no `SA_NODEFER`. Handlers of
/// synchronous signals may be in the class, too, but are not deferred: see
/// [`Context::is_synchronous`]. A forked child has the same handlers; exec resets them.
///
/// # Examples
/// ```
/// use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
/// use ulocks_core::signal::{Handlers, Mask, Soft};
///
/// static HANDLED: AtomicI32 = AtomicI32::new(0);
///
/// // SAFETY: an atomic store is async-signal-safe.
/// let installed = unsafe {
///     Handlers::new()
///         .signal(libc::SIGUSR1)
///         .signal(libc::SIGRTMIN() + 3)
///         .install(|context| HANDLED.store(context.signal(), Relaxed))
/// }?;
///
/// Soft::raise();
/// // SAFETY: the signal has a handler.
/// unsafe { libc::raise(libc::SIGUSR1) };
/// assert_eq!(HANDLED.load(Relaxed), 0, "it waits");
/// Soft::lower();
/// assert_eq!(HANDLED.load(Relaxed), libc::SIGUSR1);
///
/// installed.uninstall();
/// # Ok::<(), ulocks_core::signal::InstallError>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "nothing is installed before `install`"]
pub struct Handlers {
    set: u64,
    /// The first number that was none.
    bad: Option<i32>,
}

impl Handlers {
    /// No signals yet.
    pub const fn new() -> Self {
        Self { set: 0, bad: None }
    }

    /// One signal more. A number that cannot be is reported by [`install`](Self::install).
    pub const fn signal(mut self, signal: i32) -> Self {
        if signal >= 1 && signal <= SIGNALS {
            self.set |= bit(signal);
        } else if self.bad.is_none() {
            self.bad = Some(signal);
        }
        self
    }

    /// Installs `handler` for these signals, in the whole process. The closure is never freed.
    ///
    /// # Errors
    /// If a number is not one of a signal that can have a handler, or the signal is in the class already. Nothing has
    /// been installed then.
    ///
    /// # Safety
    /// `handler` is async-signal-safe: it may run on any thread of the process between any two instructions, and
    /// calls nothing that allocates, takes a lock other than by an attempt, or initialises thread-local memory. It
    /// returns: it does not leave by `siglongjmp` or the like. While a mask is up, code on that thread leaves the
    /// thread's signal mask, as far as it concerns these signals, as it found it.
    pub unsafe fn install<F>(self, handler: F) -> Result<Installed, InstallError>
    where
        F: Fn(&Context<'_>) + Send + Sync + 'static,
    {
        let _installing = installing();
        self.check()?;
        let set = self.set;
        let before = CLASS.load(Relaxed);
        CLASS.store(before | set, Relaxed);
        let handler: Handler = Box::leak(Box::new(handler));
        let handler: &'static Handler = Box::leak(Box::new(handler));
        for signal in signals_in(before) {
            renew(signal, before | set);
        }
        let mut installed = Installed { set: 0, previous: Vec::new() };
        for signal in signals_in(set) {
            // Release: pairs with `handler_of`: who finds the closure finds it written.
            TABLE[signal as usize].store(core::ptr::from_ref(handler).cast_mut(), Release);
            match set_action(signal, &wrapper(before | set)) {
                Ok(previous) => {
                    installed.set |= bit(signal);
                    installed.previous.push((signal, previous));
                }
                Err(error) => {
                    installed.take_back();
                    CLASS.store(before, Relaxed);
                    signals_in(before).for_each(|signal| renew(signal, before));
                    return Err(InstallError::Refused { signal, errno: error });
                }
            }
        }
        Ok(installed)
    }

    fn check(&self) -> Result<(), InstallError> {
        if !CAN_DEFER {
            return Err(InstallError::Unsupported);
        }
        if let Some(signal) = self.bad {
            return Err(InstallError::NoSuchSignal(signal));
        }
        if self.set == 0 {
            return Err(InstallError::NoSignals);
        }
        let class = CLASS.load(Relaxed);
        for signal in signals_in(self.set) {
            if signal > libc::SIGRTMAX() {
                return Err(InstallError::NoSuchSignal(signal));
            }
            if signal == libc::SIGKILL || signal == libc::SIGSTOP {
                return Err(InstallError::Uncatchable(signal));
            }
            if (32..libc::SIGRTMIN()).contains(&signal) {
                return Err(InstallError::Reserved(signal));
            }
            if class & bit(signal) != 0 {
                return Err(InstallError::AlreadyInstalled(signal));
            }
        }
        Ok(())
    }
}

/// Handlers that are installed. Dropping it leaves them so, for good.
pub struct Installed {
    set: u64,
    previous: Vec<(i32, libc::sigaction)>,
}

impl Installed {
    /// The signals, as a set.
    #[must_use]
    pub fn signals(&self) -> u64 {
        self.set
    }

    /// Gives the signals back the actions they had before. One whose action somebody else has changed meanwhile keeps
    /// that.
    ///
    /// The closure may still run on other threads, or be run later on one that has put a signal aside. It is never freed.
    /// A signal that is sent after this meets its old action, which for most of them is the end of the process.
    pub fn uninstall(mut self) {
        let _installing = installing();
        self.take_back();
        let class = CLASS.load(Relaxed) & !self.set;
        CLASS.store(class, Relaxed);
        signals_in(class).for_each(|signal| renew(signal, class));
    }

    fn take_back(&mut self) {
        for (signal, previous) in self.previous.drain(..) {
            if action(signal).is_some_and(|action| is_wrapper(&action)) {
                let _ = set_action(signal, &previous);
            }
        }
    }
}

impl fmt::Debug for Installed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Installed").field(&signals_in(self.set).collect::<Vec<_>>()).finish()
    }
}

/// The handler of all signals of the class.
extern "C" fn handle(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    let _errno = errno::Guard::new();
    if let Some(handler) = handler_of(signal) {
        // SAFETY: the kernel passes the info and the context of this signal, both valid until we return; `install`
        // has asked whether signals can be deferred.
        let (info, mut interrupted) = unsafe { (&*info, Interrupted::new(context)) };
        arrive::<0>(signal, info, handler, &mut interrupted);
    }
}

fn handler_of(signal: i32) -> Option<Handler> {
    let entry = TABLE.get(usize::try_from(signal).ok()?)?;
    // SAFETY: null, or leaked by `install`. Acquire: pairs with the store there.
    unsafe { entry.load(Acquire).as_ref() }.copied()
}

/// The action whose handler keeps the signals of `class` out.
fn wrapper(class: u64) -> libc::sigaction {
    // SAFETY: all zero is an action.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    let handle: extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void) = handle;
    action.sa_sigaction = handle as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    action.sa_mask = sigset(class);
    action
}

fn is_wrapper(action: &libc::sigaction) -> bool {
    action.sa_sigaction == wrapper(0).sa_sigaction
}

/// Gives a signal of the class the mask of `class`, if its action is still ours.
fn renew(signal: i32, class: u64) {
    if action(signal).is_some_and(|action| is_wrapper(&action)) {
        let _ = set_action(signal, &wrapper(class));
    }
}

fn action(signal: i32) -> Option<libc::sigaction> {
    let _errno = errno::Guard::new();
    let mut action = MaybeUninit::uninit();
    // SAFETY: asks only, and there is room for the answer, which is written if the call succeeds.
    unsafe { (libc::sigaction(signal, null(), action.as_mut_ptr()) == 0).then(|| action.assume_init()) }
}

/// Sets the action of a signal, and returns the one before.
fn set_action(signal: i32, action: &libc::sigaction) -> Result<libc::sigaction, i32> {
    let _errno = errno::Guard::new();
    let mut before = MaybeUninit::uninit();
    // SAFETY: the action is one that was there before, or the wrapper, which is async-signal-safe by the word of the
    // caller of `install`; there is room for the one before, which is written if the call succeeds.
    unsafe {
        match libc::sigaction(signal, action, before.as_mut_ptr()) {
            0 => Ok(before.assume_init()),
            _ => Err(*libc::__errno_location()),
        }
    }
}
