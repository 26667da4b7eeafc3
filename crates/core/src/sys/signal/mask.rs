//! How a lock keeps signal handlers off its thread: softly, really, or not at all.

use super::set::{ASYNCHRONOUS, SYNCHRONOUS};
use super::{hard, soft};

/// How a lock that is read in signal handlers keeps them off the thread that writes. Zero-sized;
/// chosen by type.
///
/// A lock calls [`raise`](Self::raise) before it shuts such readers out and [`lower`](Self::lower)
/// after it has let them in again, on the same thread. Masks nest, also those of different locks
/// and kinds, and need not be lowered in the order in which they were raised.
///
/// # Blocking
/// Never. [`lower`](Self::lower) runs the handlers that had to wait.
///
/// # Signals and forks
/// Handlers that are wrapped by `Handlers` may use masks, in pairs. Others must not. A fork takes
/// the masks of its thread into the child.
///
/// # Examples
/// ```
/// use ulocks_core::signal::{Mask, Soft};
///
/// fn in_peace<M: Mask, R>(work: impl FnOnce() -> R) -> R {
///     M::raise();
///     let result = work();
///     M::lower();
///     result
/// }
/// assert_eq!(in_peace::<Soft, _>(|| 6 * 7), 42);
/// ```
pub trait Mask: Send + Sync + 'static {
    /// Whether it keeps any handler off. A lock that can be read in handlers wants a mask that
    /// does.
    const MASKS: bool;

    /// From here on the handlers that this mask is about do not run on the calling thread.
    fn raise();

    /// Takes back one [`raise`](Self::raise). The last one runs, or lets the kernel run, the
    /// handlers that had to wait, before it returns.
    ///
    /// # Panics
    /// With `debug_assertions`, if no mask of this kind is up. Without, such a call leaves one up
    /// for good.
    fn lower();
}

/// Masks handlers that were installed with `Handlers`, and no others, by a count in thread-local
/// memory. The default.
///
/// A pair is two plain stores, which do not show beside a lock
/// (`cargo run --release --bin psrw`). The first signal that comes meanwhile is put
/// aside, and the class blocked, until the mask is lowered.
///
/// What this needs of the code between: that it leaves the thread's own signal mask, as far as the
/// class is concerned, as it found it.
#[derive(Debug)]
pub enum Soft {}

/// Blocks the signals of `SET` (see [`of`](super::of)) by `pthread_sigmask`, for handlers that are
/// not wrapped: two system calls a pair, 270 ns. By default all but the
/// [`SYNCHRONOUS`](super::SYNCHRONOUS) ones.
///
/// A set with a synchronous signal is an error of the compiler: a fault whose signal is blocked
/// kills the process.
///
/// ```compile_fail,E0080
/// use ulocks_core::signal::{self, Hard, Mask};
/// Hard::<{ signal::of(&[libc::SIGUSR1, libc::SIGSEGV]) }>::raise();
/// ```
///
/// What was blocked before stays blocked. Where masks nest, everything that they have blocked stays
/// so until the last of them is lowered.
#[derive(Debug)]
pub enum Hard<const SET: u64 = ASYNCHRONOUS> {}

/// Keeps no handler off, for locks that are not used in handlers.
#[derive(Debug)]
pub enum Unmasked {}

impl Soft {
    /// Whether a soft mask is up on the calling thread.
    #[must_use]
    pub fn is_up() -> bool {
        soft::is_up()
    }
}

impl Mask for Soft {
    const MASKS: bool = true;

    #[inline(always)]
    #[cfg_attr(world = "vm", track_caller)]
    fn raise() {
        soft::raise();
    }

    #[inline(always)]
    #[cfg_attr(world = "vm", track_caller)]
    fn lower() {
        soft::lower();
    }
}

impl<const SET: u64> Mask for Hard<SET> {
    const MASKS: bool = {
        assert!(
            SET & SYNCHRONOUS == 0,
            "a synchronous signal must not be blocked: a fault would kill the process"
        );
        SET != 0
    };

    #[inline]
    #[cfg_attr(world = "vm", track_caller)]
    fn raise() {
        const { assert!(Self::MASKS || SET == 0) };
        hard::raise(SET);
    }

    #[inline]
    #[cfg_attr(world = "vm", track_caller)]
    fn lower() {
        hard::lower();
    }
}

impl Mask for Unmasked {
    const MASKS: bool = false;

    #[inline(always)]
    fn raise() {}

    #[inline(always)]
    fn lower() {}
}
