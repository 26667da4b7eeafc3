//! The action that a signal had before the wrapper's, and how a synchronous signal is passed on to
//! it.
//!
//! # What each action does with a signal that the closure passes on
//!
//! | action before | raised by a fault or a trap | sent by `kill`, `raise`, `abort` |
//! |---|---|---|
//! | default | the process dies of it | the process dies of it |
//! | ignored | the process dies of it: the kernel, too, does not let a fault be ignored | nothing |
//! | a handler | is called, as the kernel would call it | is called, as the kernel would call it |
//!
//! The handler gets the info and the context of the signal, or only its number if it has no
//! `SA_SIGINFO`. Its `sa_mask`, `SA_NODEFER` and `SA_RESETHAND` count. It runs on the stack of the
//! wrapper. The class stays blocked.
//!
//! To die is to set the default action and to send the signal to the thread again, with the same
//! info. It is blocked while the wrapper runs. The kernel delivers it when the wrapper returns,
//! before the thread executes an instruction. So a core dump shows the fault. A mere return is not
//! enough: neither a trap nor a sent signal comes again.
//!
//! # Leaving
//! The handler may leave by `siglongjmp`, as it could without the wrapper. For that no frame of
//! this crate below it has anything to drop, and no word of the thread differs from what the
//! interrupted code had.

use super::set::bit;
use crate::sys::errno;
use crate::sys::world::signal::{self, Info, signals_of, sigset};
use core::ffi::c_void;
use core::mem::{MaybeUninit, transmute};
use core::ptr::{null, with_exposed_provenance};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The action before.
pub(super) struct Previous {
    action: libc::sigaction,
    /// It had `SA_RESETHAND` and has been called: it is the default action now.
    is_spent: AtomicBool,
}

impl Previous {
    pub(super) const fn new(action: libc::sigaction) -> Self {
        Self { action, is_spent: AtomicBool::new(false) }
    }

    /// What is to be there when the wrapper is gone.
    pub(super) fn action(&self) -> libc::sigaction {
        if self.is_spent.load(Relaxed) { default_action() } else { self.action }
    }

    /// Lets the action have a signal. It may not return.
    ///
    /// # Safety
    /// The caller is the handler of `signal`, with the arguments that it got, and returns after
    /// this. Nothing in its frame is to be dropped.
    pub(super) unsafe fn accept(&self, signal: i32, info: *mut Info, context: *mut c_void) {
        let handler = self.action.sa_sigaction;
        let is_once = self.action.sa_flags & libc::SA_RESETHAND != 0;
        if handler == libc::SIG_DFL || (is_once && self.is_spent.swap(true, Relaxed)) {
            // SAFETY: the kernel passes a valid info, by the caller.
            return die(signal, unsafe { &*info });
        }
        if handler == libc::SIG_IGN {
            // SAFETY: as above.
            let info = unsafe { &*info };
            if signal::is_fault(info) {
                die(signal, info);
            }
            return;
        }
        self.set_mask(signal);
        let handler = with_exposed_provenance::<()>(handler);
        // SAFETY: the action was set as that of this signal, so its handler is a function of the
        // type that its flags say, and is called as the kernel would call it, with valid arguments,
        // by the caller.
        unsafe {
            if self.action.sa_flags & libc::SA_SIGINFO != 0 {
                transmute::<*const (), extern "C" fn(i32, *mut Info, *mut c_void)>(handler)(
                    signal, info, context,
                );
            } else {
                transmute::<*const (), extern "C" fn(i32)>(handler)(signal);
            }
        }
    }

    /// Blocks what the kernel would have blocked for this action. The return of the wrapper
    /// restores the mask.
    fn set_mask(&self, signal: i32) {
        let mask = signals_of(&self.action.sa_mask);
        signal::block(mask);
        if self.action.sa_flags & libc::SA_NODEFER != 0 {
            signal::unblock(bit(signal) & !mask);
        }
    }
}

/// Lets the signal have its default action, which ends the process, as soon as the wrapper has
/// returned.
fn die(signal: i32, info: &Info) {
    // If the kernel refuses this, a fault comes again, and is passed on again.
    let _ = set_action(signal, &default_action());
    signal::send_at_any_rate(signal, info);
}

fn default_action() -> libc::sigaction {
    // SAFETY: all zero is an action, the default one.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// An action with `flags` whose handler is at the address `handler` and keeps `blocked` out.
pub(super) fn new_action(handler: usize, flags: i32, blocked: u64) -> libc::sigaction {
    let mut action = default_action();
    action.sa_sigaction = handler;
    action.sa_flags = flags;
    action.sa_mask = sigset(blocked);
    action
}

/// The action of a signal.
pub(super) fn action_of(signal: i32) -> Option<libc::sigaction> {
    let _errno = errno::Guard::new();
    let mut action = MaybeUninit::uninit();
    // SAFETY: asks only, and there is room for the answer, which is written if the call succeeds.
    unsafe { (libc::sigaction(signal, null(), action.as_mut_ptr()) == 0).then(|| action.assume_init()) }
}

/// Sets the action of a signal, and returns the one before.
pub(super) fn set_action(signal: i32, action: &libc::sigaction) -> Result<libc::sigaction, i32> {
    let _errno = errno::Guard::new();
    let mut before = MaybeUninit::uninit();
    // SAFETY: the action is one that was there before, the default one, or the wrapper, which is
    // async-signal-safe by the word of the caller of `install`; there is room for the one before,
    // which is written if the call succeeds.
    unsafe {
        match libc::sigaction(signal, action, before.as_mut_ptr()) {
            0 => Ok(before.assume_init()),
            _ => Err(*errno::location()),
        }
    }
}
