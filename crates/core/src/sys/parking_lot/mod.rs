//! The parking lot: a queue of sleepers for any address, for locks too small to hold a futex.
//!
//! A futex needs four aligned bytes. A lock of one byte, or of two bits of a byte of its user,
//! parks its waiters here: on the machine in `parking_lot_core`, one table of queues for the whole
//! process, each under a lock of its own; in the model worlds in one modelled queue under one
//! modelled lock.
//!
//! # What it promises
//! 1. A [`park`](ParkKey::park) looks at the lock (`still`) and enqueues the thread. For each
//!    [`unpark_one`](ParkKey::unpark_one) of the same key that is one step. Either `still` sees
//!    what was done before the unpark, or the unpark finds the thread.
//! 2. An unpark takes the thread that has waited longest out of the queue, and tells it whether it
//!    left others there.
//! 3. What was done before an unpark happens before the end of the park that it ends.
//! 4. A key is an address that is never dereferenced: the lock may be gone when it is unparked, and
//!    something else may live there. Then the unpark finds no thread, or one that has parked
//!    through this module, whose park ends spuriously. Sleepers of other users of
//!    `parking_lot_core` are never woken, whatever their address.
//! 5. A park may end spuriously. It ends by its deadline only when that has passed.
//!
//! # What it costs
//! The table is allocated when a thread first parks, and grows with the number of threads that
//! have; what a thread needs to park is in its thread-local storage, with a destructor. So a lock
//! that parks here must not guard a global allocator. The lot is not for signal handlers, nor for
//! the child of a fork of a process with several threads. Its own locks, held for tens of
//! nanoseconds, yield to the scheduler when two threads meet at one.

#[cfg(world = "machine")]
#[path = "machine.rs"]
mod lot;
#[cfg(not(world = "machine"))]
#[path = "model.rs"]
mod lot;

#[cfg(world = "loom")]
pub(crate) use lot::boot;

use crate::sys::time::Deadline;

/// How a park ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an unparked thread may owe a wake-up to those left in the queue"]
pub enum Parked {
    /// By an unpark that took this thread out of the queue, or spuriously.
    Unparked {
        /// Whether threads with the same key were left in the queue at that moment.
        others: bool,
    },
    /// `still` said no: the thread has not slept.
    Refused,
    /// The deadline passed, and no unpark took this thread out of the queue.
    TimedOut,
}

/// The name of a queue: the address of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ParkKey(usize);

impl ParkKey {
    /// The queue of the lock at `lock`.
    #[inline]
    pub fn of<T>(lock: *const T) -> Self {
        Self(lock.addr())
    }

    /// Wakes the thread that has waited longest, if there is one. By address: the lock may be gone.
    #[cfg_attr(world = "vm", track_caller)]
    pub fn unpark_one(self) {
        lot::unpark_one(self.0);
    }

    /// Sleeps if `still` holds, until woken or until `deadline`. A signal handler does not end the
    /// sleep, also if the deadline is [interruptible](Deadline::interruptible).
    ///
    /// `still` is called under a lock of the lot, and looks at the lock's own word.
    ///
    /// # Safety
    /// - The key is that of memory the caller controls: a stranger's might take away a wake-up
    ///   meant for the stranger.
    /// - `still` does not panic.
    /// - `still` calls neither this module nor `parking_lot_core`.
    #[cfg_attr(world = "vm", track_caller)]
    pub unsafe fn park(self, still: impl FnOnce() -> bool, deadline: Option<Deadline>) -> Parked {
        // SAFETY: the caller's promises are those that the callee asks for.
        unsafe { lot::park(self.0, still, deadline) }
    }
}
