//! The hard mask: the kernel's, with a count.
//!
//! # State
//! Of each thread: `depth`, how many hard masks are up, and `blocked`, the signals that were not
//! blocked before one of them blocked them.
//!
//! # Windows
//! A handler of a signal that is in no mask may interrupt this and use masks of its own, in pairs;
//! at its end the kernel restores the signal mask of the interrupted code. So nothing may be in our
//! state that says of that mask more than the kernel has done:
//! - Every [`raise`] asks the kernel, also when the signals must be blocked already: that something
//!   else has blocked them may have been undone by the end of a handler. Masks seldom nest.
//! - [`raise`] counts before it blocks. The other way round a handler between the two would be the
//!   outermost, and would take away what is in `blocked`.
//! - `blocked` may contain what a handler blocked for itself, which is not blocked any more: to
//!   unblock it does no harm.

use crate::sys::world::signal;
use core::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Relaxed, SeqCst},
    compiler_fence,
};

/// What a thread has of hard masks.
pub(crate) struct Blocked {
    depth: AtomicU32,
    blocked: AtomicU64,
}

impl Blocked {
    pub(crate) const fn new() -> Self {
        Self { depth: AtomicU32::new(0), blocked: AtomicU64::new(0) }
    }
}

/// The signals that the calling thread blocks because hard masks are up.
pub(super) fn blocked() -> u64 {
    signal::with_blocked(|thread| thread.blocked.load(Relaxed))
}

#[cfg_attr(world = "vm", track_caller)]
pub(super) fn raise(set: u64) {
    signal::with_blocked(|thread| {
        // After 2^32 guards that were forgotten the mask stays up.
        thread.depth.store(thread.depth.load(Relaxed).saturating_add(1), Relaxed);
        compiler_fence(SeqCst);
        let newly = set & !signal::block(set);
        thread.blocked.store(thread.blocked.load(Relaxed) | newly, Relaxed);
    });
}

#[cfg_attr(world = "vm", track_caller)]
pub(super) fn lower() {
    signal::with_blocked(|thread| {
        let outer = thread.depth.load(Relaxed).wrapping_sub(1);
        debug_assert!(outer < u32::MAX, "a mask is lowered that was not raised");
        if outer > 0 {
            return thread.depth.store(outer, Relaxed);
        }
        let blocked = thread.blocked.load(Relaxed);
        thread.blocked.store(0, Relaxed);
        compiler_fence(SeqCst);
        thread.depth.store(0, Relaxed);
        compiler_fence(SeqCst);
        signal::unblock(blocked);
    });
}

#[cfg(all(test, world = "machine"))]
mod tests {
    use super::*;

    /// Guards that are forgotten raise the mask for ever: no later pair unblocks anything.
    #[test]
    #[cfg_attr(miri, ignore = "Miri has no signals")]
    fn forgotten_guards_never_bring_the_mask_down() {
        let usr1 = 1 << (libc::SIGUSR1 - 1);
        raise(usr1);
        signal::with_blocked(|thread| thread.depth.store(u32::MAX - 1, Relaxed));
        (0..3).for_each(|_| raise(usr1));
        (0..2).for_each(|_| lower());
        assert_eq!(blocked(), usr1, "a signal is let in");
        signal::with_blocked(|thread| thread.depth.store(1, Relaxed));
        lower();
        assert_eq!(blocked(), 0);
    }
}
