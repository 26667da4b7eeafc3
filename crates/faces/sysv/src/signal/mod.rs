//! Signals: handlers wait while their thread is in a section, and end its sleeps.
//!
//! A handler may call `semop`, and may leave by a jump. So it must not run while its thread has a
//! lock of this crate. All handlers of the process are called by one function, [`on_signal`]
//! (`actions.rs` puts it in their place), which knows whether the thread is in a section. This
//! costs two stores a section. To block the signals would cost two system calls.
//!
//! # State
//! Of each thread, in [`Own`]:
//!
//! | field | set by | cleared by |
//! |---|---|---|
//! | `depth`: how many sections the thread is in | (enter) adds one | (leave) takes one |
//! | `is_held_back`: signals are blocked, since one came in a section | (hold back) | (let in) |
//! | `is_handled`: a handler has run | a handler that returns | a call that may sleep, at its start |
//! | `is_napping`: a set of the thread sleeps | a thread that goes to sleep | the thread as it takes the set out, or before a handler of its runs |
//!
//! | transition | by | label |
//! |---|---|---|
//! | `depth` one more | a thread that is about to take a lock | (enter) |
//! | all signals but SIGBUS blocked from the handler's return on; the signal sent again | a handler that finds its thread in a section | (hold back) |
//! | `depth` one less | a thread that has released the lock | (leave) |
//! | the former signal mask restored | the same, if signals are held back and it is in no section | (let in) |
//!
//! # Invariants
//! 1. No handler of the program runs while its thread is in a section. Exceptions are the handler
//!    of a fault, which the thread itself has caused, and one that was installed by a bare system
//!    call after the first call of this library.
//! 2. A signal that was held back is delivered before (let in) returns. Among signals of one number
//!    it may be overtaken by those that came meanwhile. If the user may queue no more signals, it
//!    loses its information.
//! 3. A thread whose signals are held back has the mask from before in `mask`. Several signals can
//!    come at once: the kernel puts one handler's frame on another's, and the last one runs first.
//!    So the mask from before is what is blocked in all of these frames.
//! 4. A sleep ends if a handler has run since `is_handled` was cleared. A handler that comes before
//!    the look at it is seen. One that comes between the look and the system call makes the thread
//!    skip that call (`nap.rs`). One that comes later ends it.
//! 5. A handler runs after the set in which its thread sleeps has ended, as in the kernel. So a set
//!    is not left behind if the handler jumps, or calls `exit` or `execve`.
//!
//! # Files that become shorter
//! The kernel sends SIGBUS to a thread that touches a mapping behind the end of its file. The
//! handler marks the mapping as lost, makes it blank from that page to the end, and the instruction
//! is tried again. So calls end with an error, and the process lives. The pages before stay the
//! file's: the first one has the lock, which the thread may hold and other processes want. A full
//! file system has the same effect where memory cannot be taken beforehand. So the handler is
//! installed also in a program that has none of SIGBUS. What is no fault of a file of this crate
//! goes the way that the program has chosen. A thread that blocks SIGBUS is ended by the fault. So
//! is one in the rest of a section in which it was sent a SIGBUS.
//!
//! # Sources
//! sigaction(2), signal(7). Deferral by a count of the thread: as `ulocks_core::signal`, for the
//! program's own handlers.

mod actions;
mod nap;

pub use actions::{Action, guard, interrupt, resolve, set, set_and_let_in, set_by_name};
pub use nap::nap;

use crate::{array, registry, sleep, sys};
use core::ffi::{c_int, c_void};
use core::marker::PhantomData;
use ulocks_core::sync::Ordering::{Relaxed, SeqCst};
use ulocks_core::sync::{AtomicBool, AtomicU32, AtomicU64, compiler_fence};

/// What a thread knows of its signals. Its handlers alone are concurrent.
#[repr(C)]
struct Own {
    mask: AtomicU64,
    depth: AtomicU32,
    is_held_back: AtomicBool,
    is_handled: AtomicBool,
    is_napping: AtomicBool,
}

// In memory that a thread has from its start: an access in a handler calls nothing, which could
// allocate. All zero is the state of a new thread.
core::arch::global_asm!(
    ".pushsection .tbss.ulocks_sysv_own,\"awT\",@nobits",
    ".hidden ulocks_sysv_own",
    ".globl ulocks_sysv_own",
    ".type ulocks_sysv_own,@object",
    ".size ulocks_sysv_own, 16",
    ".p2align 3",
    "ulocks_sysv_own:",
    ".zero 16",
    ".popsection",
);

const _: () = assert!(size_of::<Own>() == 16 && align_of::<Own>() == 8);

