//! A queue and a map in a region: words under a mutex of their own, and data behind it.

use super::{SharedSafe, named};
use crate::queue::Queue;
use ulocks_core::Shared;
use ulocks_core::spin::Spin;

// SAFETY: clause by clause:
// - Each value of the counts is handled, and each bit pattern of a message is one, by its promise.
// - All zero is an empty queue: both counts are equal, its locks are unlocked.
// - The counts are of messages, and no addresses.
// - It is `repr(C)`, without `usize`, and without `Drop`: a message is `Copy`.
// - It changes through atomics, or under its mutex.
// - The hash has the layout of a message, where it lies, and the number of the protocol.
// - A message is `Copy`, so it has no lock; the locks of the queue are reset.
unsafe impl<T: SharedSafe + Copy + Send, W: Spin, const N: usize> SharedSafe for Queue<T, N, Shared<W>> {
    const LAYOUT: u64 = {
        let parts = [T::LAYOUT, size_of::<T>() as u64, align_of::<T>() as u64, N as u64];
        named("shm::Queue 1", &[super::layout(&parts), size_of::<Self>() as u64])
    };

    unsafe fn reset_locks(this: *mut Self) {
        // SAFETY: the caller's promise.
        unsafe { Self::reset_locks_of(this) };
    }
}
