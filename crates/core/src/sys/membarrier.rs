//! An asymmetric fence: one side pays for both.
//!
//! In Dekker's handshake each of two threads stores to one word and then loads the other's, and at
//! least one of them must see what the other stored. Both need a full fence between store and load,
//! some twenty cycles each time. If one side runs a million times as often as the other, that is a
//! waste. With Linux' `membarrier` the frequent side only keeps its compiler in order ([`light`]).
//! The rare side makes the kernel interrupt each CPU that runs a thread of this process, with a
//! full fence on each ([`heavy`]):
//!
//! | frequent thread | rare thread |
//! |---|---|
//! | `mine.store(1)` | `yours.store(1)` |
//! | [`light`] | [`heavy`] |
//! | `yours.load()` | `mine.load()` |
//!
//! At most one of them reads 0. For a [`heavy`] and another thread's [`light`], one of two things
//! holds. Either what that thread stored before its [`light`] is visible after the [`heavy`], or
//! what it loads after its [`light`] shows all that preceded the [`heavy`]. Two light sides have no
//! such promise.
//!
//! The heavy side takes 0.3 us if no other CPU runs this process. Otherwise it interrupts each CPU
//! that does, which takes a few microseconds, 10 on a virtual machine. It reaches threads of the
//! calling process only. It is Linux 4.14's, and a seccomp filter may forbid it: a user must be
//! able to do without ([`ready`]).
//!
//! In the world of loom both sides are a `fence(SeqCst)`; on the virtual machine [`heavy`] is its
//! own, exact one.
//!
//! # Sources
//! M. Desnoyers, `membarrier(2)`; D. Dice, H. Huang, M. Yang, "Asymmetric Dekker Synchronization"
//! (2001); P0202, D. Goldblatt and others, `asymmetric_thread_fence_light` and `_heavy` of C++'s
//! Concurrency TS 2.

use crate::sys::sync::{AtomicU32, Ordering};
use crate::sys::world::membarrier;

/// The size of a table in which the words of many locks are found by address; one in the model
/// worlds.
pub const SLOTS: usize = membarrier::SLOTS;

/// How many locked read-modify-writes take as long as a [`heavy`] side, about: as many may be spent
/// to avoid one. None in the model worlds, which explore and do not count.
#[inline]
#[must_use]
pub fn worth() -> u32 {
    membarrier::worth()
}

/// Whether a read-modify-write is a full fence by itself, so that what follows it needs an order
/// for the compiler only ([`light`]), on either side. So it is on x86, where it is `lock`ed. Not in
/// the model worlds.
pub const RMW_IS_FENCE: bool = membarrier::RMW_IS_FENCE;

/// The frequent side: an order for the compiler, nothing for the processor.
#[inline(always)]
pub fn light() {
    membarrier::light();
}

/// The rare side: a full fence on each CPU that runs a thread of this process, and on this one.
/// False if the kernel refuses, and then no fence was made anywhere.
///
/// # Signals and forks
/// Async-signal-safe; `errno` is kept. Works in a child of fork.
#[inline]
#[must_use = "if it is refused, nothing has been ordered"]
#[cfg_attr(world = "vm", track_caller)]
pub fn heavy() -> bool {
    membarrier::heavy()
}

/// Whether [`heavy`] will be there when it is needed. Ask before a [`light`] side is relied upon.
///
/// # Blocking
/// The first call registers the process with the kernel. That takes a microsecond while the process
/// has one thread. Later it takes a grace period of the kernel, a few milliseconds to a few tens.
#[inline]
#[must_use]
pub fn ready() -> bool {
    membarrier::ready()
}

/// A store to a word that others read-modify-write. It is `word.store` but under loom, which raises
/// false alarms there and is given a read-modify-write that ignores what it replaces.
#[inline(always)]
#[cfg_attr(not(world = "machine"), track_caller)]
pub fn store(word: &AtomicU32, value: u32, order: Ordering) {
    membarrier::store(word, value, order);
}
