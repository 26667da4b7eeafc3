//! The wrapper: handlers that keep each other out, and wait for masks.
//!
//! One function is the handler of all signals of the class. It keeps errno, looks the closure up in
//! a table of atomics, and hands both to the soft mask. It allocates nothing and touches no
//! thread-local memory that would have to be made first. A synchronous signal that the closure
//! passes on it gives to the action that was there before (`previous.rs`).
//!
//! # Invariants
//! 1. An entry, once in the table, is never freed: a handler on another thread may use it, or be
//!    about to, whatever `sigaction` says. So the table needs no reader's protocol.
//! 2. A signal is in the class before its action is the wrapper's, and leaves it after.
//! 3. The `sa_mask` of each action of the wrapper contains the class, but for synchronous signals.
//!    A signal joins all masks before it has a handler.
//! 4. No synchronous signal is in an `sa_mask` of the wrapper, so a fault in a handler is
//!    delivered. The kernel itself blocks the signal whose handler runs: a fault in its own handler
//!    kills, as with any handler.
//! 5. Synchronous signals have `SA_ONSTACK`, the others not. A stack overflow leaves no room for a
//!    handler on the thread's own stack. But the alternate stack is small, and handlers of other
//!    signals may nest and be large.
//!
//! # Stack overflow
//! The standard library installs a handler of `SIGSEGV` that tells of an overflow, and an alternate
//! stack for each of its threads. A closure that knows nothing of overflows returns, and the fault
//! would come again without end. So [`is_overflow`] passes on, also unasked, a fault whose address
//! is near the stack pointer and which no thread can read when the closure has returned. No other
//! fault is passed on unasked: that memory cannot be read does not prove that the fault was not
//! resolved, because another thread may have protected the memory again.
//!
//! What a handler that is already running has blocked does not change with 3: one installed
//! meanwhile may interrupt it this once.

use super::context::Context;
use super::error::InstallError;
use super::previous::{Previous, action_of, new_action, set_action};
use super::set::{SIGNALS, SYNCHRONOUS, bit, signals_in};
use super::soft::arrive;
use crate::sys::errno;
use crate::sys::world::signal::{CAN_DEFER, CLASS, Handler, Info, Interrupted, address, is_readable};
use core::ffi::c_void;
use core::fmt;
use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the wrapper knows of a signal.
struct Entry {
    handler: Handler,
    previous: Previous,
}

/// By number: the entry of a signal that has been installed at some time.
static TABLE: [AtomicPtr<Entry>; SIGNALS as usize + 1] =
    [const { AtomicPtr::new(null_mut()) }; SIGNALS as usize + 1];

/// Guards the class and the actions, against other installations only: handlers do without.
static INSTALLING: Mutex<()> = Mutex::new(());

fn installing() -> MutexGuard<'static, ()> {
    INSTALLING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Signals that get a handler.
