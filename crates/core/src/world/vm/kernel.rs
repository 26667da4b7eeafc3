//! The futex operations, on the kernel of the virtual machine.
//!
//! Its words are always mapped and it has every call, so of the ways in which the operations fail
//! on the machine only those remain that are answers.

use super::atomic::AtomicU32;
use super::clock::point;
use crate::futex::{RequeueError, Waited, Waiter, WaitvError, WaitvOutcome, WakeOpError};
use crate::time::Deadline;
use ulocks_vm::futex;

/// `FUTEX_WAIT_BITSET` on `word`.
#[track_caller]
pub(crate) fn wait(
    word: &AtomicU32,
    expected: u32,
    bitset: u32,
    deadline: Option<Deadline>,
    private: bool,
) -> Waited {
    waited(futex::wait(word, expected, bitset, deadline.map(point), private))
}

fn waited(waited: futex::Waited) -> Waited {
    match waited {
        futex::Waited::Woken => Waited::Woken,
        futex::Waited::Mismatch => Waited::Mismatch,
        futex::Waited::TimedOut => Waited::TimedOut,
        futex::Waited::Interrupted => Waited::Interrupted,
    }
}

/// `FUTEX_WAKE_BITSET` on `key`, which need not be mapped any more. Returns how many were woken.
#[track_caller]
pub(crate) fn wake(key: usize, count: u32, bitset: u32, private: bool) -> u32 {
    if count == 0 { 0 } else { futex::wake(key, count, bitset, private) }
}

/// `FUTEX_CMP_REQUEUE`: an error if `*word != expected`, otherwise how many were woken and requeued
/// together.
#[track_caller]
pub(crate) fn cmp_requeue(
    word: &AtomicU32,
    expected: u32,
    wake: u32,
    requeue: u32,
    to: usize,
    private: bool,
) -> Result<u32, RequeueError> {
    let done = futex::cmp_requeue(word, expected, wake, requeue, to, private);
    done.map(|(woken, requeued)| woken + requeued).ok_or(RequeueError::Mismatch)
}

/// `FUTEX_REQUEUE`: how many were woken and requeued together.
#[track_caller]
pub(crate) fn requeue(
    from: usize,
    wake: u32,
    requeue: u32,
    to: usize,
    private: bool,
) -> Result<u32, RequeueError> {
    let (woken, requeued) = futex::requeue(from, wake, requeue, to, private);
    Ok(woken + requeued)
}

/// `FUTEX_WAKE_OP` on `word`, and on `key`, which need not be mapped any more. Returns how many
/// were woken.
#[track_caller]
pub(crate) fn wake_op(
    word: &AtomicU32,
    encoded: u32,
    own_count: u32,
    key: usize,
    count: u32,
    private: bool,
) -> Result<u32, WakeOpError> {
    let change = |old| changed(encoded, old);
    let condition = |old| is_met(encoded, old);
    Ok(futex::wake_op(key, count, word, own_count, private, change, condition))
}

/// What an encoded operation makes of `old`.
fn changed(encoded: u32, old: u32) -> u32 {
    let operation = (encoded >> 28).cast_signed();
    let operand = twelve_bits(encoded >> 12);
    let operand = match operation & libc::FUTEX_OP_OPARG_SHIFT {
        0 => operand.cast_unsigned(),
        _ => 1 << operand,
    };
    match operation & !libc::FUTEX_OP_OPARG_SHIFT {
        libc::FUTEX_OP_SET => operand,
        libc::FUTEX_OP_ADD => old.wrapping_add(operand),
        libc::FUTEX_OP_OR => old | operand,
        libc::FUTEX_OP_ANDN => old & !operand,
        libc::FUTEX_OP_XOR => old ^ operand,
        other => unreachable!("a change {other} was encoded"),
    }
}

/// Whether `old` meets the encoded condition.
fn is_met(encoded: u32, old: u32) -> bool {
    let (old, comparand) = (old.cast_signed(), twelve_bits(encoded));
    match (encoded >> 24 & 0xf).cast_signed() {
        libc::FUTEX_OP_CMP_EQ => old == comparand,
        libc::FUTEX_OP_CMP_NE => old != comparand,
        libc::FUTEX_OP_CMP_LT => old < comparand,
        libc::FUTEX_OP_CMP_LE => old <= comparand,
        libc::FUTEX_OP_CMP_GT => old > comparand,
        libc::FUTEX_OP_CMP_GE => old >= comparand,
        other => unreachable!("a condition {other} was encoded"),
    }
}

/// The lowest twelve bits, with their sign.
fn twelve_bits(bits: u32) -> i32 {
    (bits << 20).cast_signed() >> 20
}

/// One futex of a `futex_waitv`, and what it is expected to hold.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    word: &'a AtomicU32,
    expected: u32,
    private: bool,
}

impl<'a> Entry<'a> {
    pub(crate) fn new(word: &'a AtomicU32, expected: u32, private: bool) -> Self {
        Self { word, expected, private }
    }

    pub(crate) fn address(&self) -> usize {
        core::ptr::from_ref(self.word).addr()
    }

    pub(crate) fn expected(&self) -> u32 {
        self.expected
    }
}

/// `futex_waitv`.
#[track_caller]
pub(crate) fn waitv(waiters: &[Waiter<'_>], deadline: Option<Deadline>) -> Result<WaitvOutcome, WaitvError> {
    let entries: Vec<_> = waiters
        .iter()
        .map(|Waiter(Entry { word, expected, private })| futex::Entry {
            word,
            expected: *expected,
            private: *private,
        })
        .collect();
    Ok(match futex::wait_any(&entries, deadline.map(point)) {
        (futex::Waited::Woken, index) => WaitvOutcome::Woken(index.unwrap_or(0)),
        (futex::Waited::Mismatch, _) => WaitvOutcome::Mismatch,
        (futex::Waited::TimedOut, _) => WaitvOutcome::TimedOut,
        (futex::Waited::Interrupted, _) => WaitvOutcome::Interrupted,
    })
}
