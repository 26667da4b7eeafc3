//! The futex operations, on the kernel of the virtual machine.
//!
//! Its words are always mapped and it has every call, so of the ways in which the operations fail
//! on the machine only those remain that are answers.

use super::atomic::AtomicU32;
use super::clock::point;
use crate::sys::types::futex::{RequeueError, Waited, WaitvError, WaitvOutcome};
use crate::sys::types::time::Deadline;
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

/// One futex of a [`waitv`](crate::futex::waitv), and the value it is expected to hold.
#[derive(Clone, Copy)]
pub struct Waiter<'a> {
    word: &'a AtomicU32,
    expected: u32,
    private: bool,
}

impl<'a> Waiter<'a> {
    pub(crate) fn of(word: &'a AtomicU32, expected: u32, private: bool) -> Self {
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
        .map(|Waiter { word, expected, private }| futex::Entry {
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
