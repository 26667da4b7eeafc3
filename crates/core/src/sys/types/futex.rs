//! How the futex operations end: outcomes, and what can go wrong, one type for each family of
//! operations, each message with what to do about it.
//!
//! An answer that correct use cannot explain is [`Unexpected`] in all of them. What they are made
//! from is the kernel's business (`world::machine::refusal`); a modelled kernel answers with a few
//! of them only.

use crate::sys::errno::Errno;
use crate::sys::types::time::Deadline;
use core::error::Error;
use core::fmt;

/// How a wait ended. It carries neither ordering nor ownership: look at the word again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// Woken, by a wake-up or spuriously.
    Woken,
    /// The word did not hold the expected value (`EAGAIN`): the thread has not slept.
    Mismatch,
    /// The deadline passed (`ETIMEDOUT`), or it is interruptible and a signal handler ran.
    TimedOut,
    /// A signal handler ran (`EINTR`), and the deadline is not interruptible.
    Interrupted,
}

impl Waited {
    /// Whether a signal handler ended a sleep that was to last no longer than `deadline`, which is
    /// [interruptible](Deadline::interruptible), but had an earlier, plain deadline.
    ///
    /// For a waiter that looks again at a bound of its own before its caller's deadline passes. It
    /// does now what it would do if `deadline` had passed.
    ///
    /// # Examples
    /// ```
    /// use ulocks_core::futex::Waited;
    /// use ulocks_core::time::Deadline;
    ///
    /// let deadline = Some(Deadline::NEVER.interruptible());
    /// assert!(Waited::Interrupted.interrupts(deadline));
    /// assert!(!Waited::TimedOut.interrupts(deadline), "the bound has passed");
    /// assert!(!Waited::Interrupted.interrupts(Some(Deadline::NEVER)));
    /// ```
    #[inline]
    #[must_use]
    pub fn interrupts(self, deadline: Option<Deadline>) -> bool {
        self == Self::Interrupted && deadline.is_some_and(|deadline| deadline.is_interruptible())
    }
}

/// How a wait for a requeue ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PiWaited {
    /// The caller owns the priority-inheritance futex.
    Locked,
    /// The caller owns nothing: the word did not hold the expected value, or a signal handler ran.
    /// Look again.
    Retry,
}

/// How a `waitv` ended. It carries neither ordering nor ownership: look at the words again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg(not(world = "loom"))]
pub enum WaitvOutcome {
    /// The futex at this index was woken; others may have been too.
    Woken(usize),
    /// One of the words did not hold its expected value (`EAGAIN`): the thread has not slept.
    Mismatch,
    /// The deadline passed (`ETIMEDOUT`).
    TimedOut,
    /// A signal handler ran (`EINTR`).
    Interrupted,
}

/// An answer of the kernel that correct use cannot explain. A seccomp filter forbids the call,
/// memory could not be read back from its device, or this crate has an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unexpected {
    pub(crate) call: &'static str,
    pub(crate) errno: Errno,
}

impl fmt::Display for Unexpected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: the kernel answers \"{:?}\"; look for a seccomp filter that forbids the call, or a truncated file behind the futex",
            self.call, self.errno
        )
    }
}

impl Error for Unexpected {}

const INACCESSIBLE: &str =
    "a futex word is not mapped, or mapped read-only where it must be written; keep both mapped";
const PRIORITY_INHERITING: &str = "sleepers there wait for a priority-inheritance futex; wake them by unlock_pi, move them by cmp_requeue_pi";

/// Why a requeue did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequeueError {
    /// The word did not hold the expected value (`EAGAIN`): look at it again.
    Mismatch,
    /// One of the two futexes is not mapped (`EFAULT`).
    Inaccessible,
    /// Sleepers wait there for a priority-inheritance futex (`EINVAL`).
    PriorityInheriting,
    /// The kernel refused for a reason of its own.
    Unexpected(Unexpected),
}

impl fmt::Display for RequeueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mismatch => f.write_str("the futex does not hold the expected value; look at it again"),
            Self::Inaccessible => f.write_str(INACCESSIBLE),
            Self::PriorityInheriting => f.write_str(PRIORITY_INHERITING),
            Self::Unexpected(error) => error.fmt(f),
        }
    }
}

impl Error for RequeueError {}

/// Why `waitv` did not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitvError {
    /// There is no futex to wait on.
    Empty,
    /// There are more than 128 futexes to wait on.
    TooMany(usize),
    /// A word is not mapped (`EFAULT`).
    Inaccessible,
    /// The kernel has no `futex_waitv` (`ENOSYS`), or a seccomp filter forbids it (`EPERM`).
    Unsupported,
    /// The kernel refused for a reason of its own.
    Unexpected(Unexpected),
}

impl fmt::Display for WaitvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("no futex to wait on; give 1 to 128"),
            Self::TooMany(count) => write!(f, "{count} futexes to wait on; give 1 to 128"),
            Self::Inaccessible => f.write_str(INACCESSIBLE),
            Self::Unsupported => f.write_str("no futex_waitv here; it needs Linux 5.16"),
            Self::Unexpected(error) => error.fmt(f),
        }
    }
}

impl Error for WaitvError {}

/// Why an operation on a priority-inheritance futex failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PiError {
    /// The deadline passed (`ETIMEDOUT`).
    TimedOut,
    /// The futex requeued from does not hold the expected value (`EAGAIN`): look at it again.
    Mismatch,
    /// The caller holds the lock already, or waiting would close a circle of owners (`EDEADLK`).
    Deadlock,
    /// The thread whose id is in the word does not exist (`ESRCH`): it ended without unlocking.
    OwnerGone,
    /// The caller is not the owner (unlock), or the word names a kernel thread, which owns no locks
    /// (`EPERM`).
    NotPermitted,
    /// Word and kernel disagree on owner and waiters, or one futex is used in two ways
    /// (`EINVAL`).
    Inconsistent,
    /// The kernel has no memory to keep its side of the lock (`ENOMEM`).
    OutOfMemory,
    /// A word is not mapped or not writable (`EFAULT`).
    Inaccessible,
    /// The kernel was built without priority inheritance (`ENOSYS`), as loom's is.
    Unsupported,
    /// The kernel refused for a reason of its own.
    Unexpected(Unexpected),
}

impl fmt::Display for PiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "the deadline passed; the lock is not held",
            Self::Mismatch => "the futex does not hold the expected value; look at it again",
            Self::Deadlock => "waiting would never end: the caller, or one who waits for it, holds the lock",
            Self::OwnerGone => {
                "the owner ended without unlocking; repair what the lock protects, then reset it"
            }
            Self::NotPermitted => {
                "the lock belongs to a thread that is not the caller; only its owner unlocks it"
            }
            Self::Inconsistent => {
                "word and kernel disagree; write the word by these operations and 0 <-> id only"
            }
            Self::OutOfMemory => "the kernel is out of memory; try again later",
            Self::Inaccessible => INACCESSIBLE,
            Self::Unsupported => "no priority inheritance here; it needs a kernel with CONFIG_FUTEX_PI, or the virtual machine in place of loom",
            Self::Unexpected(error) => return error.fmt(f),
        })
    }
}

impl Error for PiError {}