/// What the calling thread knows.
#[inline(always)]
fn own<'a>() -> &'a Own {
    let address: *const Own;
    // SAFETY: the sequence of the ABI for a variable of the initial-exec model: its offset from the
    // thread pointer is loaded, and nothing is changed.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!(
            "mov {0}, qword ptr [rip + ulocks_sysv_own@GOTTPOFF]",
            "add {0}, qword ptr fs:[0]",
            out(reg) address,
            options(nostack, readonly),
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!(
            "mrs {0}, tpidr_el0",
            "adrp {1}, :gottprel:ulocks_sysv_own",
            "ldr {1}, [{1}, :gottprel_lo12:ulocks_sysv_own]",
            "add {0}, {0}, {1}",
            out(reg) address,
            out(reg) _,
            options(nostack, readonly, preserves_flags),
        );
    }
    // SAFETY: the variable is this thread's, of this size and alignment; all fields are atomic. No
    // caller keeps the reference beyond the end of the thread.
    unsafe { &*address }
}

/// A thread that is in a section until this is dropped.
#[derive(Debug)]
pub struct HeldBack {
    not_send: PhantomData<*mut ()>,
}

impl HeldBack {
    /// (enter)
    #[inline]
    pub fn new() -> Self {
        let depth = &own().depth;
        depth.store(depth.load(Relaxed) + 1, Relaxed);
        compiler_fence(SeqCst);
        Self { not_send: PhantomData }
    }
}

impl Default for HeldBack {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for HeldBack {
    #[inline]
    fn drop(&mut self) {
        compiler_fence(SeqCst);
        let own = own();
        let outer = own.depth.load(Relaxed) - 1;
        own.depth.store(outer, Relaxed); // (leave)
        compiler_fence(SeqCst);
        if outer == 0 && own.is_held_back.load(Relaxed) {
            let_in(own);
        }
    }
}

/// (let in)
#[cold]
fn let_in(own: &Own) {
    let mask = own.mask.load(Relaxed);
    own.is_held_back.store(false, Relaxed); // A SIGBUS may come now, and hold back anew.
    compiler_fence(SeqCst);
    sys::set_mask(mask);
}

/// Forgets the handlers that have run on the calling thread.
pub fn forget_handlers() {
    own().is_handled.store(false, Relaxed);
}

/// Whether a handler has run since.
pub fn has_handled() -> bool {
    own().is_handled.load(Relaxed)
}

/// The thread goes to sleep in a set.
pub fn begin_nap() {
    compiler_fence(SeqCst);
    own().is_napping.store(true, Relaxed);
}

/// Whether nobody has taken the set since.
pub fn is_napping() -> bool {
    own().is_napping.load(Relaxed)
}

/// Takes the set: whether the caller has it now, of the thread and its handlers.
pub fn end_nap() -> bool {
    let is_mine = own().is_napping.swap(false, Relaxed);
    compiler_fence(SeqCst);
    is_mine
}

/// The handler of all signals that the program handles, and of SIGBUS.
extern "C-unwind" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives a valid structure; a signal of a fault has an address.
    let (is_fault, address) = unsafe { (is_fault(signal, (*info).si_code), (*info).si_addr() as usize) };
    if is_fault && signal == libc::SIGBUS && (registry::lose(address) || array::lose(address)) {
        return;
    }
    let own = own();
    let is_in_section = own.depth.load(Relaxed) != 0 || own.is_held_back.load(Relaxed);
    if is_in_section && !is_fault {
        // SAFETY: the kernel gives valid structures, and reads the context when this returns.
        unsafe { hold_back(own, signal, &*info, context.cast()) };
        return;
    }
    let is_handler = actions::has_handler(signal);
    // Invariant 5. A fault may be in a section.
    let ended = if is_handler && !is_in_section { sleep::end_interrupted() } else { None };
    actions::call(signal, is_fault, info, context);
    if let Some(answer) = ended {
        sleep::keep(answer); // The handler may have ended other sleeps.
    }
    if is_handler {
        own.is_handled.store(true, Relaxed);
    }
    // SAFETY: as above.
    unsafe { nap::skip(context.cast()) };
}

/// Whether what the thread did caused the signal.
fn is_fault(signal: c_int, code: c_int) -> bool {
    use libc::{SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
    let is_synchronous = matches!(signal, SIGBUS | SIGFPE | SIGILL | SIGSEGV | SIGSYS | SIGTRAP);
    // One code of SIGBUS has no instruction.
    is_synchronous && code > 0 && (signal, code) != (SIGBUS, libc::BUS_MCEERR_AO)
}

/// (hold back)
///
/// # Safety
/// `context` is that of the handler that runs.
#[cold]
unsafe fn hold_back(own: &Own, signal: c_int, info: &libc::siginfo_t, context: *mut libc::ucontext_t) {
    sys::block_all(); // Before the signal is sent, for its action may have SA_NODEFER.
    // SAFETY: the caller's promise. The first bytes of the C library's set are the kernel's, which
    // become the thread's when the handler returns.
    let mask = unsafe { &mut *(&raw mut (*context).uc_sigmask).cast::<u64>() };
    // Invariant 3.
    let others = if own.is_held_back.load(Relaxed) { own.mask.load(Relaxed) } else { u64::MAX };
    own.mask.store(others & *mask, Relaxed);
    own.is_held_back.store(true, Relaxed);
    *mask |= !sys::BUS | 1 << (signal - 1);
    sys::queue_to_self(signal, info);
}
