//! The priority-inheriting futex of a kernel that has none (`CONFIG_FUTEX_PI` is off): every call
//! is refused. The virtual machine models the futex, with priorities and with the deaths of owners.

use super::atomic::AtomicU32;
use crate::sys::types::futex::{PiError, PiWaited};
use crate::sys::types::time::Deadline;

/// `FUTEX_LOCK_PI2`.
pub(crate) fn lock(_word: &AtomicU32, _deadline: Option<Deadline>, _private: bool) -> Result<(), PiError> {
    Err(PiError::Unsupported)
}

/// `FUTEX_TRYLOCK_PI`.
pub(crate) fn try_lock(_word: &AtomicU32, _private: bool) -> Result<bool, PiError> {
    Err(PiError::Unsupported)
}

/// `FUTEX_UNLOCK_PI`.
pub(crate) fn unlock(_word: &AtomicU32, _private: bool) -> Result<(), PiError> {
    Err(PiError::Unsupported)
}

/// `FUTEX_WAIT_REQUEUE_PI`.
pub(crate) fn wait_requeue(
    _word: &AtomicU32,
    _expected: u32,
    _to: &AtomicU32,
    _deadline: Option<Deadline>,
    _private: bool,
) -> Result<PiWaited, PiError> {
    Err(PiError::Unsupported)
}

/// `FUTEX_CMP_REQUEUE_PI`.
pub(crate) fn cmp_requeue(
    _word: &AtomicU32,
    _expected: u32,
    _requeue: u32,
    _to: &AtomicU32,
    _private: bool,
) -> Result<u32, PiError> {
    Err(PiError::Unsupported)
}
