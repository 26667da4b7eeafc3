//! The caller's `errno`, kept as it was.
//!
//! Each call of this crate leaves `errno` as it found it, also when the kernel refuses. A lock may
//! be acquired in a signal handler, or below C code that has not yet read the `errno` of its own
//! last call. [`Guard`] extends the promise to a whole region of code; the functions of a C
//! interface hold one from their first line to their last.

use core::fmt;

/// Where the calling thread keeps its `errno`: valid for its reads and writes while it runs.
#[inline]
pub(crate) fn location() -> *mut i32 {
    // SAFETY: the call takes nothing and has no precondition.
    #[cfg(not(target_os = "android"))]
    return unsafe { libc::__errno_location() };
    // SAFETY: as above.
    #[cfg(target_os = "android")]
    return unsafe { libc::__errno() };
}

/// What the kernel answered instead of a result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) i32);

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&std::io::Error::from_raw_os_error(self.0), f)
    }
}

/// Restores the thread's `errno` when dropped.
///
/// # Signals and forks
/// Async-signal-safe. A handler that calls anything at all starts with one.
///
/// # Examples
/// ```
/// let errno = || std::io::Error::last_os_error().raw_os_error();
/// let before = errno();
/// {
///     let _errno = ulocks_core::errno::Guard::new();
///     assert!(std::fs::File::open("/does/not/exist").is_err());
///     assert_ne!(errno(), before);
/// }
/// assert_eq!(errno(), before);
/// ```
#[derive(Debug)]
#[must_use = "errno is restored when the guard is dropped, which is at once"]
pub struct Guard {
    /// The thread's `errno`: the guard is not `Send`.
    errno: *mut i32,
    saved: i32,
}

impl Guard {
    /// Remembers the thread's `errno`.
    #[inline]
    pub fn new() -> Self {
        let errno = location();
        // SAFETY: the address is valid for reads by this thread.
        Self { errno, saved: unsafe { *errno } }
    }
}

impl Default for Guard {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Guard {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the address is valid for writes by this thread, which is the one that made the
        // guard because the guard is not `Send`.
        unsafe { *self.errno = self.saved };
    }
}
