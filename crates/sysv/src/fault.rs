//! What happens when a file that is mapped becomes shorter.
//!
//! The kernel sends SIGBUS to a thread that touches a mapping behind the end of its file. The
//! handler marks the mapping as lost, makes it blank from that page to the end, and the instruction
//! is tried again. So calls end with an error, and the process lives. The pages before stay the
//! file's: the first one has the lock, which the thread may hold and other processes want. A full
//! file system has the same effect where memory cannot be taken beforehand.
//!
//! The handler passes on every signal that is not of a mapping of this crate. A program that
//! installs its own handler later, or a thread that blocks SIGBUS, is ended by the signal as
//! without the handler.
//!
//! # Invariants
//! 1. The former action is written before the handler is there, and never again. So the handler
//!    reads it without a lock.
//! 2. The handler takes no lock, and calls what is safe in a signal handler.

use crate::{array, registry, sys};
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::{null, null_mut};
use ulocks_core::sync::AtomicBool;
use ulocks_core::sync::Ordering::Relaxed;

/// The action before ours.
struct Before(UnsafeCell<MaybeUninit<libc::sigaction>>);

// SAFETY: invariant 1.
unsafe impl Sync for Before {}

static BEFORE: Before = Before(UnsafeCell::new(MaybeUninit::uninit()));
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Installs the handler, once.
pub fn install() {
    if INSTALLED.swap(true, Relaxed) {
        return;
    }
    let before = BEFORE.0.get().cast::<libc::sigaction>();
    // SAFETY: one thread comes here, and the handler that reads the place is not there yet.
    if unsafe { libc::sigaction(libc::SIGBUS, null(), before) } != 0 {
        return;
    }
    // SAFETY: the call has written the place.
    let mut action = unsafe { *before };
    action.sa_sigaction = on_fault as *const () as usize;
    action.sa_flags = action.sa_flags & !libc::SA_RESETHAND | libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the action is the former one, with a handler of the type that its flags say.
    unsafe { libc::sigaction(libc::SIGBUS, &raw const action, null_mut()) };
}

extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives a valid structure; a signal of a fault has an address.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    let is_fault = code > 0;
    if !(is_fault && (registry::lose(address) || array::lose(address))) {
        pass_on(signal, is_fault, info, context);
    }
}

/// Does what would have been done without the handler.
fn pass_on(signal: c_int, is_fault: bool, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: invariant 1.
    let before = unsafe { *BEFORE.0.get().cast::<libc::sigaction>() };
    match before.sa_sigaction {
        libc::SIG_IGN if !is_fault => {}
        libc::SIG_IGN | libc::SIG_DFL => {
            let mut action = before;
            action.sa_sigaction = libc::SIG_DFL;
            // SAFETY: the default action needs no handler.
            unsafe { libc::sigaction(signal, &raw const action, null_mut()) };
            if !is_fault {
                sys::send_to_self(signal); // It comes when this handler returns, as a fault does.
            }
        }
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: the program has given its handler this type, by the flag.
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                unsafe { core::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: as above, without the flag.
            let handler: extern "C" fn(c_int) = unsafe { core::mem::transmute(handler) };
            handler(signal);
        }
    }
}
