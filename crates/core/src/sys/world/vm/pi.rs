//! The priority-inheriting futex, on the kernel of the virtual machine.

use super::atomic::AtomicU32;
use super::clock::point;
use crate::sys::types::futex::{PiError, PiWaited};
use crate::sys::types::time::Deadline;
use ulocks_vm::pi::{self, Refusal};

fn refused(refusal: Refusal) -> PiError {
    match refusal {
        Refusal::TimedOut => PiError::TimedOut,
        Refusal::Mismatch => PiError::Mismatch,
        Refusal::Deadlock => PiError::Deadlock,
        Refusal::OwnerGone => PiError::OwnerGone,
        Refusal::NotOwner => PiError::NotPermitted,
        Refusal::Inconsistent => PiError::Inconsistent,
    }
}

/// `FUTEX_LOCK_PI2`.
#[track_caller]
pub(crate) fn lock(word: &AtomicU32, deadline: Option<Deadline>, private: bool) -> Result<(), PiError> {
    pi::lock(word, deadline.map(point), private).map_err(refused)
}

/// `FUTEX_TRYLOCK_PI`.
#[track_caller]
pub(crate) fn try_lock(word: &AtomicU32, private: bool) -> Result<bool, PiError> {
    pi::try_lock(word, private).map_err(refused)
}

/// `FUTEX_UNLOCK_PI`.
#[track_caller]
pub(crate) fn unlock(word: &AtomicU32, private: bool) -> Result<(), PiError> {
    pi::unlock(word, private).map_err(refused)
}

/// `FUTEX_WAIT_REQUEUE_PI`.
#[track_caller]
pub(crate) fn wait_requeue(
    word: &AtomicU32,
    expected: u32,
    to: &AtomicU32,
    deadline: Option<Deadline>,
    private: bool,
) -> Result<PiWaited, PiError> {
    let locked = pi::wait_requeue(word, expected, to, deadline.map(point), private).map_err(refused)?;
    Ok(if locked { PiWaited::Locked } else { PiWaited::Retry })
}

/// `FUTEX_CMP_REQUEUE_PI`.
#[track_caller]
pub(crate) fn cmp_requeue(
    word: &AtomicU32,
    expected: u32,
    requeue: u32,
    to: &AtomicU32,
    private: bool,
) -> Result<u32, PiError> {
    pi::cmp_requeue(word, expected, requeue, to, private).map_err(refused)
}
