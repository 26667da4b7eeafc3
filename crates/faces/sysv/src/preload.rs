//! What `libulocks_sysv.so` defines for LD_PRELOAD: `semget`, `semop`, `semtimedop` and `semctl`,
//! and the functions that install handlers of signals (see `signal/mod.rs`).
//!
//! Each function has the C library's contract. `syscall` sends the four numbers of these calls
//! here, and all others to the kernel.
//!
//! A thread may be unwound in a call that waits: by a handler that calls `pthread_exit` or throws,
//! or because it is cancelled. So these functions can unwind, and `syscall`, which has no frame,
//! says where its caller's is.
//!
//! A program that links this crate defines the functions too. The crate itself calls none of them,
//! and in such a program the rest of `syscall` goes to the kernel as before.

use crate::{self as arrays, Op, signal, sys, sys::Answer};
use core::ffi::{c_int, c_long};

/// The C library's way to say what happened.
#[inline]
fn said(answer: Answer) -> c_int {
    match answer {
        Ok(value) => value,
        Err(error) => sys::fail(error),
    }
}

/// See semget(2).
#[unsafe(no_mangle)]
pub extern "C" fn semget(key: c_int, nsems: c_int, flags: c_int) -> c_int {
    said(arrays::semget(key, nsems, flags))
}

/// See semop(2).
///
/// # Safety
/// `ops` is valid for `number` operations, unless the process is in strict mode.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn semop(id: c_int, ops: *const Op, number: usize) -> c_int {
    // SAFETY: the caller's promise.
    said(unsafe { arrays::semop(id, ops, number) })
}

/// See semop(2).
///
/// # Safety
/// As [`semop`], and `timeout` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn semtimedop(
    id: c_int,
    ops: *const Op,
    number: usize,
    timeout: *const libc::timespec,
) -> c_int {
    // SAFETY: the caller's promise.
    said(unsafe { arrays::semtimedop(id, ops, number, timeout) })
}

/// See semctl(2). The C function has a variable number of arguments. Both architectures pass the
/// fourth in the register of a fixed fourth one.
///
/// # Safety
/// `arg` is what the command needs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn semctl(id: c_int, num: c_int, command: c_int, arg: usize) -> c_int {
    // SAFETY: the caller's promise.
    said(unsafe { arrays::semctl(id, num, command, arg) })
}

/// The four calls, by number.
///
/// # Safety
/// As the function of that number.
unsafe extern "C-unwind" fn by_number(number: c_long, a: usize, b: usize, c: usize, d: usize) -> c_long {
    // SAFETY: the caller's promise.
    let answer = unsafe {
        match number {
            libc::SYS_semget => semget(a as c_int, b as c_int, c as c_int),
            libc::SYS_semop => semop(a as c_int, b as *const Op, c),
            libc::SYS_semtimedop => semtimedop(a as c_int, b as *const Op, c, d as *const libc::timespec),
            _ => semctl(a as c_int, b as c_int, c as c_int, d),
        }
    };
    answer.into()
}

/// The C library's answer to a failed system call.
extern "C" fn fail(answer: c_long) -> c_long {
    said(Err(-answer as c_int)).into()
}

/// See syscall(2).
///
/// # Safety
/// As the system call.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn syscall(number: c_long) -> c_long {
    // The frame of a `vfork` must not be ours: so there is none.
    core::arch::naked_asm!(
        ".cfi_startproc",
        "endbr64",
        "cmp rdi, {semget}",
        "je 2f",
        "cmp rdi, {semop}",
        "je 2f",
        "cmp rdi, {semctl}",
        "je 2f",
        "cmp rdi, {semtimedop}",
        "je 2f",
        "mov rax, rdi",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "mov rdx, rcx",
        "mov r10, r8",
        "mov r8, r9",
        "mov r9, [rsp + 8]",
        "syscall",
        "cmp rax, -4095",
        "jae 3f",
        "ret",
        "2:",
        "jmp {by_number}",
        "3:",
        "mov rdi, rax",
        "jmp {fail}",
        ".cfi_endproc",
        semget = const libc::SYS_semget,
        semop = const libc::SYS_semop,
        semctl = const libc::SYS_semctl,
        semtimedop = const libc::SYS_semtimedop,
        by_number = sym by_number,
        fail = sym fail,
    )
}

/// See syscall(2).
///
/// # Safety
/// As the system call.
#[cfg(target_arch = "aarch64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn syscall(number: c_long) -> c_long {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "cmp x0, {semget}",
        "b.eq 2f",
        "cmp x0, {semop}",
        "b.eq 2f",
        "cmp x0, {semctl}",
        "b.eq 2f",
        "cmp x0, {semtimedop}",
        "b.eq 2f",
        "mov x8, x0",
        "mov x0, x1",
        "mov x1, x2",
        "mov x2, x3",
        "mov x3, x4",
        "mov x4, x5",
        "mov x5, x6",
        "svc 0",
        "cmn x0, 4095",
        "b.hs 3f",
        "ret",
        "2:",
        "b {by_number}",
        "3:",
        "b {fail}",
        ".cfi_endproc",
        semget = const libc::SYS_semget,
        semop = const libc::SYS_semop,
        semctl = const libc::SYS_semctl,
        semtimedop = const libc::SYS_semtimedop,
        by_number = sym by_number,
        fail = sym fail,
    )
}

/// See sigaction(2).
///
/// # Safety
/// As the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(
    number: c_int,
    new: *const signal::Action,
    old: *mut signal::Action,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { signal::set(number, new, old) }
}

/// The C library has it by this name, too.
///
/// # Safety
/// As [`sigaction`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sigaction(
    number: c_int,
    new: *const signal::Action,
    old: *mut signal::Action,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { signal::set(number, new, old) }
}

/// See sigset(3).
#[unsafe(no_mangle)]
pub extern "C" fn sigignore(number: c_int) -> c_int {
    // SAFETY: no handler is given.
    let before = unsafe { signal::set_by_name(number, libc::SIG_IGN, 0) };
    if before == libc::SIG_ERR { -1 } else { 0 }
}

/// What the functions of `signal(2)` are called, and their flags.
macro_rules! by_name {
    ($($name:ident: $flags:expr;)*) => {
        $(
            /// See signal(2).
            ///
            /// # Safety
            /// As the C library's function.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(number: c_int, handler: usize) -> usize {
                // SAFETY: the caller's promise.
                unsafe { signal::set_by_name(number, handler, $flags) }
            }
        )*
    };
}

by_name! {
    signal: libc::SA_RESTART;
    bsd_signal: libc::SA_RESTART;
    ssignal: libc::SA_RESTART;
    sysv_signal: libc::SA_RESETHAND | libc::SA_NODEFER;
    __sysv_signal: libc::SA_RESETHAND | libc::SA_NODEFER;
}

/// See siginterrupt(3).
#[unsafe(no_mangle)]
pub extern "C" fn siginterrupt(number: c_int, flag: c_int) -> c_int {
    signal::interrupt(number, flag != 0)
}

/// See sigset(3).
///
/// # Safety
/// As the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigset(number: c_int, handler: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe { signal::set_and_let_in(number, handler) }
}

/// At the exit of a process with one thread, its adjustments are applied. One that has others, or
/// ends otherwise, leaves that to other processes.
extern "C" fn at_exit() {
    arrays::leave_process();
}

extern "C" fn at_load() {
    signal::resolve();
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;
