//! Why a thread cannot leave a region, or a process detach from it.

use std::fmt;

/// The refusal to end the use of a `W`, a member or a region, that is still needed.
/// [`into_inner`](Self::into_inner) gives the `W` back.
pub struct InUse<W> {
    inner: W,
    count: usize,
    why: &'static str,
}

impl<W> InUse<W> {
    pub(super) fn new(inner: W, count: usize, why: &'static str) -> Self {
        Self { inner, count, why }
    }

    /// How many locks or threads are in the way.
    pub fn count(&self) -> usize {
        self.count
    }

    /// What was not ended.
    pub fn into_inner(self) -> W {
        self.inner
    }
}

impl<W> fmt::Debug for InUse<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InUse").field("count", &self.count).field("why", &self.why).finish_non_exhaustive()
    }
}

impl<W> fmt::Display for InUse<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): drop their guards, or members, first", self.why, self.count)
    }
}

impl<W> std::error::Error for InUse<W> {}
