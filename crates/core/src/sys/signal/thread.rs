//! Threads that are made while a mask is up.
//!
//! A new thread inherits the signals that its maker really blocks, but not the maker's masks. So
//! nothing would ever unblock what the masks have blocked. A [`Hard`](super::Hard) mask has blocked
//! its set, and a [`Soft`](super::Soft) mask the class if a signal is put aside. Signals that the
//! program itself blocks are inherited, too, and must stay so. A new thread cannot tell the ones
//! from the others. Its maker can.
//!
//! # Invariant
//! What the maker would block if no mask were up is `really blocked & !blocked by masks`. A signal
//! that is put aside adds the same signals to both. So this set is the same before and after, if
//! the first is read first.

use super::set::SYNCHRONOUS;
use super::{hard, soft};
use crate::sys::world::signal;

/// Makes of `work`, for a new thread, the same work without the masks that are up on the calling
/// thread.
///
/// A thread that is made while a mask is up may inherit signals that the mask has blocked, and
/// would never get them. The result first unblocks them. Signals that the maker blocks for other
/// reasons stay blocked. If no mask is up it is the same as `work`, at the price of two system
/// calls.
///
/// Call it on the thread that makes the new one, and run the result on the new one only.
///
/// # Examples
/// ```
/// use ulocks_core::signal::{Mask, Soft, without_masks};
///
/// Soft::raise();
/// let total: u32 = std::thread::scope(|scope| {
///     let workers: Vec<_> = (1..=3).map(|nth| scope.spawn(without_masks(move || nth))).collect();
///     workers.into_iter().map(|worker| worker.join().unwrap()).sum()
/// });
/// Soft::lower();
/// assert_eq!(total, 6);
/// ```
#[cfg_attr(world = "vm", track_caller)]
pub fn without_masks<F, T>(work: F) -> impl FnOnce() -> T + use<F, T>
where
    F: FnOnce() -> T,
{
    // The order matters: see the header.
    let really_blocked = signal::block(0);
    let by_masks = soft::blocked_for_one_aside() | hard::blocked();
    let may_be_inherited = (signal::class() & !SYNCHRONOUS) | by_masks;
    let unmasked = may_be_inherited & !(really_blocked & !by_masks);
    move || {
        signal::unblock(unmasked);
        work()
    }
}

/// Makes a thread as [`std::thread::spawn`] does, which gets its signals although a mask may be up
/// here: see [`without_masks`].
///
/// # Panics
/// If the system makes no more threads, as [`std::thread::spawn`].
#[cfg(world = "machine")]
pub fn spawn<F, T>(work: F) -> std::thread::JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    std::thread::spawn(without_masks(work))
}
