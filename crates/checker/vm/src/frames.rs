//! What a thread is at an operation, as bytes: its live stack and the registers that a call keeps.
//!
//! Every call of the engine goes through [`call`]. It stores the registers that the callee has to
//! keep on the stack, next to the frames of the code under test. So the bytes from there to the
//! base of the stack are all that this code has to itself at that moment, but for what it has on
//! the heap and in statics: [`state`].
//!
//! Equal bytes are then the same state. The other direction is not needed, but wanted: a state
//! should have the same bytes whenever it comes back. Frames have holes, which hold what earlier
//! calls left there. Two things keep the engine out of them: it runs [`GAP`] bytes further down,
//! and a stack begins as zeros, [`clear`]. So what is in a hole was put there by the code under
//! test, which does the same again if it repeats itself.
//!
//! # The constants
//! The least with which `--test loops` still recognises its 47 loops, in both profiles. The fifth
//! column is the steps a second with the least by those with the ones in use, best of six
//! (`examples/speed.rs`, exhaustive rows, on a loaded machine).
//!
//! | constant | in use | least | one below | steps |
//! |---|---|---|---|---|
//! | `GAP` | 2,240 B | 192 B | not tried | 0.85, 0.94, 1.5 |
//! | `CLEARED` | `GAP` + 2 KiB | `GAP` | not tried | with the row above |
//! | `LONGEST_STATE` | 8 KiB | 1 KiB | not tried | no state there is longer |
//! | `LONGEST_ROUND` of `explore/loops.rs` | 1,024 | 259 | 258: rounds of 257 yields | 0.99, 0.98, 1.00 |
//! | `MOST_BYTES` there | 1 MiB | 256 KiB | 64 KiB: the same | not measured |
//!
//! The first three are margins for frames that are larger than those of the tests. They cost less
//! than the noise of that machine. With a `LONGEST_ROUND` of 4 the reader of a sequence lock, in a
//! signal handler, is followed for ever; that constant was varied in release builds only.
//!
//! On processors for which [`enter`] is not written there are no bytes, and no loop is recognised.

use crate::side::Side;
use core::cell::Cell;
use core::mem::MaybeUninit;

/// How far below the frames of the code under test the engine runs; that code's own calls between
/// two operations of a loop rarely reach deeper. Not a multiple of 4 KiB, at which a processor
/// takes one address for another.
const GAP: usize = 2 * 1024 + 192;

/// How much of a new thread's stack is cleared: the gap, and the frames above it.
const CLEARED: usize = GAP + 2 * 1024;

/// States that are longer are not told: it would cost too much at each step.
const LONGEST_STATE: usize = 8 * 1024;

thread_local! {
    /// The lowest byte of the state of the code that called the engine last.
    static TOP: Cell<usize> = const { Cell::new(0) };
}

/// Whether states can be told on this processor.
pub(crate) const HAS_STATES: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// The engine's part of a call, with what it is called with and what it returned.
struct Slot<B, R> {
    body: Option<B>,
    result: MaybeUninit<R>,
}

/// Calls `body`, which belongs to the engine.
#[inline]
pub(crate) fn call<R>(body: impl FnOnce() -> R) -> R {
    fn run<B: FnOnce() -> R, R>(slot: &mut Slot<B, R>) {
        let body = slot.body.take().expect("a call has one body");
        let _side = Side::of_machine();
        slot.result.write(body());
    }
    /// # Safety
    /// `slot` points to a slot that no other reference names, with a body in it.
    unsafe extern "C-unwind" fn begin<B: FnOnce() -> R, R>(slot: *mut (), top: usize) {
        TOP.set(top);
        // SAFETY: the caller says so.
        run::<B, R>(unsafe { &mut *slot.cast::<Slot<B, R>>() });
    }
    fn begin_of<B: FnOnce() -> R, R>(_: &Slot<B, R>) -> unsafe extern "C-unwind" fn(*mut (), usize) {
        begin::<B, R>
    }
    // Zero, and zero again: the slot is a hole in the caller's frame.
    let mut slot = Slot { body: Some(body), result: MaybeUninit::zeroed() };
    let begin = begin_of(&slot);
    // SAFETY: `begin` is made for this slot, which holds a body and is not used meanwhile.
    unsafe { enter((&raw mut slot).cast(), begin) };
    // SAFETY: `begin` has returned, so `run` has written the result; it is read once.
    let result = unsafe { slot.result.assume_init_read() };
    // SAFETY: the place is valid for writes, and what it held has been moved out.
    unsafe { core::ptr::write_volatile(&raw mut slot.result, MaybeUninit::zeroed()) };
    result
}

