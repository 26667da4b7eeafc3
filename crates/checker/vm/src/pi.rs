//! The priority-inheriting futex of the machine, as the kernel's `FUTEX_LOCK_PI` and its kin.
//!
//! The word holds the id of its owner, which is the number of the thread plus one, and the kernel's
//! marks. A release goes to the waiter of the highest priority, and among equals to the waiter that
//! came first; a thread that others wait for has at least their priority. The scheduler of an
//! exploration tries every order and heeds no priority: it decides only which waiter is served.
//!
//! A thread that ends while it owns a lock for which others wait hands it over, with
//! [`OWNER_DIED`]; without waiters it leaves its id behind, and the next thread that asks for the
//! lock is told that the owner is gone. A circle of waiters is refused. What the kernel writes is a
//! read-modify-write with acquire and release, by the thread that makes the call; the end of a wait
//! orders nothing.
//!
//! Not here: signals that end a wait for a lock do not, as in the kernel; ids are not used again;
//! the word and the kernel's own record of the owner are not compared.

use crate::clock::Time;
use crate::engine::{self, Key, Word, linux};
use crate::sync::AtomicU32;
use core::panic::Location;

/// The bits of the word that hold the owner's id.
pub const TID_MASK: u32 = 0x3fff_ffff;
/// The kernel has waiters.
pub const WAITERS: u32 = 0x8000_0000;
/// The owner before this one ended without unlocking.
pub const OWNER_DIED: u32 = 0x4000_0000;

/// Why the kernel did not do what it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The deadline passed.
    TimedOut,
    /// The word does not hold the expected value.
    Mismatch,
    /// The caller owns the lock, or waits for itself through others.
    Deadlock,
    /// There is no thread of that id.
    OwnerGone,
    /// The caller does not own the lock.
    NotOwner,
    /// The futexes are used in two ways.
    Inconsistent,
}

/// A futex in a call.
#[derive(Clone, Copy)]
#[doc(hidden)]
pub struct Futex {
    pub(crate) key: Key,
    pub(crate) word: Word,
}

impl Futex {
    fn of(word: &AtomicU32, private: bool) -> Self {
        Self { key: Key { address: word.word().address(), private }, word: word.word() }
    }
}

/// A call of the kernel. `F` is a futex, as the caller or as the machine names it.
#[derive(Clone, Copy)]
#[doc(hidden)]
pub enum Call<F = Futex> {
    Lock { lock: F, deadline: Option<Time> },
    TryLock { lock: F },
    Unlock { lock: F },
    WaitRequeue { from: F, expected: u32, to: F, deadline: Option<Time> },
    CmpRequeue { from: F, expected: u32, requeue: u32, to: F },
    SetPriority(u8),
}

impl<F> Call<F> {
    /// The same call with its futexes named otherwise.
    pub(crate) fn map<G>(self, mut name: impl FnMut(F) -> G) -> Call<G> {
        match self {
            Self::Lock { lock, deadline } => Call::Lock { lock: name(lock), deadline },
            Self::TryLock { lock } => Call::TryLock { lock: name(lock) },
            Self::Unlock { lock } => Call::Unlock { lock: name(lock) },
            Self::WaitRequeue { from, expected, to, deadline } => {
                Call::WaitRequeue { from: name(from), expected, to: name(to), deadline }
            }
            Self::CmpRequeue { from, expected, requeue, to } => {
                Call::CmpRequeue { from: name(from), expected, requeue, to: name(to) }
            }
            Self::SetPriority(priority) => Call::SetPriority(priority),
        }
    }
}

/// `FUTEX_LOCK_PI2`: acquires, waiting until `deadline`.
///
/// # Errors
/// [`Refusal::TimedOut`], [`Refusal::Deadlock`], [`Refusal::OwnerGone`], [`Refusal::Inconsistent`].
#[track_caller]
pub fn lock(word: &AtomicU32, deadline: Option<Time>, private: bool) -> Result<(), Refusal> {
    call(Call::Lock { lock: Futex::of(word, private), deadline }).map(drop)
}

/// `FUTEX_TRYLOCK_PI`: acquires if that needs no waiting. Whether it did.
///
/// # Errors
/// As [`lock`], but for the deadline.
#[track_caller]
pub fn try_lock(word: &AtomicU32, private: bool) -> Result<bool, Refusal> {
    call(Call::TryLock { lock: Futex::of(word, private) }).map(|taken| taken != 0)
}

/// `FUTEX_UNLOCK_PI`: releases to the best waiter, or to no thread.
///
/// # Errors
/// [`Refusal::NotOwner`].
#[track_caller]
pub fn unlock(word: &AtomicU32, private: bool) -> Result<(), Refusal> {
    call(Call::Unlock { lock: Futex::of(word, private) }).map(drop)
}

/// `FUTEX_WAIT_REQUEUE_PI`: sleeps while `word` holds `expected`, until it was moved to the lock
/// `to` and owns that. False if the wait ended before: the word held something else, a signal came,
/// or for no reason.
///
/// # Errors
/// [`Refusal::TimedOut`], [`Refusal::Inconsistent`].
#[track_caller]
pub fn wait_requeue(
    word: &AtomicU32,
    expected: u32,
    to: &AtomicU32,
    deadline: Option<Time>,
    private: bool,
) -> Result<bool, Refusal> {
    let (from, to) = (Futex::of(word, private), Futex::of(to, private));
    call(Call::WaitRequeue { from, expected, to, deadline }).map(|locked| locked != 0)
}

/// `FUTEX_CMP_REQUEUE_PI`: if `word` holds `expected`, lets the best waiter there own the lock
/// `to`, or wait for it, and moves up to `requeue` others. How many in all.
///
/// # Errors
/// [`Refusal::Mismatch`], [`Refusal::Deadlock`], [`Refusal::OwnerGone`], [`Refusal::Inconsistent`].
#[track_caller]
pub fn cmp_requeue(
    word: &AtomicU32,
    expected: u32,
    requeue: u32,
    to: &AtomicU32,
    private: bool,
) -> Result<u32, Refusal> {
    let (from, to) = (Futex::of(word, private), Futex::of(to, private));
    call(Call::CmpRequeue { from, expected, requeue, to })
}

/// Gives the calling thread a priority; a higher number goes first. Every thread begins with zero.
#[track_caller]
pub fn set_priority(priority: u8) {
    let _ = call(Call::SetPriority(priority));
}

#[track_caller]
fn call(call: Call) -> Result<u32, Refusal> {
    let at = Location::caller();
    engine::with(|engine| linux::demand(engine, "a priority-inheriting futex").pi(call, at))
}
