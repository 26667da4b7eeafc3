//! Why there are no time slice extensions.

use super::futex::Unexpected;
use core::error::Error;
use core::fmt;

/// Why a thread gets no extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SliceError {
    /// The kernel is older than 7.0 or was built without it; or a seccomp filter stands before it.
    /// Models have none, either.
    Unsupported,
    /// The kernel has it, and it was turned off when it was booted.
    Disabled,
    /// The C library has not registered an area for this thread that has room for it (`rseq`; glibc
    /// 2.41 does), or it cannot be found on this architecture.
    NoArea,
    /// The kernel refuses for a reason that it did not have when this was written.
    Refused(Unexpected),
}

impl fmt::Display for SliceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported => f.write_str(
                "this kernel does not extend time slices; it takes Linux 7.0 with CONFIG_RSEQ_SLICE_EXTENSION",
            ),
            Self::Disabled => {
                f.write_str("time slice extensions are turned off; remove rseq_slice_ext= from the kernel's command line")
            }
            Self::NoArea => f.write_str(
                "the C library has registered no rseq area with room for time slice extensions; glibc 2.41 does, on a kernel that has them",
            ),
            Self::Refused(unexpected) => unexpected.fmt(f),
        }
    }
}

impl Error for SliceError {}
