//! The futex, typed: a word to sleep on, a key to wake by.
//!
//! A futex is 32 bits of memory and, while threads sleep on it, a queue in the kernel. [`Futex`] is
//! the word, [`FutexKey`] is the name of the queue. The type says which threads may use it: those
//! of one process ([`Local`], which is faster), or of all processes that map the word
//! ([`Global`]).
//!
//! | operation | kernel | worlds |
//! |---|---|---|
//! | [`Futex::wait`], [`wait_bits`](Futex::wait_bits) | `FUTEX_WAIT_BITSET` | all |
//! | [`FutexKey::wake`], [`wake_bits`](FutexKey::wake_bits) | `FUTEX_WAKE_BITSET` | all |
//! | [`Futex::cmp_requeue`] | `FUTEX_CMP_REQUEUE` | all |
//! | `waitv` | `futex_waitv`, Linux 5.16 | not loom |
//! | `Futex::{lock_pi, try_lock_pi, unlock_pi, wait_requeue_pi, cmp_requeue_pi}` | `FUTEX_LOCK_PI2`, Linux 5.14, or `FUTEX_LOCK_PI`, and their kin | not loom |
//!
//! A lock that loom is to model-check uses only what is in all worlds.
//!
//! # Rules
//!
//! 1. The end of a wait carries neither ordering nor ownership, and may be spurious. Read the word
//!    again.
//! 2. A wake-up needs the name of the futex, not its memory: the last user of a lock may have
//!    unmapped it. If another futex has that address by now, its sleepers wake spuriously, which
//!    rule 1 allows.
//! 3. Deadlines are absolute, so that a wait can be repeated without arithmetic.
//! 4. Each call leaves the caller's `errno` as it was.
//! 5. Where the types do not rule misuse out, it is an error before the kernel is asked.

mod pi;
mod poll;
mod requeue;
#[cfg(not(world = "loom"))]
mod waitv;

pub use super::types::futex::{PiError, PiWaited, RequeueError, Unexpected, Waited, WaitvError};
pub use pi::{OWNER_DIED, TID_MASK, WAITERS};
pub use poll::SHORT_SLEEP;
pub use requeue::Requeued;
#[cfg(not(world = "loom"))]
pub use waitv::{Waiter, WaitvOutcome, waitv};

use crate::sys::sync::AtomicU32;
use crate::sys::time::Deadline;
use crate::sys::world::kernel;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::num::NonZeroU32;
use core::ops::Deref;

mod sealed {
    pub trait Sealed {}
}

/// Where threads may wait on a futex and wake it: in one process, or in all that map it.
pub trait Scope: sealed::Sealed + Send + Sync + 'static {
    /// True when only threads of one process use the futex.
    const PRIVATE: bool;
}

/// One process (`FUTEX_PRIVATE_FLAG`).
#[derive(Clone, Copy, Debug)]
pub enum Local {}
/// Every process that maps the word.
#[derive(Clone, Copy, Debug)]
pub enum Global {}
impl sealed::Sealed for Local {}
impl sealed::Sealed for Global {}
impl Scope for Local {
    const PRIVATE: bool = true;
}
impl Scope for Global {
    const PRIVATE: bool = false;
}

/// Which sleepers a wake-up is for: those that have a bit in common with it. Never empty.
///
/// # Examples
/// ```
/// use ulocks_core::futex::Bits;
///
/// assert_eq!(Bits::new(0), None);
/// assert_eq!(Bits::one(5).get(), 0b10_0000);
/// assert_eq!(Bits::ANY.get(), u32::MAX);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bits(NonZeroU32);

impl Bits {
    /// All bits: a sleep that any wake-up ends, a wake-up for any sleeper.
    pub const ANY: Self = Self(NonZeroU32::MAX);

    /// These bits, or `None` if there is none: a sleeper without a bit could never be woken.
    #[must_use]
    pub const fn new(bits: u32) -> Option<Self> {
        match NonZeroU32::new(bits) {
            Some(bits) => Some(Self(bits)),
            None => None,
        }
    }

    /// The single bit `index % 32`, for example of a ticket.
    #[must_use]
    pub const fn one(index: u32) -> Self {
        match Self::new(1 << (index % 32)) {
            Some(bits) => bits,
            None => unreachable!(),
        }
    }

