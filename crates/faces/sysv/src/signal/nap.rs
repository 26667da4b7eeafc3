//! A sleep that a handler ends also if it comes just before the system call.
//!
//! The function looks at the flag that handlers set, and then makes the call. Both are written in
//! assembly, so that a handler can tell that its thread is between the look and the call: by the
//! address of the next instruction. Then it makes the thread go on as if the call had been
//! interrupted. At each of these addresses the stack is that of the entry, which is what an
//! unwinder is told. A handler may leave by `pthread_exit`, and a thread may be cancelled there.

use super::own;
use crate::sys::{Answer, Errno};
use libc::c_long;
use ulocks_core::sync::AtomicU32;

/// Sleeps on `word` while it is `expected`, until nanosecond `until` of CLOCK_MONOTONIC, and is
/// woken by each of `bits`.
///
/// There is always a time limit: without one, the kernel would restart the wait after a handler
/// that was installed with `SA_RESTART`.
///
/// # Errors
/// EINTR if a handler has run since [`forget_handlers`](super::forget_handlers); ETIMEDOUT; EAGAIN
/// if the word is another one.
pub fn nap(word: &AtomicU32, expected: u32, until: u64, bits: u32) -> Answer<()> {
    let limit =
        libc::timespec { tv_sec: (until / 1_000_000_000) as i64, tv_nsec: (until % 1_000_000_000) as i64 };
    // SAFETY: the flag, the word and the limit are borrowed for the whole call.
    let answer = unsafe { wait(own().is_handled.as_ptr(), word.as_ptr(), expected, &raw const limit, bits) };
    if answer < 0 { Err(-answer as Errno) } else { Ok(()) }
}

unsafe extern "C" {
    /// The instruction of the system call in [`wait`].
    #[link_name = "ulocks_sysv_nap_call"]
    static CALL: u8;
    /// Where [`wait`] goes on if a handler has run.
    #[link_name = "ulocks_sysv_nap_skipped"]
    static SKIPPED: u8;
}

/// Makes the thread that `context` is of skip the call, if it is about to make it.
///
/// # Safety
/// `context` is that of the handler that runs.
pub unsafe fn skip(context: *mut libc::ucontext_t) {
    let start: unsafe extern "C-unwind" fn(_, _, _, _, _) -> c_long = wait;
    // SAFETY: the caller's promise; no reference is made to the whole.
    let next = unsafe { next_instruction(context) };
    // SAFETY: as above.
    let at = unsafe { next.read() } as usize;
    if (start as usize..=&raw const CALL as usize).contains(&at) {
        // SAFETY: as above; the stack there is that of the place where it was.
        unsafe { next.write(&raw const SKIPPED as usize as _) };
    }
}

#[cfg(target_arch = "x86_64")]
unsafe fn next_instruction(context: *mut libc::ucontext_t) -> *mut i64 {
    // SAFETY: the caller's promise; no reference is made.
    unsafe { &raw mut (*context).uc_mcontext.gregs[libc::REG_RIP as usize] }
}

#[cfg(target_arch = "aarch64")]
unsafe fn next_instruction(context: *mut libc::ucontext_t) -> *mut u64 {
    // SAFETY: the caller's promise; no reference is made.
    unsafe { &raw mut (*context).uc_mcontext.pc }
}

/// The look and the call. The answer is the kernel's.
///
/// # Safety
/// `flag` and `limit` are valid, and `word` is so for the whole call.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C-unwind" fn wait(
    flag: *const bool,
    word: *const u32,
    expected: u32,
    limit: *const libc::timespec,
    bits: u32,
) -> c_long {
    core::arch::naked_asm!(
        ".hidden ulocks_sysv_nap_call",
        ".hidden ulocks_sysv_nap_skipped",
        ".cfi_startproc",
        "cmp byte ptr [rdi], 0",
        "jne ulocks_sysv_nap_skipped",
        "mov r10, rcx",
        "mov r9d, r8d",
        "xor r8d, r8d",
        "mov rdi, rsi",
        "mov esi, {command}",
        "mov eax, {futex}",
        ".globl ulocks_sysv_nap_call",
        "ulocks_sysv_nap_call:",
        "syscall",
        "ret",
        ".globl ulocks_sysv_nap_skipped",
        "ulocks_sysv_nap_skipped:",
        "mov rax, -{interrupted}",
        "ret",
        ".cfi_endproc",
        command = const libc::FUTEX_WAIT_BITSET,
        futex = const libc::SYS_futex,
        interrupted = const libc::EINTR,
    )
}

/// The look and the call. The answer is the kernel's.
///
/// # Safety
/// `flag` and `limit` are valid, and `word` is so for the whole call.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C-unwind" fn wait(
    flag: *const bool,
    word: *const u32,
    expected: u32,
    limit: *const libc::timespec,
    bits: u32,
) -> c_long {
    core::arch::naked_asm!(
        ".hidden ulocks_sysv_nap_call",
        ".hidden ulocks_sysv_nap_skipped",
        ".cfi_startproc",
        "ldrb w9, [x0]",
        "cbnz w9, ulocks_sysv_nap_skipped",
        "mov w5, w4",
        "mov x4, xzr",
        "mov x0, x1",
        "mov x1, {command}",
        "mov x8, {futex}",
        ".globl ulocks_sysv_nap_call",
        "ulocks_sysv_nap_call:",
        "svc 0",
        "ret",
        ".globl ulocks_sysv_nap_skipped",
        "ulocks_sysv_nap_skipped:",
        "mov x0, -{interrupted}",
        "ret",
        ".cfi_endproc",
        command = const libc::FUTEX_WAIT_BITSET,
        futex = const libc::SYS_futex,
        interrupted = const libc::EINTR,
    )
}
