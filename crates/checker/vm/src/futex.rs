//! The futex of the machine: the kernel's operations, with addresses as keys and nothing ordered by
//! them.

use crate::clock::Time;
use crate::engine::{self, Key};
use crate::sync::AtomicU32;
use core::panic::Location;

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// Woken, by a wake-up or spuriously.
    Woken,
    /// The word did not hold the expected value: the thread has not slept.
    Mismatch,
    /// The deadline passed.
    TimedOut,
    /// A signal handler ran.
    Interrupted,
}

/// One futex of a [`wait_any`].
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The word.
    pub word: &'a AtomicU32,
    /// What it has to hold for the thread to sleep.
    pub expected: u32,
    /// Whether only threads of one process use it.
    pub private: bool,
}

/// `FUTEX_WAIT_BITSET`: sleeps while `word` holds `expected`, until a wake-up that has a bit in
/// common with `bits`.
#[track_caller]
pub fn wait(word: &AtomicU32, expected: u32, bits: u32, deadline: Option<Time>, private: bool) -> Waited {
    assert_ne!(bits, 0, "a sleeper without a bit could never be woken");
    let at = Location::caller();
    let key = Key { address: word.word().address(), private };
    engine::with(|engine| engine.wait(key, word.word(), expected, bits, deadline, at))
}

/// `FUTEX_WAKE_BITSET`: wakes up to `count` sleepers at `address`, longest sleeper first. How many.
/// The address is never dereferenced.
#[track_caller]
pub fn wake(address: usize, count: u32, bits: u32, private: bool) -> u32 {
    let at = Location::caller();
    engine::with(|engine| engine.wake(Key { address, private }, count, bits, at))
}

/// `FUTEX_CMP_REQUEUE`: `None` if `word` does not hold `expected`, otherwise how many were woken
/// and how many moved.
#[track_caller]
pub fn cmp_requeue(
    word: &AtomicU32,
    expected: u32,
    wake: u32,
    requeue: u32,
    to: usize,
    private: bool,
) -> Option<(u32, u32)> {
    let at = Location::caller();
    let from = Key { address: word.word().address(), private };
    let to = Key { address: to, private };
    engine::with(|engine| engine.requeue(from, (word.word(), expected), wake, requeue, to, at))
}

/// `futex_waitv`: sleeps while every word holds what is expected of it, until one of them is woken.
/// Which, if one was; the last one of several.
///
/// The kernel looks at one word after the other, in the order of `entries`, and queues the thread
/// for each: other threads go on in between, and a wake-up that finds it there has woken it.
#[track_caller]
pub fn wait_any(entries: &[Entry<'_>], deadline: Option<Time>) -> (Waited, Option<usize>) {
    let at = Location::caller();
    engine::with(|engine| engine.wait_any(entries, deadline, at))
}
