//! `futex_waitv` (Linux 5.16): sleep on up to 128 futexes at once, of either scope.

use super::{Futex, Scope, Unexpected, Waited, WaitvError};
use crate::capabilities::{Capability, missing};
use crate::time::Deadline;
use crate::world::clock::Timespec;
use crate::world::syscall::{Errno, checked, clock_id, pointer, waited};
use core::fmt;
use core::marker::PhantomData;

/// One futex of a [`waitv`], and the value it is expected to hold. The kernel's `struct futex_waitv`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Waiter<'a> {
    value: u64,
    address: u64,
    flags: u32,
    reserved: u32,
    word: PhantomData<&'a Futex<super::Private>>,
}

const _: () = assert!(size_of::<Waiter<'_>>() == 24);

impl<'a> Waiter<'a> {
    /// Waits on `futex` while it holds `expected`.
    pub fn new<S: Scope>(futex: &'a Futex<S>, expected: u32) -> Self {
        Self::named(futex.key().address(), S::PRIVATE, expected)
    }

    pub(super) fn named(address: usize, private: bool, value: u32) -> Self {
        let scope = if private { libc::FUTEX2_PRIVATE } else { 0 };
        Self {
            value: value.into(),
            address: address as u64,
            flags: (libc::FUTEX2_SIZE_U32 | scope).cast_unsigned(),
            reserved: 0,
            word: PhantomData,
        }
    }
}

impl fmt::Debug for Waiter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Waiter({:#x} while {})", self.address, self.value)
    }
}

/// How a [`waitv`] ended. It carries neither ordering nor ownership: look at the words again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// Sleeps while every futex holds its expected value, until one of them is woken or until `deadline`.
///
/// Wake-ups with any bits end the sleep.
///
/// # Blocking
/// Until one is woken; until `deadline`, if there is one, on the clock of the deadline.
///
/// # Errors
/// No futex, more than 128, a word that is not mapped any more, a kernel without the call.
///
/// # Signals and forks
/// A handler that was installed without `SA_RESTART` ends the wait with [`WaitvOutcome::Interrupted`]. With
/// `SA_RESTART`, the wait goes on, with a deadline or without; whoever needs to know lets the handler change a word.
///
/// # Examples
/// ```
/// use ulocks_core::capabilities::{Capability, capabilities};
/// use ulocks_core::futex::{Futex, Private, Shared, Waiter, WaitvOutcome, waitv};
///
/// let (mine, ours) = (Futex::<Private>::new(0), Futex::<Shared>::new(7));
/// if capabilities().has(Capability::Waitv) {
///     let outcome = waitv(&[Waiter::new(&mine, 0), Waiter::new(&ours, 8)], None)?;
///     assert_eq!(outcome, WaitvOutcome::Mismatch);
/// }
/// # Ok::<(), ulocks_core::futex::WaitvError>(())
/// ```
pub fn waitv(waiters: &[Waiter<'_>], deadline: Option<Deadline>) -> Result<WaitvOutcome, WaitvError> {
    match waiters.len() {
        0 => return Err(WaitvError::Empty),
        1..=128 => {}
        more => return Err(WaitvError::TooMany(more)),
    }
    if missing(Capability::Waitv) {
        return Err(WaitvError::Unsupported);
    }
    let time = deadline.map(Timespec::of);
    let clock = clock_id(deadline);
    // SAFETY: `waiters` has the kernel's layout and as many elements as we say, their words are borrowed for longer
    // than the call, the kernel only reads them, and `time` is null or lives until the end of this function.
    let answer = checked(|| unsafe {
        libc::syscall(
            libc::SYS_futex_waitv,
            waiters.as_ptr(),
            waiters.len(),
            0,
            pointer(time.as_ref()),
            clock,
        )
    });
    match waited(answer) {
        Ok(Waited::Woken) => Ok(WaitvOutcome::Woken(answer.map_or(0, |index| index as usize))),
        Ok(Waited::Mismatch) => Ok(WaitvOutcome::Mismatch),
        Ok(Waited::TimedOut) => Ok(WaitvOutcome::TimedOut),
        Ok(Waited::Interrupted) => Ok(WaitvOutcome::Interrupted),
        Err(Errno(libc::EFAULT)) => Err(WaitvError::Inaccessible),
        Err(Errno(libc::ENOSYS)) => Err(WaitvError::Unsupported),
        Err(error) => Err(WaitvError::Unexpected(Unexpected::of("futex_waitv", error))),
    }
}
