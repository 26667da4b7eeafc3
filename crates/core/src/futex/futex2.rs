//! The second generation of futex calls (Linux 6.7), as they are: one call for each operation,
//! sizes and scopes as flags.
//!
//! On 32-bit words they do what the methods of [`Futex`] do, which work on every kernel. They are
//! here for code that wants these very calls: under a seccomp filter that allows no others, or to
//! compare. Where the kernel has no such call, the answer is [`Futex2Error::Unsupported`], and
//! nothing was done. Not under Miri.
//!
//! [`requeue`] takes scope flags for each of its futexes, but kernels up to now (6.18) want both
//! alike; so do we.
//!
//! # Examples
//! ```
//! use ulocks_core::futex::{Bits, Futex, Futex2Error, Private, futex2};
//!
//! let futex = Futex::<Private>::new(0);
//! let woken = match futex2::wake(futex.key(), 1, Bits::ANY) {
//!     Err(Futex2Error::Unsupported) => futex.key().wake(1),
//!     answer => answer?,
//! };
//! assert_eq!(woken, 0);
//! # Ok::<(), Futex2Error>(())
//! ```

use super::{Bits, Futex, Futex2Error, FutexKey, Requeued, Scope, Waited};
use crate::capabilities::{Capability, missing};
use crate::errno::Errno;
use crate::time::Deadline;
use crate::world::clock::Timespec;
use crate::world::kernel::Entry;
use crate::world::syscall::{
    SYS_FUTEX_REQUEUE, SYS_FUTEX_WAIT, SYS_FUTEX_WAKE, checked, clamp, clock_id, name, pointer, waited,
};

/// Sleeps while `futex` holds `expected`, until a wake-up with a bit of `bits` or until `deadline`.
///
/// # Blocking
/// Until woken; until `deadline`, if there is one, on the clock of the deadline.
///
/// # Errors
/// [`Futex2Error::Unsupported`]; a mismatch is an outcome.
///
/// # Signals and forks
/// A handler that was installed without `SA_RESTART` ends the wait with [`Waited::Interrupted`].
/// With `SA_RESTART`, the wait goes on, with a deadline or without.
pub fn wait<S: Scope>(
    futex: &Futex<S>,
    expected: u32,
    bits: Bits,
    deadline: Option<Deadline>,
) -> Result<Waited, Futex2Error> {
    needs(Capability::Futex2Wait)?;
    let time = deadline.map(Timespec::of);
    let (expected, bits) = (expected as usize, bits.get() as usize);
    // SAFETY: the kernel reads the word, which is borrowed for the whole call; `time` is null or
    // lives until the end of this function.
    let answer = checked(|| unsafe {
        let (time, clock) = (pointer(time.as_ref()), clock_id(deadline));
        libc::syscall(SYS_FUTEX_WAIT, futex.as_ptr(), expected, bits, flags(S::PRIVATE), time, clock)
    });
    waited(answer).map_err(|error| Futex2Error::of("futex_wait", error))
}

/// Wakes up to `count` sleepers of `key` that have a bit in common with `bits`; returns how many.
///
/// # Errors
/// [`Futex2Error::Unsupported`]. Nobody by that name is no error, as in [`FutexKey::wake`].
pub fn wake<S: Scope>(key: FutexKey<S>, count: u32, bits: Bits) -> Result<u32, Futex2Error> {
    needs(Capability::Futex2Wake)?;
    if count == 0 {
        return Ok(0);
    }
    let (count, bits) = (clamp(count), bits.get() as usize);
    // SAFETY: a wake-up neither reads nor writes a word: the address is a name.
    let answer = checked(|| unsafe {
        libc::syscall(SYS_FUTEX_WAKE, name(key.address()), bits, count, flags(S::PRIVATE))
    });
    match answer {
        Err(Errno(libc::EFAULT | libc::EINVAL)) => Ok(0),
        answer => answer.map_err(|error| Futex2Error::of("futex_wake", error)),
    }
}

/// Wakes up to `wake` sleepers of `from` and moves up to `requeue` of the others to the futex named
/// `to`, if `from` holds `expected`.
///
/// # Errors
/// [`Futex2Error::Mismatch`] if the word holds something else; [`Futex2Error::Inaccessible`] if the
/// futexes are shared and `to` is not mapped; [`Futex2Error::PriorityInheriting`];
/// [`Futex2Error::Unsupported`].
pub fn requeue<S: Scope>(
    from: &Futex<S>,
    expected: u32,
    wake: u32,
    requeue: u32,
    to: FutexKey<S>,
) -> Result<Requeued, Futex2Error> {
    needs(Capability::Futex2Requeue)?;
    let pair = [Entry::new(from, expected, S::PRIVATE), Entry::named(to.address(), 0, S::PRIVATE)];
    // SAFETY: the kernel reads `pair`, which has its layout, and the word of `from`, both borrowed
    // for the whole call; the address of `to` is a name.
    let answer = checked(|| unsafe {
        libc::syscall(SYS_FUTEX_REQUEUE, pair.as_ptr(), 0, clamp(wake), clamp(requeue))
    });
    match answer {
        Ok(both) => Ok(Requeued::split(both, wake)),
        Err(error) => Err(Futex2Error::of("futex_requeue", error)),
    }
}

fn needs(capability: Capability) -> Result<(), Futex2Error> {
    if missing(capability) { Err(Futex2Error::Unsupported) } else { Ok(()) }
}

fn flags(private: bool) -> i32 {
    libc::FUTEX2_SIZE_U32 | if private { libc::FUTEX2_PRIVATE } else { 0 }
}
