//! Time slice extensions: a thread asks the kernel not to preempt it in the middle of a critical
//! section.
//!
//! If a thread is preempted while it holds a lock, all threads that want the lock wait for a time
//! slice, which is milliseconds. Since version 7.0 Linux can let such a thread go on for a few
//! microseconds: 5 by default, 50 at most. The thread asks for that beforehand, in a word that it
//! shares with the kernel. A thread that was let go on gives the CPU back when it is through; if it
//! does not, the kernel takes it.
//!
//! Two things have to be opted into, since the kernel wants it so, and so that no other user pays
//! for it:
//! - the lock, by type: [`Extended`] around a raw lock of the family or of your own;
//! - the thread, by a call of [`enable`] in it. To a thread that has not called it, an [`Extended`]
//!   lock is the lock inside, for a thread-local load more.
//!
//! Protocols that are no locks use [`enter`] and [`leave`].
//!
//! # What is needed
//! Linux 7.0 with `CONFIG_RSEQ_SLICE_EXTENSION`, not turned off by `rseq_slice_ext=` on its command
//! line; and glibc 2.41 or later, which tells the kernel of the word: older ones register an area
//! of 32 bytes, in which the word has no place, and musl registers none. The thread pointer is
//! found on x86-64, AArch64 and RISC-V with 64 bits. Where one of these is missing [`enable`] says
//! which, and all else works as if it had not been called.
//!
//! **This code has run on such a kernel in a translated guest only**, a Linux 7.2 built for it
//! (`cargo xtask machines --only sid-slice`). That kernel granted 16 extensions. The threads gave
//! 13 of them back after their sections, and 3 were revoked. What it gives on a processor is not
//! known. Elsewhere the tests play the kernel's part. They check the protocol step by step with all
//! that can come in between, and in locks under load by a signal handler.
//!
//! # What is not promised
//! - An extension. It is granted at an interrupt that would have preempted the thread, and not if
//!   anything else is to be done at that moment, such as a signal. It ends after its microseconds,
//!   whatever the thread holds.
//! - A wake-up in time. A system call in an extension gives the CPU back at once, before it does
//!   anything. So a release that must wake a sleeper wakes it when its thread runs again; the lock
//!   is free meanwhile, for threads that are awake.
//! - Anything about waiters: nothing is asked for while a thread waits.
//!
//! # In models
//! There is nothing here for a model to see: it asks for time, and time decides nothing about the
//! correctness of a lock.
//!
//! # Sources
//! T. Gleixner, "rseq: Implement time slice extension mechanism" (LKML, 2025, in Linux 7.0), and
//! `Documentation/userspace-api/rseq.rst`.

mod extended;

pub use extended::Extended;

pub use crate::sys::types::slice::SliceError;

use crate::sys::world::slice;

#[cfg(world = "machine")]
#[doc(hidden)]
pub use crate::sys::world::slice::{Control, pretend};

/// Lets the calling thread ask for extensions, from now on until it ends, in locks that are
/// [`Extended`].
///
/// Once a thread: at its start, or from the hook that a pool of threads has for that. A second call
/// changes nothing.
///
/// # Errors
/// What is missing. The thread, and every lock, goes on to work without.
///
/// # Blocking
/// Never, but for the dynamic loader's lock: it asks the loader for two symbols, then makes two
/// system calls.
///
/// # Signals and forks
/// Not async-signal-safe, because of the loader. A child of `fork` keeps what its kernel keeps for
/// it, and where that is nothing its requests go unanswered. A new thread starts without.
///
/// # Examples
/// ```
/// if let Err(error) = ulocks_core::slice::enable() {
///     println!("no time slice extensions for this thread: {error}");
/// }
/// ```
pub fn enable() -> Result<(), SliceError> {
    slice::enable()
}

/// Whether the calling thread has had a successful call of [`enable`].
///
/// # Signals and forks
/// Async-signal-safe.
#[must_use]
pub fn is_enabled() -> bool {
    slice::is_enabled()
}

/// The calling thread enters a critical section, or is about to: from here on it asks for an
/// extension.
///
/// Sections may nest and overlap; the outermost asks. Under a nanosecond in a thread that called
/// [`enable`], a thread-local load in others.
///
/// # Signals and forks
/// Async-signal-safe, if each handler leaves what it entered.
#[inline]
pub fn enter() {
    slice::enter();
}

/// The calling thread has left a critical section that it [`enter`]ed. If it was the last one, it
/// asks no more, and if the kernel has let it go on, it gives the CPU back here.
///
/// A `leave` without an `enter` happens in a thread to which a token has moved. It does nothing if
/// the thread is in no other section. Otherwise it ends the request early. An `enter` without a
/// `leave`, after a guard was forgotten, leaves the request standing until the kernel answers it;
/// that thread asks no more after that. Neither harms more than the time of threads.
///
/// # Blocking
/// The kernel may run other threads for as long as it likes, but that it would have done before.
///
/// # Signals and forks
/// Async-signal-safe; `errno` is kept.
#[inline]
pub fn leave() {
    slice::leave();
}