    /// The bits as a number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

/// A 32-bit word that threads can sleep on; derefs to its atomic.
///
/// # Process-shared
/// A `Futex<Global>` is the bare word, at any 4-byte aligned place of a mapping. The mappings may
/// have different addresses. A `Futex<Local>` in shared memory works among the threads of each
/// process, but not between processes.
///
/// # Signals and forks
/// All operations are async-signal-safe. After a fork, no thread sleeps on the child's copy of a
/// private futex.
///
/// # Examples
/// ```
/// use std::sync::atomic::Ordering::{Acquire, Release};
/// use ulocks_core::futex::{Futex, Local};
///
/// static READY: Futex<Local> = Futex::new(0);
///
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         while READY.load(Acquire) == 0 {
///             READY.wait(0, None);
///         }
///     });
///     READY.store(1, Release);
///     READY.key().wake(u32::MAX);
/// });
/// ```
#[derive(Debug)]
#[repr(transparent)]
pub struct Futex<S: Scope> {
    word: AtomicU32,
    scope: PhantomData<S>,
}

#[cfg(not(world = "loom"))]
const _: () = assert!(size_of::<Futex<Global>>() == 4 && align_of::<Futex<Global>>() == 4);

impl<S: Scope> Deref for Futex<S> {
    type Target = AtomicU32;
    #[inline(always)]
    fn deref(&self) -> &AtomicU32 {
        &self.word
    }
}

impl<S: Scope> Futex<S> {
    crate::const_fn! {
        /// A futex that holds `value`.
        pub fn new(value: u32) -> Self {
            Self { word: AtomicU32::new(value), scope: PhantomData }
        }
    }

    /// The name of this futex for wake-ups.
    #[inline]
    pub fn key(&self) -> FutexKey<S> {
        FutexKey::of(self)
    }

    /// Sleeps while the word holds `expected`, until woken or until `deadline`.
    ///
    /// For each wake-up of this futex, the comparison and the beginning of the sleep are one step.
    /// If a wake-up follows a change of the word, either the wake-up finds the sleeper, or the
    /// sleeper finds the change.
    ///
    /// # Blocking
    /// Until woken; until `deadline`, if there is one, on the clock of the deadline.
    ///
    /// # Signals and forks
    /// A signal handler ends a wait that has a deadline, [`Deadline::NEVER`] included. The kernel
    /// begins a wait *without* a deadline again if the handler was installed with `SA_RESTART`, as
    /// most are, and ends it otherwise.
    ///
    /// If the deadline is [interruptible](Deadline::interruptible), a wait that a handler ends has
    /// [timed out](Waited::TimedOut). Otherwise it was [interrupted](Waited::Interrupted). A
    /// handler that runs before the thread sleeps is not reported. If no signal may be missed, let
    /// the handler change the word.
    ///
    /// # Panics
    /// If the kernel refuses: the file behind the word was truncated, or a seccomp filter forbids
    /// the call.
    #[inline]
    #[cfg_attr(world = "vm", track_caller)]
    pub fn wait(&self, expected: u32, deadline: Option<Deadline>) -> Waited {
        self.wait_bits(expected, Bits::ANY, deadline)
    }

    /// Sleeps like [`wait`](Self::wait), but only wake-ups that have a bit in common with `bits`
    /// end the sleep.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    #[inline]
    #[cfg_attr(world = "vm", track_caller)]
    pub fn wait_bits(&self, expected: u32, bits: Bits, deadline: Option<Deadline>) -> Waited {
        let waited = kernel::wait(&self.word, expected, bits.get(), deadline, S::PRIVATE);
        if waited.interrupts(deadline) { Waited::TimedOut } else { waited }
    }
}

/// The address of a futex as a name: it is never dereferenced, so the futex may be gone already.
///
/// # Examples
/// The last user of a lock gives its memory away *before* the wake-up:
/// ```
/// use ulocks_core::futex::{Futex, Local};
///
/// let futex = Box::new(Futex::<Local>::new(0));
/// let key = futex.key();
/// drop(futex);
/// assert_eq!(key.wake(1), 0);
/// ```
pub struct FutexKey<S: Scope> {
    address: usize,
    scope: PhantomData<S>,
}

impl<S: Scope> FutexKey<S> {
    /// The name of the futex at `futex`, which need not be mapped.
    #[inline]
    pub fn of(futex: *const Futex<S>) -> Self {
        Self { address: futex.expose_provenance(), scope: PhantomData }
    }

    /// The address.
    #[inline]
    #[must_use]
    pub fn address(self) -> usize {
        self.address
    }

    /// Wakes up to `count` sleepers, longest sleeper first; returns how many.
    ///
    /// Threads of real-time priority are woken before others. A `count` of zero wakes no thread. If
    /// the futex is not mapped any more, or if its address now holds something else than a plain
    /// futex, no thread is woken.
    ///
    /// # Aborts
    /// If the kernel refuses the call as such: a seccomp filter forbids it. A panic, once caught,
    /// would leave a sleeper asleep for ever.
    #[inline]
    #[cfg_attr(world = "vm", track_caller)]
    pub fn wake(self, count: u32) -> u32 {
        self.wake_bits(count, Bits::ANY)
    }

    /// Wakes up to `count` of the sleepers that have a bit in common with `bits`; returns how many.
    ///
    /// # Aborts
    /// As [`wake`](Self::wake).
    #[inline]
    #[cfg_attr(world = "vm", track_caller)]
    pub fn wake_bits(self, count: u32, bits: Bits) -> u32 {
        kernel::wake(self.address, count, bits.get(), S::PRIVATE)
    }
}

impl<S: Scope> Clone for FutexKey<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Scope> Copy for FutexKey<S> {}

impl<S: Scope> PartialEq for FutexKey<S> {
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address
    }
}

impl<S: Scope> Eq for FutexKey<S> {}

impl<S: Scope> Hash for FutexKey<S> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.address.hash(state);
    }
}

impl<S: Scope> fmt::Debug for FutexKey<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scope = if S::PRIVATE { "Local" } else { "Global" };
        write!(f, "FutexKey<{scope}>({:#x})", self.address)
    }
}
