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
//! A signal that somebody has sent to a thread in a section waits until the section ends: the
//! program's handler may make calls that want the thread's lock. A file that is lost in the rest
//! of that section ends the process.
//!
//! # Invariants
//! 1. The former action is written before the handler is there. A thread that writes it later has
//!    read the same action. So the handler reads it without a lock.
//! 2. The handler takes no lock, and calls what is safe in a signal handler.
//! 3. No thread takes this handler for the former action, however many install it at a time.
//! 4. A thread that returns from `install` has the handler, unless the kernel refused it. No thread
//!    waits for another one there, which may be interrupted by it, or not be in a child of fork.

use crate::{array, registry, sys};
use core::ffi::{c_int, c_void};
use core::ptr::{null, null_mut};
use ulocks_core::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use ulocks_core::sync::{AtomicBool, AtomicU32, AtomicU64};

/// The handler before ours, and its flags.
static HANDLER: AtomicU64 = AtomicU64::new(libc::SIG_DFL as u64);
static FLAGS: AtomicU32 = AtomicU32::new(0);
/// Whether the former handler was called, and was to be called once.
static IS_SPENT: AtomicBool = AtomicBool::new(false);
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Installs the handler.
pub fn install() {
    if INSTALLED.load(Acquire) {
        return;
    }
    // SAFETY: all-zero is a valid value of these integers.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    // SAFETY: the place is borrowed.
    if unsafe { libc::sigaction(libc::SIGBUS, null(), &raw mut action) } != 0 {
        return;
    }
    let (ours, before) = (on_fault as *const () as usize, action.sa_sigaction);
    if before != ours {
        // Invariant 3.
        HANDLER.store(before as u64, Relaxed);
        FLAGS.store(action.sa_flags as u32, Release); // Invariant 1.
        action.sa_sigaction = ours;
        action.sa_flags = action.sa_flags & !libc::SA_RESETHAND | libc::SA_SIGINFO;
        if matches!(before, libc::SIG_DFL | libc::SIG_IGN) {
            action.sa_flags |= libc::SA_ONSTACK; // A former handler says itself where it can run.
        }
        // SAFETY: the action is the former one, with a handler of the type that its flags say.
        unsafe { libc::sigaction(libc::SIGBUS, &raw const action, null_mut()) };
    }
    INSTALLED.store(true, Release);
}

extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives a valid structure; a signal of a fault has an address.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    let is_fault = code > 0 && code != libc::BUS_MCEERR_AO; // That one has no instruction.
    if is_fault && (registry::lose(address) || array::lose(address)) {
        return;
    }
    let context = context.cast::<libc::ucontext_t>();
    // SAFETY: the kernel gives a valid context, and restores this mask when the handler returns.
    // The first bytes of the C library's set are the kernel's.
    let mask = unsafe { &mut *(&raw mut (*context).uc_sigmask).cast::<u64>() };
    let is_ignored = HANDLER.load(Relaxed) == libc::SIG_IGN as u64;
    if !is_fault && !is_ignored && sys::is_section(*mask) {
        *mask |= sys::BUS;
        // SAFETY: the kernel gives a valid structure.
        sys::queue_to_self(signal, unsafe { &*info });
        return;
    }
    pass_on(signal, is_fault, info, context.cast());
}

/// Does what would have been done without the handler.
fn pass_on(signal: c_int, is_fault: bool, info: *mut libc::siginfo_t, context: *mut c_void) {
    let flags = FLAGS.load(Acquire) as c_int;
    let handler = HANDLER.load(Relaxed) as usize;
    let is_spent = flags & libc::SA_RESETHAND != 0 && IS_SPENT.swap(true, AcqRel);
    match if is_spent { libc::SIG_DFL } else { handler } {
        libc::SIG_IGN if !is_fault => {}
        libc::SIG_IGN | libc::SIG_DFL => {
            // SAFETY: all-zero is a valid value of these integers. It is the default action.
            let action: libc::sigaction = unsafe { core::mem::zeroed() };
            // SAFETY: the default action needs no handler.
            unsafe { libc::sigaction(signal, &raw const action, null_mut()) };
            if !is_fault {
                sys::send_to_self(signal); // It comes when this handler returns, as a fault does.
            }
        }
        handler if flags & libc::SA_SIGINFO != 0 => {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn handler() -> usize {
        // SAFETY: all-zero is a valid value of these integers.
        let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
        // SAFETY: the place is borrowed.
        let answer = unsafe { libc::sigaction(libc::SIGBUS, null(), &raw mut action) };
        assert_eq!(answer, 0);
        action.sa_sigaction
    }

    #[test]
    fn each_thread_that_installs_the_handler_has_it_and_none_takes_it_for_the_former_one() {
        const THREADS: usize = 8;
        let (former, ours) = (handler(), on_fault as *const () as usize);
        let start = std::sync::Barrier::new(THREADS);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    start.wait();
                    install();
                    assert_eq!(handler(), ours);
                });
            }
        });
        INSTALLED.store(false, Relaxed); // As a thread that comes late sees it.
        install();
        assert_eq!(handler(), ours);
        assert_eq!(HANDLER.load(Relaxed), former as u64);
    }

    #[test]
    fn a_section_is_known_by_its_mask_and_no_other_mask_is() {
        const KILL_AND_STOP: u64 = 1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1);
        const LIBRARY: u64 = 1 << 31 | 1 << 32;
        let blocked = || {
            let mut set = 0_u64;
            let (how, place) = (libc::SIG_BLOCK as usize, &raw mut set as usize);
            // SAFETY: no set is given; the place is borrowed, and has the kernel's size.
            unsafe { sys::raw(libc::SYS_rt_sigprocmask, [how, 0, place, size_of::<u64>(), 0, 0]) };
            set
        };
        assert!(!sys::is_section(blocked()));
        let mask = sys::Masked::new();
        assert!(sys::is_section(blocked()));
        drop(mask);
        assert!(!sys::is_section(blocked()));
        for other in [0, u64::MAX, !sys::BUS & !KILL_AND_STOP & !LIBRARY] {
            assert!(!sys::is_section(other), "{other:#x}");
        }
    }
}