/// Where the state of the code that called the engine last begins; [`set_top`] says it again once
/// other threads have run.
pub(crate) fn top() -> usize {
    TOP.get()
}

/// See [`top`].
pub(crate) fn set_top(top: usize) {
    TOP.set(top);
}

/// Copies the state of the code that called the engine last into `bytes`; `base` is the end of its
/// stack. False if there is none to tell.
pub(crate) fn state(base: usize, bytes: &mut Vec<u8>) -> bool {
    let top = TOP.get();
    let length = base.wrapping_sub(top);
    if !HAS_STATES || top == 0 || length > LONGEST_STATE {
        return false; // on another stack, or too deep in calls to be compared at every step
    }
    bytes.reserve(length);
    // SAFETY: the bytes from `top` to `base` are the frames of the calling thread that are above
    // the engine's, and nothing writes to them meanwhile. Both ends are aligned to 8. There is room
    // for the bytes behind those that are there, and all of it is written. A checker of memory that
    // marks holes in frames does not see the copy.
    unsafe {
        copy(top as *const u8, bytes.as_mut_ptr().add(bytes.len()), length);
        bytes.set_len(bytes.len() + length);
    }
    true
}

/// Zeros for the stack of a thread that has not begun; `base` is its end.
pub(crate) fn clear(base: usize) {
    // SAFETY: a stack is larger than that, and no code runs on it.
    unsafe { zero((base - CLEARED) as *mut u8, CLEARED) };
}

/// Calls `begin` with `slot` and the address of the lowest byte of the caller's state.
///
/// # Safety
/// As `begin`'s.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C-unwind" fn enter(slot: *mut (), begin: unsafe extern "C-unwind" fn(*mut (), usize)) {
    // A frame with `rbp`, the other registers that a callee keeps, the gap, and 8 bytes so that the
    // stack is aligned to 16 at the call.
    core::arch::naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        ".cfi_offset rbx, -24",
        ".cfi_offset r12, -32",
        ".cfi_offset r13, -40",
        ".cfi_offset r14, -48",
        ".cfi_offset r15, -56",
        "mov rax, rsi",
        "mov rsi, rsp",
        "sub rsp, {gap} + 8",
        "call rax",
        "lea rsp, [rbp - 40]",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
        gap = const GAP,
    )
}

/// As on the other processor.
///
/// # Safety
/// As `begin`'s.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C-unwind" fn enter(slot: *mut (), begin: unsafe extern "C-unwind" fn(*mut (), usize)) {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "stp x29, x30, [sp, #-160]!",
        "mov x29, sp",
        ".cfi_def_cfa x29, 160",
        ".cfi_offset x29, -160",
        ".cfi_offset x30, -152",
        "stp x19, x20, [sp, #16]",
        "stp x21, x22, [sp, #32]",
        "stp x23, x24, [sp, #48]",
        "stp x25, x26, [sp, #64]",
        "stp x27, x28, [sp, #80]",
        "stp d8, d9, [sp, #96]",
        "stp d10, d11, [sp, #112]",
        "stp d12, d13, [sp, #128]",
        "stp d14, d15, [sp, #144]",
        ".cfi_offset x19, -144",
        ".cfi_offset x20, -136",
        ".cfi_offset x21, -128",
        ".cfi_offset x22, -120",
        ".cfi_offset x23, -112",
        ".cfi_offset x24, -104",
        ".cfi_offset x25, -96",
        ".cfi_offset x26, -88",
        ".cfi_offset x27, -80",
        ".cfi_offset x28, -72",
        ".cfi_offset d8, -64",
        ".cfi_offset d9, -56",
        ".cfi_offset d10, -48",
        ".cfi_offset d11, -40",
        ".cfi_offset d12, -32",
        ".cfi_offset d13, -24",
        ".cfi_offset d14, -16",
        ".cfi_offset d15, -8",
        "mov x8, x1",
        "mov x1, sp",
        "sub sp, sp, {gap}",
        "blr x8",
        "mov sp, x29",
        "ldp x19, x20, [sp, #16]",
        "ldp x21, x22, [sp, #32]",
        "ldp x23, x24, [sp, #48]",
        "ldp x25, x26, [sp, #64]",
        "ldp x27, x28, [sp, #80]",
        "ldp d8, d9, [sp, #96]",
        "ldp d10, d11, [sp, #112]",
        "ldp d12, d13, [sp, #128]",
        "ldp d14, d15, [sp, #144]",
        "ldp x29, x30, [sp], #160",
        ".cfi_def_cfa sp, 0",
        "ret",
        ".cfi_endproc",
        gap = const GAP,
    )
}

