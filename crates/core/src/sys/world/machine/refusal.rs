//! What a refusal of the kernel means to each family of operations.

use crate::sys::errno::Errno;
use crate::sys::types::futex::{PiError, RequeueError, Unexpected, WaitvError};

impl Unexpected {
    pub(crate) fn of(call: &'static str, errno: Errno) -> Self {
        Self { call, errno }
    }
}

impl WaitvError {
    pub(super) fn of(error: Errno) -> Self {
        match error {
            Errno(libc::EFAULT) => Self::Inaccessible,
            // EPERM is a filter's: the kernel has no such answer to this call.
            Errno(libc::ENOSYS | libc::EPERM) => Self::Unsupported,
            error => Self::Unexpected(Unexpected::of("futex_waitv", error)),
        }
    }
}

impl RequeueError {
    pub(crate) fn of(call: &'static str, error: Errno) -> Self {
        match error {
            Errno(libc::EAGAIN) => Self::Mismatch,
            Errno(libc::EFAULT) => Self::Inaccessible,
            Errno(libc::EINVAL) => Self::PriorityInheriting,
            error => Self::Unexpected(Unexpected::of(call, error)),
        }
    }
}

impl PiError {
    pub(crate) fn of(call: &'static str, error: Errno) -> Self {
        match error.0 {
            libc::ETIMEDOUT => Self::TimedOut,
            libc::EAGAIN => Self::Mismatch,
            libc::EDEADLK => Self::Deadlock,
            libc::ESRCH => Self::OwnerGone,
            libc::EPERM => Self::NotPermitted,
            libc::EINVAL => Self::Inconsistent,
            libc::ENOMEM => Self::OutOfMemory,
            libc::EFAULT => Self::Inaccessible,
            libc::ENOSYS => Self::Unsupported,
            _ => Self::Unexpected(Unexpected::of(call, error)),
        }
    }
}