///
/// Handlers installed with this make up a class: they do not interrupt each other, and they wait
/// while a [`Soft`](super::Soft) mask is up on the thread that they strike. They may read-lock what
/// is written under such a mask.
///
/// # Blocking
/// Not in a handler: installing takes a mutex against other installations, allocates, and makes a
/// system call for each signal of the class. A handler itself blocks on nothing, allocates nothing,
/// and keeps errno.
///
/// # Panics
/// A handler that panics aborts the process: what it interrupted expects no unwinding.
///
/// # Signals and forks
/// `SA_RESTART`, so that system calls go on after the handler as far as the kernel can; no
/// `SA_NODEFER`. A forked child has the same handlers; exec resets them.
///
/// Handlers of [synchronous](super#signals-that-cannot-wait) signals may be in the class, too. They
/// are not deferred, and no mask or handler of the class blocks them: they may interrupt the other
/// handlers, and each other. They have `SA_ONSTACK`. A closure that finds that such a signal is not
/// its own [passes it on](Context::pass_on):
///
/// ```
/// # use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
/// use ulocks_core::signal::Handlers;
///
/// static GUARDED: AtomicUsize = AtomicUsize::new(0); // the address of a page of ours
///
/// // SAFETY: an atomic load, and what the closure does with a page of its own, are async-signal-safe.
/// let installed = unsafe {
///     Handlers::new().signal(libc::SIGSEGV).install(|context| match context.address() {
///         Some(address) if address / 4096 == GUARDED.load(Relaxed) / 4096 => { /* make it accessible */ }
///         _ => context.pass_on(), // any other fault: what happens without this handler
///     })
/// };
/// # installed.unwrap().uninstall();
/// ```
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
    /// If a number is not one of a signal that can have a handler, or the signal is in the class
    /// already. Nothing has been installed then.
    ///
    /// # Safety
    /// `handler` is async-signal-safe, since it may run on any thread of the process between any
    /// two instructions. It calls nothing that allocates or initialises thread-local memory, and
    /// acquires locks by attempts only. It returns: it does not leave by `siglongjmp` or the like.
    /// For a synchronous signal it manages with the alternate stack of the thread, if there is one:
    /// the standard library's has a few KiB. While a mask is up, code on that thread leaves the
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
        for signal in signals_in(before) {
            renew(signal, before | set);
        }
        let mut installed = Installed { set: 0, previous: Vec::new() };
        for signal in signals_in(set) {
            // The entry is there before the action: a fault may use it at once.
            if let Some(expected) = action_of(signal) {
                enter(signal, handler, expected);
            }
            match set_action(signal, &wrapper(signal, before | set)) {
                Ok(previous) => {
                    installed.set |= bit(signal);
                    // Again, for another thread may have changed the action in between.
                    installed.previous.push((signal, enter(signal, handler, previous)));
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
    previous: Vec<(i32, &'static Previous)>,
}

impl Installed {
    /// The signals, as a set.
    #[must_use]
    pub fn signals(&self) -> u64 {
        self.set
    }

    /// Gives the signals back the actions they had before. A signal whose action other code has
    /// changed meanwhile keeps that, and may call the closure still, if it has kept the action
    /// before it: uninstall in the reverse order.
    ///
    /// The closure may still run on other threads, or be run later on one that has put a signal
    /// aside. It is never freed. A signal that is sent after this meets its old action, which for
    /// most of them is the end of the process.
    pub fn uninstall(mut self) {
        let _installing = installing();
        self.take_back();
        let class = CLASS.load(Relaxed) & !self.set;
        CLASS.store(class, Relaxed);
        signals_in(class).for_each(|signal| renew(signal, class));
    }

    fn take_back(&mut self) {
        for (signal, previous) in self.previous.drain(..) {
            if action_of(signal).is_some_and(|action| is_wrapper(&action)) {
                let _ = set_action(signal, &previous.action());
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
extern "C" fn handle(signal: i32, info: *mut Info, context: *mut c_void) {
    // By then errno is restored and nothing is left to drop: the action before may leave without a
    // return.
    if let Some(previous) = run_closure(signal, info, context) {
        // SAFETY: these are our arguments, and we return.
        unsafe { previous.accept(signal, info, context) };
    }
}

/// Hands a signal and its closure to the soft mask. The action before, if that is to have it.
fn run_closure(signal: i32, info: *mut Info, context: *mut c_void) -> Option<&'static Previous> {
    let _errno = errno::Guard::new();
    let entry = entry_of(signal)?;
    // SAFETY: the kernel passes the info and the context of this signal, both valid until `handle`
    // returns; `install` has asked whether signals can be deferred.
    let (info, mut interrupted) = unsafe { (&*info, Interrupted::new(context)) };
    let is_passed_on = arrive(signal, info, entry.handler, &mut interrupted);
    (is_passed_on || is_overflow(signal, info, &interrupted)).then_some(&entry.previous)
}

/// How far below its stack pointer a thread may touch its stack: a push, or the probe of a page.
const BELOW: usize = 4 << 10;
/// How far above its stack pointer a fault is taken for one of the stack: a frame without probes.
const ABOVE: usize = 64 << 10;

/// Whether a thread has run into the end of its stack, and the closure has not given it more.
fn is_overflow(signal: i32, info: &Info, interrupted: &Interrupted) -> bool {
    if signal != libc::SIGSEGV {
        return false;
    }
    let (Some(address), Some(pointer)) = (address(info), interrupted.stack_pointer()) else { return false };
    address.wrapping_sub(pointer.wrapping_sub(BELOW)) < BELOW + ABOVE && !is_readable(address)
}

fn entry_of(signal: i32) -> Option<&'static Entry> {
    let entry = TABLE.get(usize::try_from(signal).ok()?)?;
    // SAFETY: null, or leaked by `enter`. Acquire: pairs with the store there.
    // Mutant: Acquire -> Relaxed: no model has the handlers of the kernel.
    unsafe { entry.load(Acquire).as_ref() }
}

/// Enters a signal into the table, and returns what is there of its action before.
fn enter(signal: i32, handler: Handler, previous: libc::sigaction) -> &'static Previous {
    let entry: &'static Entry = Box::leak(Box::new(Entry { handler, previous: Previous::new(previous) }));
    // Release: pairs with `entry_of`: a handler that finds the entry finds it written.
    // Mutant: Release -> Relaxed: as in `entry_of`.
    TABLE[signal as usize].store(core::ptr::from_ref(entry).cast_mut(), Release);
    &entry.previous
}

/// The action of a signal whose handler keeps the deferrable signals of `class` out.
fn wrapper(signal: i32, class: u64) -> libc::sigaction {
    let on_stack = if SYNCHRONOUS & bit(signal) != 0 { libc::SA_ONSTACK } else { 0 };
    let flags = libc::SA_SIGINFO | libc::SA_RESTART | on_stack;
    new_action(handle_address(), flags, class & !SYNCHRONOUS)
}

fn handle_address() -> usize {
    let handle: extern "C" fn(i32, *mut Info, *mut c_void) = handle;
    handle as usize
}

fn is_wrapper(action: &libc::sigaction) -> bool {
    action.sa_sigaction == handle_address()
}

/// Gives a signal of the class the mask of `class`, if its action is still ours.
fn renew(signal: i32, class: u64) {
    if action_of(signal).is_some_and(|action| is_wrapper(&action)) {
        let _ = set_action(signal, &wrapper(signal, class));
    }
}
