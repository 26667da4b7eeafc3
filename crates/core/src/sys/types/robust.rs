//! Why a thread has no robust list that this crate can use.

use core::error::Error;
use core::fmt;

/// Which of a token's two words threads of this C library use.
pub(crate) const WORD: usize = if cfg!(target_env = "musl") { 1 } else { 0 };

/// Why a token could not be put on the calling thread's robust list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListError {
    /// The C library has registered no robust list for the thread, or the kernel refuses to say.
    Missing,
    /// The list is of a C library whose entries look otherwise: the distance from an entry to its
    /// word, in bytes.
    Foreign(isize),
    /// The list has about as many entries as the kernel follows when the thread dies: 2,000 tokens.
    Full,
    /// The list does not end. Memory that holds one of its locks was overwritten.
    Endless,
}

impl fmt::Display for ListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str(
                "the thread has no robust list: the C library registers none, or a seccomp filter forbids \
                 `get_robust_list`",
            ),
            Self::Foreign(offset) => write!(
                f,
                "the thread's robust list has its words {offset} bytes from the entries; only the lists of \
                 glibc and musl on 64-bit processors are known"
            ),
            Self::Full => f.write_str(
                "the thread's robust list is full: it takes part 2,000 times already; end the outer calls \
                 first",
            ),
            Self::Endless => f.write_str(
                "the thread's robust list does not end; another process has overwritten a robust pthread \
                 mutex that this thread holds",
            ),
        }
    }
}

impl Error for ListError {}