/// A plain call: nothing is known of the caller's state.
///
/// # Safety
/// As `begin`'s.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn enter(slot: *mut (), begin: unsafe extern "C-unwind" fn(*mut (), usize)) {
    // SAFETY: the caller says so.
    unsafe { begin(slot, 0) }
}

/// As `copy_nonoverlapping`, unseen by tools that check accesses to memory.
///
/// # Safety
/// `length` bytes can be read from `from` and written to `to`; it is a multiple of 8.
unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    debug_assert_eq!(length % 8, 0, "a stack and its frames are aligned");
    // SAFETY: the caller says so. 32 bytes at a time as long as there are as many, then 8.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!(
            "sub {left}, 32",
            "jb 3f",
            "2:",
            "movdqu {a}, [{from}]",
            "movdqu {b}, [{from} + 16]",
            "movdqu [{to}], {a}",
            "movdqu [{to} + 16], {b}",
            "add {from}, 32",
            "add {to}, 32",
            "sub {left}, 32",
            "jae 2b",
            "3:",
            "add {left}, 32",
            "je 5f",
            "4:",
            "mov {word}, [{from}]",
            "mov [{to}], {word}",
            "add {from}, 8",
            "add {to}, 8",
            "sub {left}, 8",
            "ja 4b",
            "5:",
            left = inout(reg) length => _,
            from = inout(reg) from => _,
            to = inout(reg) to => _,
            word = out(reg) _,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            options(nostack),
        );
    }
    // SAFETY: the caller says so.
    #[cfg(not(target_arch = "x86_64"))]
    unsafe {
        core::ptr::copy_nonoverlapping(from, to, length);
    }
}

/// Writes zeros, likewise unseen.
///
/// # Safety
/// `length` bytes can be written to `to`.
unsafe fn zero(to: *mut u8, length: usize) {
    // SAFETY: the caller says so. The direction flag is clear at every function call.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!(
            "rep stosb",
            inout("rcx") length => _,
            inout("rdi") to => _,
            in("al") 0_u8,
            options(nostack, preserves_flags),
        );
    }
    // SAFETY: the caller says so.
    #[cfg(not(target_arch = "x86_64"))]
    unsafe {
        core::ptr::write_bytes(to, 0, length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three registers' worth of locals, calls and returns through the frame.
    #[test]
    fn a_call_returns_what_its_body_does_and_keeps_the_locals() {
        let mut sum = 0_u64;
        for n in 0..100_u64 {
            let (a, b, c, d) = (n * 3, n * 5, n * 7, n * 11);
            let wide = call(|| [a + b, c + d, n]);
            sum += wide[0] + wide[1] + wide[2] - (a + b + c + d);
        }
        assert_eq!(sum, 99 * 50);
    }

    #[test]
    fn a_panic_unwinds_through_a_call() {
        let caught = std::panic::catch_unwind(|| call(|| std::panic::panic_any(7_u32)));
        assert_eq!(caught.unwrap_err().downcast_ref::<u32>(), Some(&7));
        assert_eq!(call(|| 8), 8);
    }
}
